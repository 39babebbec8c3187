use std::mem;

use crate::words::MAX_WORD_BYTES;

/// There is a word of more than [`MAX_WORD_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WordTooLong;

/// Cuts text that comes in pieces into chunks, between words and never within one.
#[derive(Debug)]
pub(crate) struct Chunker {
    target: usize,
    pending: String,
    /// So many bytes of `pending` are known to be one word that has not ended.
    within_word: usize,
}

impl Chunker {
    /// Cuts chunks of at most `target` bytes, except that a longer word is a chunk of its own.
    pub(crate) fn new(target: usize) -> Self {
        Self { target: target.clamp(1, MAX_WORD_BYTES), pending: String::new(), within_word: 0 }
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.pending.push_str(text);
    }

    /// The next chunk, if the text so far is enough for one.
    pub(crate) fn next_chunk(&mut self) -> Result<Option<String>, WordTooLong> {
        if self.pending.len() < self.target {
            return Ok(None);
        }
        Ok(self.cut()?.map(|cut| {
            let rest = self.pending.split_off(cut);
            mem::replace(&mut self.pending, rest)
        }))
    }

    /// The last chunk, once no text is to come and [`next_chunk`](Self::next_chunk) has no more.
    pub(crate) fn finish(&mut self) -> Option<String> {
        self.within_word = 0;
        Some(mem::take(&mut self.pending)).filter(|rest| !rest.is_empty())
    }

    /// Where to cut `pending`.
    fn cut(&mut self) -> Result<Option<usize>, WordTooLong> {
        let target = (0..=self.target).rev().find(|&at| self.pending.is_char_boundary(at)).unwrap_or(0);
        let (head, _) = self.pending.split_at(target);
        if self.within_word < target
            && let Some(cut) = head.char_indices().rev().find_map(|(at, c)| after_separator(at, c))
        {
            self.within_word = 0;
            return Ok(Some(cut));
        }
        // The chunk begins with a word as long as all of `head`: it ends where the word does.
        let scanned = self.within_word.max(target);
        let (_, unknown) = self.pending.split_at(scanned);
        let end = unknown.char_indices().find(|(_, c)| !c.is_alphanumeric());
        let word = end.map_or(self.pending.len(), |(at, _)| scanned + at);
        if word > MAX_WORD_BYTES {
            return Err(WordTooLong);
        }
        self.within_word = if end.is_some() { 0 } else { word };
        Ok(end.and_then(|(at, c)| after_separator(scanned + at, c)))
    }
}

fn after_separator(at: usize, c: char) -> Option<usize> {
    (!c.is_alphanumeric()).then(|| at + c.len_utf8())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::words::words;

    fn chunks(pieces: &[&str], target: usize) -> Result<Vec<String>, WordTooLong> {
        let (mut chunker, mut chunks) = (Chunker::new(target), Vec::new());
        for piece in pieces {
            chunker.push(piece);
            while let Some(chunk) = chunker.next_chunk()? {
                chunks.push(chunk);
            }
        }
        chunks.extend(chunker.finish());
        Ok(chunks)
    }

    #[test]
    fn cuts_after_the_last_separator_that_fits() {
        assert_eq!(chunks(&["one two three"], 9).unwrap(), ["one two ", "three"]);
        assert_eq!(chunks(&["one", "two th", "ree"], 8).unwrap(), ["onetwo ", "three"]);
        assert_eq!(chunks(&["äöü äöü"], 8).unwrap(), ["äöü ", "äöü"]);
        assert_eq!(chunks(&[""], 8).unwrap(), [""; 0]);
    }

    #[test]
    fn a_long_word_is_a_chunk_of_its_own() {
        assert_eq!(chunks(&["a abcdefghi", "jkl", "mno b"], 4).unwrap(), ["a ", "abcdefghijklmno ", "b"]);
    }

    #[test]
    fn a_word_has_a_longest_length() {
        let longest = "x".repeat(MAX_WORD_BYTES);
        assert_eq!(chunks(&[&longest], 10).unwrap(), [longest.as_str()]);
        assert_eq!(chunks(&["a ", &longest, " b"], 10).unwrap().len(), 3);
        assert_eq!(chunks(&["a ", &longest, "x", " b"], 10), Err(WordTooLong));
        assert_eq!(chunks(&["a ", &longest, "x"], MAX_WORD_BYTES), Err(WordTooLong));
    }

    proptest! {
        #[test]
        fn chunks_have_the_words_of_the_whole(
            pieces in prop::collection::vec("[a-zäΣ日 \n.]{0,20}", 0..20),
            target in 1..40usize,
        ) {
            let pieces = pieces.iter().map(String::as_str).collect::<Vec<_>>();
            let whole = pieces.concat();
            let chunks = chunks(&pieces, target).unwrap();
            prop_assert_eq!(chunks.concat(), whole.clone());
            prop_assert!(chunks.iter().all(|chunk| !chunk.is_empty()));
            prop_assert_eq!(chunks.iter().flat_map(|chunk| words(chunk)).collect::<Vec<_>>(), words(&whole).collect::<Vec<_>>());
            let too_large = chunks.iter().find(|chunk| chunk.len() > target && words(chunk).count() > 1);
            prop_assert_eq!(too_large, None);
        }
    }
}
