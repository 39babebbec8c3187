use std::borrow::Cow;

/// The longest word there may be, in bytes of UTF-8: it becomes one key of the store and of the changelog.
pub(crate) const MAX_WORD_BYTES: usize = 256 << 10;

/// The words of `text`: maximal runs of characters that are alphabetic or numeric in Unicode, lower-cased.
pub(crate) fn words(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()).map(lower_case)
}

/// A word is lower-cased as a whole, for some letters depend on their place in it: Σ is ς at its end.
fn lower_case(run: &str) -> Cow<'_, str> {
    if run.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
        Cow::Borrowed(run)
    } else {
        Cow::Owned(run.to_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<Cow<'_, str>> {
        words(text).collect()
    }

    #[test]
    fn everything_else_separates() {
        assert_eq!(of("don't stop_here, x2-3!\n"), ["don", "t", "stop", "here", "x2", "3"]);
        assert_eq!(of(" \t\n"), [""; 0]);
        assert_eq!(of(""), [""; 0]);
        assert_eq!(of("a\u{FFFD}b"), ["a", "b"]);
    }

    #[test]
    fn words_are_those_of_any_script() {
        assert_eq!(of("Ärger naïve 日本語 ٣٤ ½"), ["ärger", "naïve", "日本語", "٣٤", "½"]);
    }

    #[test]
    fn lower_case_is_that_of_the_whole_word() {
        assert_eq!(of("ΟΔΟΣ ΟΔΟΣΑ STRASSE İ"), ["οδος", "οδοσα", "strasse", "i\u{307}"]);
    }
}
