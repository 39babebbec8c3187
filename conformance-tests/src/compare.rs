use std::{fmt::Debug, sync::Arc};

use bytes::Bytes;
use kstate_api::{
    ChangelogOffsets, Cursor, Error, ErrorKind, KeyRange, KeyValueStore, Offset, Order, PartitionPosition, Position,
    ReadOnlyKeyValueStore, Result, Snapshot, StateStore, TopicPartition, VisitChange, WriteBatch,
};

mod cursor;
mod judge;
mod mismatch;
mod reads;
mod snapshot;

use cursor::CompareCursor;
use judge::{Judge, literal};
pub use mismatch::Mismatch;
use snapshot::CompareSnapshot;

/// A store that does every call twice, on a trusted store and on a candidate, and compares: for trying a new backend
/// inside one's own application, with its own traffic.
///
/// It answers what the trusted store answers, once the candidate has answered the same: values; rows of scans one by
/// one, in either direction; what `put_if_absent` found; staged changes; offsets and positions, asked for or not, after
/// each step; whether a call failed, the kind of its error, and what became of a failed step. It does *not* compare
/// messages of errors, [`persistent`](StateStore::persistent), [`durable_offset`](StateStore::durable_offset) and the
/// two numbers that are approximate: there two good stores may differ.
///
/// # What a difference does
/// It is logged as an error in any case. Then
/// - by default the call fails with an error of kind `Corrupted` whose [source](std::error::Error::source) is a
///   [`Mismatch`], and a step with the outcome `Unknown`. The pair is poisoned: everything but
///   [`close`](StateStore::close) answers `Poisoned`, for two stores that have parted have nothing more to tell. Nothing
///   can be overlooked, so this is the one for tests.
/// - with [`report_to`](Compare::report_to), the function is called and the trusted store's answer stands: a candidate
///   that is wrong, or fails, does no harm. This is the one for production.
///
/// If the trusted store is poisoned itself, by a step of which nobody can tell, nothing is compared any more.
///
/// # Threads
/// The two stores are kept in step by one lock: writes take turns, and reads, cursors' and snapshots' too, wait for
/// them. Each call takes as long as both stores take together, and a get copies its value.
///
/// # Example
/// ```
/// use kstate_api::{KeyValueStore, ReadOnlyKeyValueStoreExt, StagedStore};
/// use kstate_conformance_tests::Compare;
/// use kstate_store_memory::MemoryBackend;
///
/// # fn main() -> kstate_api::Result<()> {
/// let trusted = StagedStore::open("counts", MemoryBackend::new(), &[])?;
/// let candidate = StagedStore::open("counts", MemoryBackend::new(), &[])?;
/// candidate.put(b"word", b"2")?;
///
/// let store = Compare::new(trusted, candidate)?;
/// let error = store.get(b"word").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"store `counts`: get_with(b"word"): trusted: None, candidate: Some(b"2")"#,
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Compare<A, B> {
    trusted: A,
    candidate: B,
    judge: Arc<Judge>,
}

impl<A: KeyValueStore, B: KeyValueStore> Compare<A, B> {
    /// Compares `candidate` with `trusted`, which have the same state: both are empty, or were restored to the same
    /// offset. Their offsets and positions are compared now; for the rows see [`compare_rows`](Compare::compare_rows).
    ///
    /// # Errors
    /// `Config` if they cannot be compared: one manages offsets or is the owner of partitions, and the other not.
    /// `Corrupted`, with a [`Mismatch`], if their offsets or positions differ; or what a store says.
    ///
    /// ```
    /// # use kstate_api::StagedStore;
    /// # use kstate_conformance_tests::Compare;
    /// # use kstate_store_memory::MemoryBackend;
    /// # let open = || StagedStore::open("counts", MemoryBackend::new(), &[]).unwrap();
    /// assert!(Compare::new(open(), open()).is_ok());
    /// ```
    pub fn new(trusted: A, candidate: B) -> Result<Self> {
        let config = |what| {
            let message = format!("only one of the stores to compare {what}");
            Err(Error::new(ErrorKind::Config, message).with_store(trusted.name()))
        };
        if trusted.manages_offsets() != candidate.manages_offsets() {
            return config("manages offsets".into());
        }
        let (owned, others) = (trusted.changelog_partitions(), candidate.changelog_partitions());
        if let Some(partition) = owned.iter().chain(others).find(|p| owned.contains(p) != others.contains(p)) {
            return config(format!("owns {partition}"));
        }
        let judge = Arc::new(Judge::new(trusted.name()));
        let compare = Self { trusted, candidate, judge };
        compare.compare_offsets()?;
        Ok(compare)
    }

