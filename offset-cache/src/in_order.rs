type Entries<'m, K, V> = Box<dyn Iterator<Item = (K, V)> + 'm>;

/// Looks one key after the other up in an ordered map: where they come in the map's order and leave none out, without
/// a search for each. A rebalance asks for thousands in that order.
pub(crate) struct InOrder<'m, K, V> {
    /// The entries from a key on.
    seek: Box<dyn Fn(K) -> Entries<'m, K, V> + 'm>,
    rest: Entries<'m, K, V>,
}

impl<'m, K: Copy + Ord + 'm, V: 'm> InOrder<'m, K, V> {
    /// In the map of which `all` are the entries, and `seek` gives those from a key on.
    pub(crate) fn new<I: Iterator<Item = (K, V)> + 'm>(
        all: impl Iterator<Item = (K, V)> + 'm,
        seek: impl Fn(K) -> I + 'm,
    ) -> Self {
        Self { seek: Box::new(move |key| Box::new(seek(key))), rest: Box::new(all) }
    }

    pub(crate) fn get(&mut self, key: K) -> Option<V> {
        if let Some((next, value)) = self.rest.next()
            && next == key
        {
            return Some(value);
        }
        self.rest = (self.seek)(key);
        self.rest.next().filter(|(found, _)| *found == key).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_key_is_found_in_whatever_order_it_is_asked_for() {
        let map: BTreeMap<i32, i32> = [1, 2, 3, 5, 8].into_iter().map(|key| (key, 10 * key)).collect();
        for asked in [vec![1, 2, 3, 5, 8], vec![8, 5, 1, 1, 3, 3], vec![0, 1, 4, 5, 9, 2, 8], vec![5, 6, 8, 8, 7, 9, 1]]
        {
            let entry = |(key, value): (&i32, &i32)| (*key, *value);
            let mut found = InOrder::new(map.iter().map(entry), |from| map.range(from..).map(entry));
            for key in asked {
                assert_eq!(found.get(key), map.get(&key).copied(), "{key}");
            }
        }
    }
}
