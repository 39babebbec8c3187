use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufReader, BufWriter, Read as _, Seek as _, Write as _},
    mem, vec,
};

use crate::{
    failure::Failure,
    merge::{MergedCounts, SortedCounts},
};

/// How many bytes of words and counts are kept in memory; what is more goes to temporary files.
const MEMORY_BYTES: usize = 48 << 20;
/// What a word costs beyond its bytes: the map's entry and the allocation, roughly.
const WORD_OVERHEAD: usize = 64;

/// Counts words the plain way: one pass over the text, character by character, into a map.
///
/// It shares nothing of the way over Kafka and the stores, so that one can check the other.
#[derive(Debug)]
pub(crate) struct PlainCount {
    memory_bytes: usize,
    counts: HashMap<Box<str>, u64>,
    bytes: usize,
    /// Sorted counts of what did not fit into memory.
    runs: Vec<File>,
    words: u64,
    word: String,
}

impl Default for PlainCount {
    fn default() -> Self {
        Self::new(MEMORY_BYTES)
    }
}

impl PlainCount {
    fn new(memory_bytes: usize) -> Self {
        Self { memory_bytes, counts: HashMap::new(), bytes: 0, runs: Vec::new(), words: 0, word: String::new() }
    }

    /// Counts the words of the next piece of text; a word may begin in one and end in another.
    pub(crate) fn push(&mut self, text: &str) -> Result<(), Failure> {
        for c in text.chars() {
            if c.is_alphanumeric() {
                self.word.push(c);
            } else if !self.word.is_empty() {
                self.end_word();
            }
        }
        if self.bytes < self.memory_bytes { Ok(()) } else { self.spill().map_err(Failure::PlainCount) }
    }

    fn end_word(&mut self) {
        let lower = self.word.to_lowercase();
        self.word.clear();
        self.words += 1;
        if let Some(count) = self.counts.get_mut(lower.as_str()) {
            *count += 1;
        } else {
            self.bytes += lower.len() + WORD_OVERHEAD;
            self.counts.insert(lower.into_boxed_str(), 1);
        }
    }

    /// Moves what is in memory to a file, sorted.
    fn spill(&mut self) -> io::Result<()> {
        let mut file = BufWriter::new(tempfile::tempfile()?);
        for (word, count) in self.take_sorted() {
            let len = u32::try_from(word.len()).map_err(io::Error::other)?;
            file.write_all(&len.to_be_bytes())?;
            file.write_all(word.as_bytes())?;
            file.write_all(&count.to_be_bytes())?;
        }
        let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        self.runs.push(file);
        Ok(())
    }

    fn take_sorted(&mut self) -> vec::IntoIter<(Box<str>, u64)> {
        self.bytes = 0;
        let mut sorted = mem::take(&mut self.counts).into_iter().collect::<Vec<_>>();
        sorted.sort_unstable();
        sorted.into_iter()
    }

    /// Ends the text; returns how many words there were, and each with its count.
    pub(crate) fn finish(mut self) -> Result<(u64, MergedCounts), Failure> {
        if !self.word.is_empty() {
            self.end_word();
        }
        let mut sources: Vec<Box<dyn SortedCounts>> = vec![Box::new(self.take_sorted())];
        for run in self.runs {
            sources.push(Box::new(Run(BufReader::new(run))));
        }
        Ok((self.words, MergedCounts::new(sources)?))
    }
}

impl SortedCounts for vec::IntoIter<(Box<str>, u64)> {
    fn next_count(&mut self) -> Result<Option<(String, u64)>, Failure> {
        Ok(self.next().map(|(word, count)| (word.into_string(), count)))
    }
}

/// What was moved to a file.
struct Run(BufReader<File>);

impl SortedCounts for Run {
    fn next_count(&mut self) -> Result<Option<(String, u64)>, Failure> {
        self.read().map_err(Failure::PlainCount)
    }
}

impl Run {
    fn read(&mut self) -> io::Result<Option<(String, u64)>> {
        let mut len = [0; 4];
        match self.0.read_exact(&mut len) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let mut word = vec![0; usize::try_from(u32::from_be_bytes(len)).map_err(io::Error::other)?];
        self.0.read_exact(&mut word)?;
        let mut count = [0; 8];
        self.0.read_exact(&mut count)?;
        let word = String::from_utf8(word).map_err(io::Error::other)?;
        Ok(Some((word, u64::from_be_bytes(count))))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::{merge::tests::collect, words::words};

    fn count(memory_bytes: usize, pieces: &[&str]) -> (u64, usize, Vec<(String, u64)>) {
        let mut count = PlainCount::new(memory_bytes);
        for piece in pieces {
            count.push(piece).unwrap();
        }
        let runs = count.runs.len();
        let (words, mut counts) = count.finish().unwrap();
        (words, runs, collect(&mut counts))
    }

    #[test]
    fn words_may_straddle_pieces() {
        let (words, _, counts) = count(MEMORY_BYTES, &["He", "llo, wor", "", "ld! HELLO"]);
        assert_eq!((words, counts), (3, vec![("hello".into(), 2), ("world".into(), 1)]));
    }

    #[test]
    fn what_does_not_fit_into_memory_counts_too() {
        let (words, runs, counts) = count(WORD_OVERHEAD + 2, &["b ", "a c ", "b b a ", "a"]);
        assert_eq!(runs, 2);
        assert_eq!((words, counts), (7, vec![("a".into(), 3), ("b".into(), 3), ("c".into(), 1)]));
    }

    proptest! {
        #[test]
        fn agrees_with_the_words_of_the_whole(
            pieces in prop::collection::vec("[a-cA-CΣ日ß .]{0,12}", 0..12),
            memory_words in 1..8_usize,
        ) {
            let pieces = pieces.iter().map(String::as_str).collect::<Vec<_>>();
            let mut expected = BTreeMap::<String, u64>::new();
            for word in words(&pieces.concat()) {
                *expected.entry(word.into_owned()).or_default() += 1;
            }
            let (words, _, counts) = count(memory_words * WORD_OVERHEAD, &pieces);
            prop_assert_eq!(words, expected.values().sum::<u64>());
            prop_assert_eq!(counts, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