    /// The same pair, which calls `report` at each difference and then answers as the trusted store does, instead of
    /// failing.
    ///
    /// ```
    /// use std::sync::{Arc, atomic::{AtomicUsize, Ordering}};
    ///
    /// # use kstate_api::{KeyValueStore, ReadOnlyKeyValueStoreExt, StagedStore};
    /// # use kstate_conformance_tests::Compare;
    /// # use kstate_store_memory::MemoryBackend;
    /// # fn main() -> kstate_api::Result<()> {
    /// # let trusted = StagedStore::open("counts", MemoryBackend::new(), &[])?;
    /// # let candidate = StagedStore::open("counts", MemoryBackend::new(), &[])?;
    /// # candidate.put(b"word", b"2")?;
    /// let mismatches = Arc::new(AtomicUsize::new(0));
    /// let counter = Arc::clone(&mismatches);
    /// let store = Compare::new(trusted, candidate)?.report_to(move |_| {
    ///     counter.fetch_add(1, Ordering::Relaxed);
    /// });
    /// assert_eq!(store.get(b"word")?, None, "as in the trusted store");
    /// assert_eq!(mismatches.load(Ordering::Relaxed), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn report_to(mut self, report: impl Fn(&Mismatch) + Send + Sync + 'static) -> Self {
        let name = self.trusted.name();
        self.judge = Arc::new(Judge::new(name).reporting_to(Box::new(report)));
        self
    }

    /// The trusted store.
    pub const fn trusted(&self) -> &A {
        &self.trusted
    }

    /// The store that is compared with it.
    pub const fn candidate(&self) -> &B {
        &self.candidate
    }

    /// Compares every row, in both directions: those committed, and those staged over them.
    ///
    /// # Errors
    /// `Corrupted`, with a [`Mismatch`], at the first row that differs; or what a store says.
    ///
    /// ```
    /// # use kstate_api::StagedStore;
    /// # use kstate_conformance_tests::Compare;
    /// # use kstate_store_memory::MemoryBackend;
    /// # fn main() -> kstate_api::Result<()> {
    /// # let open = || StagedStore::open("counts", MemoryBackend::new(), &[]);
    /// let store = Compare::new(open()?, open()?)?;
    /// store.compare_rows()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn compare_rows(&self) -> Result<()> {
        for order in [Order::Ascending, Order::Descending] {
            let mut rows = self.scan(&KeyRange::all(), order)?;
            while rows.advance()? {}
        }
        Ok(())
    }

    /// Compares what no application asks for after each step.
    fn compare_offsets(&self) -> Result<()> {
        if !self.judge.compares() || !self.trusted.is_open() {
            return Ok(());
        }
        for partition in self.trusted.changelog_partitions() {
            let (trusted, candidate) =
                (self.trusted.committed_offset(partition), self.candidate.committed_offset(partition));
            self.judge.same(|| format!("committed_offset({partition})"), trusted, || candidate)?;
        }
        self.judge.same(|| "position()".into(), self.trusted.position(), || self.candidate.position()).map(drop)
    }

    /// Does a call that reads, on both.
    fn read<T: Debug + PartialEq>(
        &self,
        call: impl Fn() -> String,
        trusted: impl FnOnce(&A) -> Result<T>,
        candidate: impl FnOnce(&B) -> Result<T>,
    ) -> Result<T> {
        let _turn = self.judge.reading();
        self.judge.check()?;
        self.judge.same(call, trusted(&self.trusted), || candidate(&self.candidate))
    }

    /// Does a call that stages something, on both.
    fn write<T: Debug + PartialEq>(
        &self,
        call: impl Fn() -> String,
        trusted: impl FnOnce(&A) -> Result<T>,
        candidate: impl FnOnce(&B) -> Result<T>,
    ) -> Result<T> {
        let _turn = self.judge.writing();
        self.judge.check()?;
        self.judge.same(call, trusted(&self.trusted), || candidate(&self.candidate))
    }

    /// Does an atomic step, on both.
    fn step(
        &self,
        call: impl Fn() -> String,
        trusted: impl FnOnce(&A) -> Result<()>,
        candidate: impl FnOnce(&B) -> Result<()>,
    ) -> Result<()> {
        let _turn = self.judge.writing();
        self.judge.check_step()?;
        let result = self.judge.same_step(call, trusted(&self.trusted), || candidate(&self.candidate));
        result.and_then(|()| self.compare_offsets().map_err(Judge::of_step))
    }
}

#[deny(clippy::missing_trait_methods)]
impl<A: KeyValueStore, B: KeyValueStore> StateStore for Compare<A, B> {
    fn name(&self) -> &str {
        self.trusted.name()
    }

    fn persistent(&self) -> bool {
        self.trusted.persistent()
    }

    fn manages_offsets(&self) -> bool {
        self.trusted.manages_offsets()
    }

    fn changelog_partitions(&self) -> &[TopicPartition] {
        self.trusted.changelog_partitions()
    }

