use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use kstate_api::{
    ChangelogOffsets, CommitOutcome, Cursor, Error, ErrorKind, KeyRange, KeyValueStore, Offset, Order,
    PartitionPosition, Position, ReadOnlyKeyValueStore, Result, Snapshot, StateStore, TopicPartition, VisitChange,
    WriteBatch,
};

use crate::{
    Faults,
    faulty_views::{FaultyCursor, FaultySnapshot},
};

/// A store that fails as its [`Faults`] say, and otherwise does what the one below does: for tests of what an
/// application does about errors.
///
/// It keeps the contract while it fails. After a step of unknown outcome it is poisoned: everything but
/// [`close`](StateStore::close) answers `Poisoned`, and opening the store below again shows whether the step was done.
/// A step that is refused leaves everything staged. A cursor that has failed fails for good.
///
/// To let the engine fail below a real [`StagedStore`](kstate_api::StagedStore), use a
/// [`FaultyBackend`](crate::FaultyBackend).
///
/// ```
/// use kstate_api::{
///     ChangelogOffsets, CommitOutcome, Error, KeyValueStore, ReadOnlyKeyValueStoreExt, Result, StagedStore, StateStore,
/// };
/// use kstate_conformance_tests::{FaultRates, Faults, Faulty, Injected, StepFault};
/// use kstate_store_memory::MemoryBackend;
///
/// /// The application: it repeats a commit that was not applied, and gives up on any other error.
/// fn count(store: &dyn KeyValueStore, word: &[u8]) -> Result<()> {
///     store.put(word, b"1")?;
///     loop {
///         match store.commit(&ChangelogOffsets::new()) {
///             Err(error) if error.commit_outcome() == Some(CommitOutcome::NotApplied) && store.is_open() => {}
///             result => return result,
///         }
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let store = || StagedStore::open("counts", MemoryBackend::new(), &[]);
///
/// // By hand: two commits are refused, and the one after that is lost.
/// let faults = Faults::new();
/// faults.plan_steps([Some(StepFault::Refused), Some(StepFault::Refused), None, Some(StepFault::LostBefore)]);
/// let faulty = Faulty::new(store()?, faults);
/// count(&faulty, b"a")?;
/// assert_eq!(faulty.snapshot()?.get(b"a")?.unwrap(), "1");
/// assert_eq!(count(&faulty, b"b").unwrap_err().commit_outcome(), Some(CommitOutcome::Unknown));
/// assert!(!faulty.is_open(), "the application has to open its store again");
///
/// // By chance, for many seeds. A test that met no fault has shown nothing.
/// let mut met = 0;
/// for seed in 0..20 {
///     let faults = Faults::seeded(seed, FaultRates { refused: 300, lost_after: 50, ..FaultRates::NONE });
///     let faulty = Faulty::new(store()?, faults.clone());
///     for word in [b"a", b"b", b"c"] {
///         if count(&faulty, word).is_err() {
///             break;
///         }
///     }
///     met += faults.injected().len();
/// }
/// assert!(met > 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Faulty<S> {
    store: S,
    faults: Faults,
    poisoned: AtomicBool,
}

impl<S: StateStore> Faulty<S> {
    /// Puts `faults` before `store`.
    ///
    /// ```
    /// # use kstate_api::StagedStore;
    /// # use kstate_conformance_tests::{Faults, Faulty};
    /// # use kstate_store_memory::MemoryBackend;
    /// # let store = StagedStore::open("counts", MemoryBackend::new(), &[]).unwrap();
    /// let faulty = Faulty::new(store, Faults::new());
    /// ```
    pub const fn new(store: S, faults: Faults) -> Self {
        Self { store, faults, poisoned: AtomicBool::new(false) }
    }

    /// The store below, which knows of no fault.
    ///
    /// ```
    /// # use kstate_api::{StagedStore, StateStore};
    /// # use kstate_conformance_tests::{Faults, Faulty};
    /// # use kstate_store_memory::MemoryBackend;
    /// # let store = StagedStore::open("counts", MemoryBackend::new(), &[]).unwrap();
    /// assert_eq!(Faulty::new(store, Faults::new()).store().name(), "counts");
    /// ```
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// An error once an injected fault has poisoned the store, until it is closed.
    fn check(&self) -> Result<()> {
        if self.poisoned.load(Ordering::Acquire) {
            let message = "an earlier step may or may not have happened; close the store and open it again";
            return Err(Error::new(ErrorKind::Poisoned, message).with_store(self.store.name()));
        }
        Ok(())
    }

