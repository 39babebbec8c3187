use std::{collections::HashMap, mem};

/// Counts words the plain way: one pass over the text, character by character, into a map.
///
/// It shares nothing with the counting on Kafka but the decoded text, so that one can check the other.
#[derive(Debug, Default)]
pub(crate) struct PlainCount {
    counts: HashMap<Box<str>, u64>,
    words: u64,
    word: String,
}

impl PlainCount {
    /// Counts the words of the next piece of text; a word may begin in one and end in another.
    pub(crate) fn push(&mut self, text: &str) {
        for c in text.chars() {
            if c.is_alphanumeric() {
                self.word.push(c);
            } else {
                self.end_word();
            }
        }
    }

    /// Ends the text, and the word in it that has not ended yet.
    pub(crate) fn finish(&mut self) {
        self.end_word();
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let word = mem::take(&mut self.word);
        let lower = word.to_lowercase();
        match self.counts.get_mut(lower.as_str()) {
            Some(count) => *count += 1,
            None => {
                self.counts.insert(lower.into_boxed_str(), 1);
            }
        }
        self.words += 1;
        self.word = word;
        self.word.clear();
    }

    /// How many words there were.
    pub(crate) const fn words(&self) -> u64 {
        self.words
    }

    /// How many different words are left.
    pub(crate) fn distinct(&self) -> u64 {
        self.counts.len() as u64
    }

    /// Takes out the count of `word`.
    pub(crate) fn take(&mut self, word: &str) -> Option<u64> {
        self.counts.remove(word)
    }

    /// Any word that was not taken out, with its count.
    pub(crate) fn any(&self) -> Option<(&str, u64)> {
        self.counts.iter().next().map(|(word, count)| (&**word, *count))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::words::words;

    #[test]
    fn words_may_straddle_pieces() {
        let mut count = PlainCount::default();
        for piece in ["He", "llo, wor", "", "ld! HELLO"] {
            count.push(piece);
        }
        count.finish();
        assert_eq!((count.words(), count.distinct()), (3, 2));
        assert_eq!(count.take("hello"), Some(2));
        assert_eq!(count.any(), Some(("world", 1)));
        assert_eq!(count.take("hello"), None);
    }

    proptest! {
        #[test]
        fn agrees_with_the_words_of_the_whole(pieces in prop::collection::vec("[a-cA-CΣ日ß .]{0,12}", 0..12)) {
            let mut count = PlainCount::default();
            for piece in &pieces {
                count.push(piece);
            }
            count.finish();
            let mut expected = HashMap::<String, u64>::new();
            for word in words(&pieces.concat()) {
                *expected.entry(word.into_owned()).or_default() += 1;
            }
            prop_assert_eq!(count.words(), expected.values().sum::<u64>());
            for (word, times) in expected {
                prop_assert_eq!(count.take(&word), Some(times));
            }
            prop_assert_eq!(count.any(), None);
        }
    }
}
