use std::{borrow::Cow, mem, str};

/// Decodes UTF-8 that comes in pieces, whichever bytes they are cut at. What is not UTF-8 becomes U+FFFD.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The beginning of a character whose end has not come yet: at most three bytes.
    begun: Vec<u8>,
}

impl Decoder {
    /// Appends the text of `bytes` to `text`.
    pub(crate) fn push(&mut self, bytes: &[u8], text: &mut String) {
        let bytes = if self.begun.is_empty() {
            Cow::Borrowed(bytes)
        } else {
            let mut joined = mem::take(&mut self.begun);
            joined.extend_from_slice(bytes);
            Cow::Owned(joined)
        };
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            if chunks.peek().is_none() && is_incomplete(invalid) {
                self.begun = invalid.to_vec();
            } else {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    /// Ends the input: a character that was begun will not be completed.
    pub(crate) fn finish(&mut self, text: &mut String) {
        if !mem::take(&mut self.begun).is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Whether more bytes could make these a character.
fn is_incomplete(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(pieces: &[&[u8]]) -> String {
        let (mut decoder, mut text) = (Decoder::default(), String::new());
        for piece in pieces {
            decoder.push(piece, &mut text);
        }
        decoder.finish(&mut text);
        text
    }

    #[test]
    fn a_character_may_come_byte_by_byte() {
        assert_eq!(decode(&[b"\xF0", b"\x9F", b"\xA6", b"\x80!"]), "🦀!");
        assert_eq!(decode(&[b"a\xC3", b"", b"\xA4"]), "aä");
    }

    #[test]
    fn a_character_that_never_ends_is_replaced() {
        assert_eq!(decode(&[b"a\xF0\x9F"]), "a\u{FFFD}");
        assert_eq!(decode(&[b"\xF0\x9F", b"ab"]), "\u{FFFD}ab");
    }

    proptest! {
        #[test]
        fn pieces_decode_as_the_whole(
            // Lead and continuation bytes often enough to make characters, whole and broken.
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0x80..=0xBFu8, Just(0xF0), Just(0xE2), Just(b'a')], 0..200),
            size in 1..9usize,
        ) {
            let pieces = bytes.chunks(size).collect::<Vec<_>>();
            prop_assert_eq!(decode(&pieces), String::from_utf8_lossy(&bytes));
        }
    }
}
