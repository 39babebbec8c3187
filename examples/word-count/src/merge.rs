use std::{cmp::Reverse, collections::BinaryHeap};

use crate::failure::Failure;

/// Words with their counts, in ascending order of the words' bytes.
pub(crate) trait SortedCounts: Send {
    /// The next word and its count; `None` at the end.
    fn next_count(&mut self) -> Result<Option<(String, u64)>, Failure>;
}

/// Several sorted counts as one: each word comes once, with the sum of its counts. It holds one word of each source,
/// however many there are.
pub(crate) struct MergedCounts {
    sources: Vec<Box<dyn SortedCounts>>,
    /// The next word of each source that has one, with the source's number.
    heads: BinaryHeap<Reverse<(String, usize, u64)>>,
}

impl MergedCounts {
    pub(crate) fn new(mut sources: Vec<Box<dyn SortedCounts>>) -> Result<Self, Failure> {
        let mut heads = BinaryHeap::with_capacity(sources.len());
        for (number, source) in sources.iter_mut().enumerate() {
            heads.extend(source.next_count()?.map(|(word, count)| Reverse((word, number, count))));
        }
        Ok(Self { sources, heads })
    }

    fn pop(&mut self) -> Result<Option<(String, u64)>, Failure> {
        let Some(Reverse((word, number, count))) = self.heads.pop() else { return Ok(None) };
        if let Some(source) = self.sources.get_mut(number) {
            self.heads.extend(source.next_count()?.map(|(word, count)| Reverse((word, number, count))));
        }
        Ok(Some((word, count)))
    }
}

impl SortedCounts for MergedCounts {
    fn next_count(&mut self) -> Result<Option<(String, u64)>, Failure> {
        let Some((word, mut sum)) = self.pop()? else { return Ok(None) };
        while self.heads.peek().is_some_and(|Reverse((next, ..))| *next == word)
            && let Some((_, count)) = self.pop()?
        {
            sum = sum.saturating_add(count);
        }
        Ok(Some((word, sum)))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn sorted(counts: &[(&str, u64)]) -> Box<dyn SortedCounts> {
        let counts = counts.iter().map(|(word, count)| (Box::from(*word), *count)).collect::<Vec<(Box<str>, u64)>>();
        Box::new(counts.into_iter())
    }

    pub(crate) fn collect(counts: &mut dyn SortedCounts) -> Vec<(String, u64)> {
        std::iter::from_fn(|| counts.next_count().unwrap()).collect()
    }

    #[test]
    fn each_word_comes_once_with_its_sum() {
        let sources = vec![
            sorted(&[("a", 1), ("c", 3)]),
            sorted(&[]),
            sorted(&[("a", 10), ("b", 2), ("d", 4)]),
            sorted(&[("a", 100), ("c", 30)]),
        ];
        let expected = [("a", 111), ("b", 2), ("c", 33), ("d", 4)].map(|(word, count)| (word.to_owned(), count));
        assert_eq!(collect(&mut MergedCounts::new(sources).unwrap()), expected);
        assert_eq!(collect(&mut MergedCounts::new(Vec::new()).unwrap()), []);
    }
}