    fn commit(&self, changelog_offsets: &ChangelogOffsets) -> Result<()> {
        let call = || format!("commit({changelog_offsets:?})");
        self.step(call, |store| store.commit(changelog_offsets), |store| store.commit(changelog_offsets))
    }

    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        let call = || format!("committed_offset({partition})");
        self.read(call, |store| store.committed_offset(partition), |store| store.committed_offset(partition))
    }

    /// That of the trusted store: two good stores may differ.
    fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        let _turn = self.judge.reading();
        self.judge.check()?;
        let answer = self.trusted.durable_offset(partition);
        let candidate = || self.candidate.durable_offset(partition);
        self.judge.same_failure(|| format!("durable_offset({partition})"), answer, candidate)
    }

    fn forget_offsets(&self) -> Result<()> {
        self.step(|| "forget_offsets()".into(), A::forget_offsets, B::forget_offsets)
    }

    fn stage_position(&self, partition: &TopicPartition, position: PartitionPosition) -> Result<()> {
        let call = || format!("stage_position({partition}, {position})");
        let (of_a, of_b) = (position.clone(), position.clone());
        self.write(call, |store| store.stage_position(partition, of_a), |store| store.stage_position(partition, of_b))
    }

    fn position(&self) -> Result<Position> {
        self.read(|| "position()".into(), A::position, B::position)
    }

    fn staged_changes(&self, visit: &mut VisitChange<'_>) -> Result<()> {
        let _turn = self.judge.reading();
        self.judge.check()?;
        // Before they are shown: what is shown cannot be taken back.
        let staged = reads::staged_changes(&self.trusted);
        let call = || "staged_changes(..)".into();
        let staged = self.judge.same(call, staged, || reads::staged_changes(&self.candidate))?;
        staged.iter().try_for_each(|(key, value)| visit(key, value.as_deref()))
    }

    fn committed_value(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let call = || format!("committed_value({})", literal(key));
        self.read(call, |store| store.committed_value(key), |store| store.committed_value(key))
    }

    /// About how much the trusted store has staged: two good stores may differ, but for nothing at all.
    fn uncommitted_bytes(&self) -> u64 {
        let _turn = self.judge.reading();
        let bytes = self.trusted.uncommitted_bytes();
        let (trusted, candidate) = (Ok(bytes == 0), || Ok(self.candidate.uncommitted_bytes() == 0));
        // This call cannot fail: the ones after it do.
        let _ = self.judge.same(|| "uncommitted_bytes() == 0".into(), trusted, candidate);
        bytes
    }

    fn rollback(&self) -> Result<()> {
        self.write(|| "rollback()".into(), A::rollback, B::rollback)
    }

    fn restore(&self, batch: &WriteBatch) -> Result<()> {
        let call = || format!("restore({} records with {:?})", batch.len(), batch.offsets());
        self.step(call, |store| store.restore(batch), |store| store.restore(batch))
    }

    fn flush(&self) -> Result<()> {
        self.write(|| "flush()".into(), A::flush, B::flush)
    }

    fn wipe(&self) -> Result<()> {
        self.step(|| "wipe()".into(), A::wipe, B::wipe)
    }

    fn is_open(&self) -> bool {
        self.trusted.is_open() && !self.judge.is_poisoned()
    }

    /// Closes both, whatever one of them says.
    fn close(&self) -> Result<()> {
        let _turn = self.judge.writing();
        let (trusted, candidate) = (self.trusted.close(), self.candidate.close());
        self.judge.close();
        self.judge.same(|| "close()".into(), trusted, || candidate)
    }
}

#[deny(clippy::missing_trait_methods)]
impl<A: KeyValueStore, B: KeyValueStore> ReadOnlyKeyValueStore for Compare<A, B> {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let _turn = self.judge.reading();
        self.judge.check()?;
        reads::get_with(&self.judge, &self.trusted, &self.candidate, key, read)
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        let _turn = self.judge.reading();
        self.judge.check()?;
        CompareCursor::scan(&self.judge, &self.trusted, &self.candidate, range, order)
    }

    /// About how many rows the trusted store has: two good stores may differ.
    fn approximate_num_entries(&self) -> Result<u64> {
        let _turn = self.judge.reading();
        self.judge.check()?;
        let answer = self.trusted.approximate_num_entries();
        let candidate = || self.candidate.approximate_num_entries();
        self.judge.same_failure(|| "approximate_num_entries()".into(), answer, candidate)
    }
}

#[deny(clippy::missing_trait_methods)]
impl<A: KeyValueStore, B: KeyValueStore> KeyValueStore for Compare<A, B> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let call = || format!("put({}, {})", literal(key), literal(value));
        self.write(call, |store| store.put(key, value), |store| store.put(key, value))
    }

    fn put_all(&self, entries: &[(&[u8], Option<&[u8]>)]) -> Result<()> {
        let call = || format!("put_all({} entries)", entries.len());
        self.write(call, |store| store.put_all(entries), |store| store.put_all(entries))
    }

    fn put_if_absent(&self, key: &[u8], value: &[u8]) -> Result<Option<Bytes>> {
        let call = || format!("put_if_absent({}, {})", literal(key), literal(value));
        self.write(call, |store| store.put_if_absent(key, value), |store| store.put_if_absent(key, value))
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.write(|| format!("delete({})", literal(key)), |store| store.delete(key), |store| store.delete(key))
    }

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        let _turn = self.judge.reading();
        self.judge.check()?;
        CompareSnapshot::take(&self.judge, self.trusted.snapshot(), || self.candidate.snapshot())
    }
}
