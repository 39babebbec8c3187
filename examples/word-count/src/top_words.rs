use std::{cmp::Reverse, collections::BinaryHeap};

use serde::Serialize;

/// A word and how often it was counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct WordCount {
    pub(crate) word: String,
    pub(crate) count: u64,
}

/// The most frequent of the words it is shown, or all of them. Of equally frequent words the first in order wins.
#[derive(Debug)]
pub(crate) struct TopWords {
    /// 0: all.
    limit: usize,
    /// The least frequent is at the top, to be replaced.
    heap: BinaryHeap<Reverse<(u64, Reverse<String>)>>,
}

impl TopWords {
    /// Keeps the `limit` most frequent words; 0 keeps all.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, heap: BinaryHeap::new() }
    }

    pub(crate) fn push(&mut self, word: &str, count: u64) {
        if self.limit == 0 || self.heap.len() < self.limit {
            self.heap.push(Reverse((count, Reverse(word.to_owned()))));
            return;
        }
        if let Some(mut least) = self.heap.peek_mut() {
            let Reverse((least_count, Reverse(least_word))) = &*least;
            if (count, Reverse(word)) > (*least_count, Reverse(least_word.as_str())) {
                *least = Reverse((count, Reverse(word.to_owned())));
            }
        }
    }

    /// The words, the most frequent first.
    pub(crate) fn into_sorted(self) -> Vec<WordCount> {
        let sorted = self.heap.into_sorted_vec().into_iter();
        sorted.map(|Reverse((count, Reverse(word)))| WordCount { word, count }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn top(limit: usize) -> Vec<(String, u64)> {
        let mut top = TopWords::new(limit);
        for (word, count) in [("d", 2), ("b", 5), ("a", 2), ("e", 1), ("c", 2)] {
            top.push(word, count);
        }
        top.into_sorted().into_iter().map(|WordCount { word, count }| (word, count)).collect()
    }

    #[test]
    fn the_most_frequent_come_first_and_equals_in_order() {
        let all = [("b", 5), ("a", 2), ("c", 2), ("d", 2), ("e", 1)].map(|(word, count)| (word.to_owned(), count));
        assert_eq!(top(0), all);
        for limit in 1..=6 {
            assert_eq!(top(limit), all[..limit.min(5)], "{limit}");
        }
    }
}
