use std::{
    borrow::Cow,
    ops::{Bound, RangeBounds},
};

/// The direction of a scan.
///
/// ```
/// use kstate_api::Order;
///
/// assert_ne!(Order::Ascending, Order::Descending);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// From the smallest key to the largest.
    Ascending,
    /// From the largest key to the smallest.
    Descending,
}

/// A range of keys, ordered as unsigned bytes (clause R1).
///
/// ```
/// use kstate_api::KeyRange;
///
/// assert!(KeyRange::between(b"a", b"c").contains(b"c"), "both ends are included");
/// assert!(KeyRange::prefix(b"\x03\xAA\xFF").contains(b"\x03\xAA\xFF\xFF"));
/// assert!(!KeyRange::prefix(b"\x03\xAA\xFF").contains(b"\x03\xAB"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange<'a> {
    start: Bound<Cow<'a, [u8]>>,
    end: Bound<Cow<'a, [u8]>>,
}

impl<'a> KeyRange<'a> {
    /// Every key.
    ///
    /// ```
    /// # use kstate_api::KeyRange;
    /// assert!(KeyRange::all().contains(b""));
    /// ```
    #[must_use]
    pub const fn all() -> Self {
        Self { start: Bound::Unbounded, end: Bound::Unbounded }
    }

    /// The keys from `first` to `last`, both included. If `first` is larger than `last`, no key at all.
    ///
    /// ```
    /// # use kstate_api::KeyRange;
    /// assert!(KeyRange::between(b"b", b"a").is_inverted());
    /// ```
    #[must_use]
    pub fn between(first: &'a [u8], last: &'a [u8]) -> Self {
        Self::new(Bound::Included(first), Bound::Included(last))
    }

    /// The keys from `first` on, with it.
    ///
    /// ```
    /// # use kstate_api::KeyRange;
    /// assert!(KeyRange::from(b"b").contains(b"b") && !KeyRange::from(b"b").contains(b"a"));
    /// ```
    #[must_use]
    pub fn from(first: &'a [u8]) -> Self {
        Self::new(Bound::Included(first), Bound::Unbounded)
    }

    /// The keys up to `last`, with it.
    ///
    /// ```
    /// # use kstate_api::KeyRange;
    /// assert!(KeyRange::up_to(b"b").contains(b"b") && !KeyRange::up_to(b"b").contains(b"c"));
    /// ```
    #[must_use]
    pub fn up_to(last: &'a [u8]) -> Self {
        Self::new(Bound::Unbounded, Bound::Included(last))
    }

    /// The keys that begin with `prefix`; the empty prefix is every key.
    ///
    /// ```
    /// # use kstate_api::KeyRange;
    /// assert!(KeyRange::prefix(b"\xFF").contains(b"\xFF\xFF\xFF"), "nothing lies above");
    /// ```
    #[must_use]
    pub fn prefix(prefix: &'a [u8]) -> Self {
        let start = Bound::Included(Cow::Borrowed(prefix));
        // The smallest key above all of them: the prefix without its trailing FF bytes, its last byte one higher.
        let carried = prefix.iter().rposition(|byte| *byte != 0xFF).and_then(|last| {
            let mut end = prefix.get(..=last)?.to_vec();
            let byte = end.last_mut()?;
            *byte += 1;
            Some(end)
        });
        Self { start, end: carried.map_or(Bound::Unbounded, |end| Bound::Excluded(Cow::Owned(end))) }
    }

    /// The keys between any two bounds.
    ///
    /// ```
    /// # use kstate_api::KeyRange;
    /// use std::ops::Bound;
    /// let after_a = KeyRange::new(Bound::Excluded(b"a"), Bound::Unbounded);
    /// assert!(!after_a.contains(b"a") && after_a.contains(b"a\0"));
    /// ```
    #[must_use]
    pub fn new(start: Bound<&'a [u8]>, end: Bound<&'a [u8]>) -> Self {
        Self { start: start.map(Cow::Borrowed), end: end.map(Cow::Borrowed) }
    }

