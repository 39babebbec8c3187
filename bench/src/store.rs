use crate::{
    Result,
    data::Key,
    digest::{Contents, Digest},
};

/// The changelog partition whose offset is committed, as its row is named.
pub(crate) const CHANGELOG: &str = "bench-changelog";

/// An open store, raw or kstate's: the workloads, each done as well as a careful user of it would.
pub(crate) trait Store {
    /// Puts the records from 0 to `records` in this order. Each `commit_every` of them become one atomic step, with the
    /// offset of the last one.
    fn load(&mut self, records: u64, commit_every: u64) -> Result<()>;

    /// For each of `keys`: reads its number, adds one and writes it. An offset is committed after each `commit_every`.
    fn update(&mut self, keys: &[Key], commit_every: u64) -> Result<()>;

    /// Reads the values of `keys`.
    fn get(&mut self, keys: &[Key]) -> Result<Digest>;

    /// From each of `starts` on, reads keys and values of `rows` rows.
    fn range(&mut self, starts: &[Key], rows: usize) -> Result<Digest>;

    /// Everything that is committed.
    fn contents(&mut self) -> Result<Contents>;

    /// Makes everything durable and ends.
    fn close(self: Box<Self>) -> Result<()>;
}

/// The offset of the last of `count` records.
pub(crate) fn last_offset(count: u64) -> u64 {
    count.saturating_sub(1)
}

/// Whether a commit is due after `count` of `total` records.
pub(crate) fn is_commit_due(count: u64, total: u64, commit_every: u64) -> bool {
    count.is_multiple_of(commit_every) || count == total
}

/// The number in a value; a key without a value has zero.
pub(crate) fn decode_count(value: Option<&[u8]>) -> u64 {
    value.and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_be_bytes(*bytes))
}
