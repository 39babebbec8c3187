use std::hash::{DefaultHasher, Hash, Hasher};

/// What a workload found, in a form in which two of them can be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) rows: u64,
    /// The sum of the first eight bytes of what was read, as numbers.
    pub(crate) sum: u64,
    /// The sum of hashes, where time does not matter.
    hashes: u64,
}

fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}

impl Digest {
    /// Takes note of a value in as little time as a look at it takes.
    pub(crate) fn look_at_value(&mut self, value: &[u8]) {
        self.rows += 1;
        self.sum = self.sum.wrapping_add(number(value));
    }

    /// Takes note of a row in as little time as a look at it takes.
    pub(crate) fn look_at_row(&mut self, key: &[u8], value: &[u8]) {
        self.look_at_value(value);
        self.sum ^= number(key);
    }

    /// Takes note of a row, each of its bytes. The order of the rows does not matter.
    pub(crate) fn read_row(&mut self, key: &[u8], value: &[u8]) {
        self.look_at_value(value);
        let mut hasher = DefaultHasher::new();
        (key, value).hash(&mut hasher);
        self.hashes = self.hashes.wrapping_add(hasher.finish());
    }
}

/// Everything that a store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) rows: Digest,
    pub(crate) offset: Option<u64>,
}