    /// Runs a step of the store below, or fails instead or afterwards.
    fn step(&self, step: impl FnOnce() -> Result<()>) -> Result<()> {
        self.check().map_err(|error| error.with_commit_outcome(CommitOutcome::NotApplied))?;
        // A store that is closed, or poisoned by itself, has its own answer.
        if !self.store.is_open() {
            return step();
        }
        self.faults.step(step).map_err(|error| {
            let outcome = error.commit_outcome().unwrap_or(CommitOutcome::Unknown);
            if outcome == CommitOutcome::Unknown {
                self.poisoned.store(true, Ordering::Release);
            }
            error.with_store(self.store.name()).with_commit_outcome(outcome)
        })
    }

    /// What a read answers before the store below is asked.
    fn read(&self) -> Result<()> {
        self.check()?;
        if self.store.is_open() {
            self.faults.read().map_err(|error| error.with_store(self.store.name()))
        } else {
            Ok(())
        }
    }
}

#[deny(clippy::missing_trait_methods)]
impl<S: StateStore> StateStore for Faulty<S> {
    fn name(&self) -> &str {
        self.store.name()
    }

    fn persistent(&self) -> bool {
        self.store.persistent()
    }

    fn manages_offsets(&self) -> bool {
        self.store.manages_offsets()
    }

    fn changelog_partitions(&self) -> &[TopicPartition] {
        self.store.changelog_partitions()
    }

    fn commit(&self, changelog_offsets: &ChangelogOffsets) -> Result<()> {
        self.step(|| self.store.commit(changelog_offsets))
    }

    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.check()?;
        self.store.committed_offset(partition)
    }

    fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.check()?;
        self.store.durable_offset(partition)
    }

    fn forget_offsets(&self) -> Result<()> {
        self.step(|| self.store.forget_offsets())
    }

    fn stage_position(&self, partition: &TopicPartition, position: PartitionPosition) -> Result<()> {
        self.check()?;
        self.store.stage_position(partition, position)
    }

    fn position(&self) -> Result<Position> {
        self.check()?;
        self.store.position()
    }

    fn staged_changes(&self, visit: &mut VisitChange<'_>) -> Result<()> {
        self.check()?;
        self.store.staged_changes(visit)
    }

    fn committed_value(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.check()?;
        self.store.committed_value(key)
    }

    fn uncommitted_bytes(&self) -> u64 {
        self.store.uncommitted_bytes()
    }

    fn rollback(&self) -> Result<()> {
        self.check()?;
        self.store.rollback()
    }

    fn restore(&self, batch: &WriteBatch) -> Result<()> {
        self.step(|| self.store.restore(batch))
    }

    fn flush(&self) -> Result<()> {
        self.check()?;
        if !self.store.is_open() {
            return self.store.flush();
        }
        self.faults.flush(|| self.store.flush()).map_err(|error| error.with_store(self.store.name()))
    }

    fn wipe(&self) -> Result<()> {
        self.step(|| self.store.wipe())
    }

    fn is_open(&self) -> bool {
        self.store.is_open() && self.check().is_ok()
    }

    fn close(&self) -> Result<()> {
        let closed = self.store.close();
        // From here on the store below answers `Closed`.
        self.poisoned.store(false, Ordering::Release);
        closed
    }
}

#[deny(clippy::missing_trait_methods)]
impl<S: StateStore + ReadOnlyKeyValueStore> ReadOnlyKeyValueStore for Faulty<S> {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.read()?;
        self.store.get_with(key, read)
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        self.check()?;
        Ok(FaultyCursor::wrap(self.store.scan(range, order)?, &self.faults))
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        self.check()?;
        self.store.approximate_num_entries()
    }
}

#[deny(clippy::missing_trait_methods)]
impl<S: KeyValueStore> KeyValueStore for Faulty<S> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check()?;
        self.store.put(key, value)
    }

    fn put_all(&self, entries: &[(&[u8], Option<&[u8]>)]) -> Result<()> {
        self.check()?;
        self.store.put_all(entries)
    }

    fn put_if_absent(&self, key: &[u8], value: &[u8]) -> Result<Option<Bytes>> {
        // It reads before it writes.
        self.read()?;
        self.store.put_if_absent(key, value)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.check()?;
        self.store.delete(key)
    }

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        self.check()?;
        Ok(FaultySnapshot::wrap(self.store.snapshot()?, &self.faults))
    }
}
