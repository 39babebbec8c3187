use std::{borrow::Borrow, cmp::Ordering, iter, sync::Arc};

/// A key and its value in one allocation, equal to and ordered as its key alone.
///
/// Compared to two handles it costs one cache miss instead of four to look at, and one count to clone.
#[derive(Clone)]
pub(crate) struct Row {
    bytes: Arc<[u8]>,
    key_len: usize,
}

impl Row {
    pub(crate) fn new(key: &[u8], value: &[u8]) -> Self {
        let mut bytes: Arc<[u8]> = iter::repeat_n(0, key.len() + value.len()).collect();
        // The only handle so far.
        if let Some(bytes) = Arc::get_mut(&mut bytes) {
            let (key_part, value_part) = bytes.split_at_mut(key.len());
            key_part.copy_from_slice(key);
            value_part.copy_from_slice(value);
        }
        Self { bytes, key_len: key.len() }
    }

    pub(crate) fn key(&self) -> &[u8] {
        self.bytes.split_at(self.key_len).0
    }

    pub(crate) fn value(&self) -> &[u8] {
        self.bytes.split_at(self.key_len).1
    }
}

impl Borrow<[u8]> for Row {
    fn borrow(&self) -> &[u8] {
        self.key()
    }
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Row {}

impl PartialOrd for Row {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Row {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(other.key())
    }
}
