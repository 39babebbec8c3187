//! What is put, and what is asked for.

use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};
use rand_distr::{Distribution, Zipf};

use crate::{Result, arguments::Arguments};

pub(crate) const VALUE_LEN: usize = 100;
/// The rest of a value is constant, as much of a real one is.
const RANDOM_LEN: usize = 50;
const ZIPF_EXPONENT: f64 = 0.99;
/// How many rows one scan reads.
pub(crate) const ROWS_OF_A_SCAN: usize = 100;
const STAGED: u64 = 10_000;

pub(crate) type Key = [u8; 16];
pub(crate) type Value = [u8; VALUE_LEN];

/// The step and the finaliser of `SplitMix64`: a bijection, so that different numbers make different keys.
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

fn fill(bytes: &mut [u8], seed: u64) {
    for (number, part) in (seed..).zip(bytes.chunks_mut(8)) {
        let random = mix(number).to_be_bytes();
        part.copy_from_slice(random.split_at(part.len()).0);
    }
}

/// The key of record `index`.
pub(crate) fn key(index: u64) -> Key {
    let mut key = [0; 16];
    fill(&mut key, index << 1);
    key
}

/// The value of record `index`.
pub(crate) fn value(index: u64) -> Value {
    let mut value = [b'k'; VALUE_LEN];
    fill(value.split_at_mut(RANDOM_LEN).0, index << 3);
    value
}

/// How much of what, for stores of a number of records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) records: u64,
    pub(crate) commit_every: u64,
}

impl Sizes {
    pub(crate) fn new(arguments: &Arguments) -> Self {
        Self { records: arguments.records, commit_every: arguments.commit_every }
    }

    /// Keys of records, each as likely as any other.
    fn hits(self, count: u64, seed: u64) -> Vec<Key> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..count.max(1)).map(|_| key(random.random_range(0..self.records))).collect()
    }

    pub(crate) fn gets(self) -> Vec<Key> {
        self.hits(self.records * 3 / 10, 1)
    }

    pub(crate) fn scan_starts(self) -> Vec<Key> {
        self.hits(self.records / 50, 2)
    }

    /// The numbers of the records that are staged where a workload runs over staged ones.
    pub(crate) fn staged(self) -> impl Iterator<Item = u64> {
        (0..self.records).step_by(usize::try_from(self.records / STAGED).unwrap_or(1).max(1))
    }

    /// The keys to update, one after the other: as many as there are records, of a tenth as many keys.
    pub(crate) fn updates(self) -> Result<Vec<Key>> {
        let keys = (self.records / 10).max(1);
        #[expect(clippy::cast_precision_loss, reason = "there are far fewer keys than 2^52")]
        let ranks = Zipf::new(keys as f64, ZIPF_EXPONENT)?;
        let random = Xoshiro256PlusPlus::seed_from_u64(3);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rank is a whole number from one on"
        )]
        let updates = ranks.sample_iter(random).map(|rank| key(rank as u64));
        Ok(updates.take(usize::try_from(self.records)?).collect())
    }
}