    /// The lower bound.
    ///
    /// ```
    /// # use kstate_api::KeyRange;
    /// use std::ops::Bound;
    /// assert_eq!(KeyRange::between(b"a", b"c").start(), Bound::Included(b"a".as_slice()));
    /// ```
    #[must_use]
    pub fn start(&self) -> Bound<&[u8]> {
        self.start.as_ref().map(|key| &**key)
    }

    /// The upper bound.
    ///
    /// ```
    /// # use kstate_api::KeyRange;
    /// use std::ops::Bound;
    /// assert_eq!(KeyRange::prefix(b"a").end(), Bound::Excluded(b"b".as_slice()));
    /// ```
    #[must_use]
    pub fn end(&self) -> Bound<&[u8]> {
        self.end.as_ref().map(|key| &**key)
    }

    /// Whether `key` lies in the range.
    ///
    /// ```
    /// # use kstate_api::KeyRange;
    /// assert!(KeyRange::all().contains(b"any"));
    /// ```
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        RangeBounds::<[u8]>::contains(&(self.start(), self.end()), key)
    }

    /// Whether the bounds are the wrong way round, or equal with one of them excluded, so that no key can lie between.
    ///
    /// A backend answers such a scan with an empty cursor. Many ordered maps panic on it: ask here first.
    ///
    /// ```
    /// # use kstate_api::KeyRange;
    /// assert!(KeyRange::between(b"b", b"a").is_inverted());
    /// assert!(!KeyRange::between(b"a", b"a").is_inverted());
    /// ```
    #[must_use]
    pub fn is_inverted(&self) -> bool {
        match (self.start(), self.end()) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(start), Bound::Included(end)) => start > end,
            (Bound::Included(start) | Bound::Excluded(start), Bound::Included(end) | Bound::Excluded(end)) => {
                start >= end
            }
        }
    }

    /// The range by bounds of `max_len` bytes at most. Of keys that are no longer it holds the same.
    pub(crate) fn within(&self, max_len: usize) -> KeyRange<'_> {
        // A bound that is cut lies above its beginning, and no key that is short enough lies between the two.
        let start = beginning(self.start(), max_len).map_or(self.start(), Bound::Excluded);
        let end = beginning(self.end(), max_len).map_or(self.end(), Bound::Included);
        KeyRange::new(start, end)
    }
}

/// The first `max_len` bytes of a bound that has more.
fn beginning(bound: Bound<&[u8]>, max_len: usize) -> Option<&[u8]> {
    let (Bound::Included(key) | Bound::Excluded(key)) = bound else { return None };
    key.get(..max_len).filter(|beginning| beginning.len() < key.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_bounds_mean_the_same_to_shorter_keys() {
        const MAX: usize = 2;
        let bytes = [0x00, 0x41, 0xFF];
        let mut keys = vec![Vec::new()];
        for len in 0..4 {
            let longer = keys.iter().filter(|key| key.len() == len);
            let longer = longer.flat_map(|key| bytes.map(|byte| [key.as_slice(), &[byte]].concat()));
            keys.extend(longer.collect::<Vec<_>>());
        }
        let mut bounds = vec![Bound::Unbounded];
        bounds.extend(keys.iter().flat_map(|key| [Bound::Included(&**key), Bound::Excluded(&**key)]));
        for start in &bounds {
            for end in &bounds {
                let range = KeyRange::new(*start, *end);
                let cut = range.within(MAX);
                for key in &keys {
                    if key.len() <= MAX {
                        assert_eq!(cut.contains(key), range.contains(key), "{key:?} in {range:?}, cut {cut:?}");
                    }
                }
                assert!(beginning(cut.start(), MAX).is_none() && beginning(cut.end(), MAX).is_none(), "{cut:?}");
            }
        }
    }
}
