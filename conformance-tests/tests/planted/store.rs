//! A toy store: staging over the toy backend. It keeps the contract, but for its bug.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use bytes::Bytes;
use kstate_api::{
    Backend, BackendSupplier, ChangelogOffsets, CommitOutcome, Durability, Error, ErrorKind, KeyValueStore, Offset,
    Position, ReadOnlyKeyValueStoreExt, Result, StagedStore, StateStore, TopicPartition, VisitChange, WriteBatch,
};
use kstate_conformance_tests::{Faults, FaultyBackend, Harness, Told};

use super::{
    backend::{ToyBackend, ToyBackends},
    bug::Bug,
};

/// Opens toy stores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToyHarness {
    pub(crate) backends: ToyBackends,
    /// Whether the store manages no offsets, has no snapshots and scans in one direction only.
    pub(crate) modest: bool,
}

impl ToyHarness {
    pub(crate) const fn new(bug: Bug, durability: Durability) -> Self {
        Self { backends: ToyBackends { bug, durability }, modest: false }
    }

    fn open_toy(self, directory: &Path, partitions: &[TopicPartition], faults: Option<&Faults>) -> Result<ToyStore> {
        let bug = self.backends.bug;
        let backend = Arc::new(self.backends.open(directory)?);
        let mut owned = partitions.to_vec();
        if bug == Bug::OffsetsAreStoredByPlace {
            owned.iter().try_for_each(TopicPartition::validate)?;
            owned = (0..).zip(&owned).map(|(place, _)| TopicPartition::new("place", place)).collect();
        }
        if bug == Bug::BadPartitionIsAccepted {
            owned.retain(|partition| partition.validate().is_ok());
        }
        let inner: Arc<dyn KeyValueStore> = match faults {
            None => Arc::new(StagedStore::open("toy", Arc::clone(&backend), &owned)?),
            Some(faults) => {
                let failing = FaultyBackend::new(Arc::clone(&backend), faults.clone());
                Arc::new(StagedStore::open("toy", failing, &owned)?)
            }
        };
        Ok(ToyStore { bug, modest: self.modest, inner, backend, pending: Mutex::default(), owned: partitions.into() })
    }
}

impl Harness for ToyHarness {
    type Store = ToyStore;

    fn open(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<ToyStore> {
        self.open_toy(directory, changelog_partitions, None)
    }

    fn durability(&self, store: &ToyStore) -> Told<Option<Durability>> {
        if self.modest { Told::Nothing } else { Told::This(store.backend.capabilities().durability()) }
    }

    fn read_offsets(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
        if self.modest {
            return Err(Error::new(ErrorKind::Unsupported, "the modest toy does not"));
        }
        self.backends.read_offsets(directory, changelog_partitions)
    }

    fn open_faulty(
        &self,
        directory: &Path,
        changelog_partitions: &[TopicPartition],
        faults: &Faults,
    ) -> Result<Arc<dyn KeyValueStore>> {
        if self.modest {
            return Err(Error::new(ErrorKind::Unsupported, "the modest toy does not fail"));
        }
        Ok(Arc::new(self.open_toy(directory, changelog_partitions, Some(faults))?))
    }
}

/// What the bugs have to remember.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    position: BTreeMap<TopicPartition, Offset>,
    offsets: ChangelogOffsets,
    half: Option<WriteBatch>,
    pub(crate) ever_staged: u64,
    most_staged: u64,
    failed: bool,
    closed: bool,
}

#[derive(Debug)]
pub(crate) struct ToyStore {
    pub(crate) bug: Bug,
    pub(crate) modest: bool,
    pub(crate) inner: Arc<dyn KeyValueStore>,
    pub(crate) backend: Arc<ToyBackend>,
    pending: Mutex<Pending>,
    owned: Box<[TopicPartition]>,
}

type Changes = Vec<(Bytes, Option<Bytes>)>;

impl ToyStore {
    pub(crate) fn pending<T>(&self, with: impl FnOnce(&mut Pending) -> T) -> T {
        with(&mut self.pending.lock().unwrap())
    }

    fn changes(&self) -> Result<Changes> {
        let mut changes = Vec::new();
        self.inner.staged_changes(&mut |key, value| {
            changes.push((Bytes::copy_from_slice(key), value.map(Bytes::copy_from_slice)));
            Ok(())
        })?;
        Ok(changes)
    }

    fn stage(&self, changes: &Changes) -> Result<()> {
        changes.iter().try_for_each(|(key, value)| match value {
            Some(value) => self.inner.put(key, value),
            None => self.inner.delete(key),
        })
    }

    /// What is staged, with its position and `offsets`.
    fn batch(&self, offsets: &ChangelogOffsets) -> Result<WriteBatch> {
        let mut batch = WriteBatch::new();
        for (key, value) in self.changes()? {
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        batch.set_offsets(offsets);
        self.pending(|pending| {
            pending.position.iter().for_each(|(partition, next)| batch.set_position(partition.clone(), *next));
        });
        Ok(batch)
    }

    /// What `partition` is stored as.
    fn place(&self, partition: &TopicPartition) -> TopicPartition {
        match self.owned.iter().position(|owned| owned == partition) {
            Some(place) if self.bug == Bug::OffsetsAreStoredByPlace => {
                TopicPartition::new("place", i32::try_from(place).unwrap())
            }
            _ => partition.clone(),
        }
    }

    fn placed(&self, offsets: &ChangelogOffsets) -> ChangelogOffsets {
        offsets.iter().map(|(partition, offset)| (self.place(partition), offset)).collect()
    }

    /// Whether `offsets` are those that are stored, or lower.
    fn is_known(&self, offsets: &ChangelogOffsets) -> Result<bool> {
        let mut known = !offsets.is_empty();
        for (partition, offset) in offsets.iter() {
            known &= self.inner.committed_offset(partition)? >= Some(offset);
        }
        Ok(known)
    }

    fn owned(&self, offsets: &ChangelogOffsets) -> ChangelogOffsets {
        let partitions = self.inner.changelog_partitions();
        let owned = offsets.iter().filter(|(partition, _)| partitions.contains(partition));
        owned.map(|(partition, offset)| (partition.clone(), offset)).collect()
    }

    pub(crate) fn is_staged(&self, key: &[u8]) -> Result<bool> {
        Ok(self.changes()?.iter().any(|(staged, _)| staged == key))
    }

    pub(crate) fn write_through(&self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let mut batch = WriteBatch::new();
        let key = Bytes::copy_from_slice(key);
        match value {
            Some(value) => batch.put(key, Bytes::copy_from_slice(value)),
            None => batch.delete(key),
        }
        self.backend.apply(&batch)
    }

    pub(crate) fn refused(what: &str) -> Error {
        Error::new(ErrorKind::InvalidArgument, what).with_commit_outcome(CommitOutcome::NotApplied)
    }
}

/// A step of a closed store, whose error has lost its outcome.
fn without_outcome(result: Result<()>, bug: Bug) -> Result<()> {
    match result {
        Err(error) if bug == Bug::ClosedStoreHasNoOutcome && error.kind() == ErrorKind::Closed => {
            Err(Error::new(ErrorKind::Closed, "closed"))
        }
        result => result,
    }
}

impl Drop for ToyStore {
    fn drop(&mut self) {
        match self.bug {
            Bug::DropCommits => drop(self.inner.commit(&ChangelogOffsets::new())),
            Bug::DropWhilePanickingCommits if thread::panicking() => {
                drop(self.inner.commit(&ChangelogOffsets::new()));
            }
            Bug::PoisonedDropKeepsTheLock if !self.is_open() && !self.pending(|pending| pending.closed) => {
                std::mem::forget(Arc::clone(&self.inner));
            }
            Bug::DropLosesTheBuffer if self.inner.is_open() => self.backend.abandon(),
            _ => {}
        }
    }
}

impl StateStore for ToyStore {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn persistent(&self) -> bool {
        self.inner.persistent()
    }

    fn manages_offsets(&self) -> bool {
        !self.modest && self.bug != Bug::UnmanagedOffsetsAreFound
    }

    fn changelog_partitions(&self) -> &[TopicPartition] {
        if self.bug == Bug::PartitionsAreForgotten { &[] } else { &self.owned }
    }

    fn commit(&self, changelog_offsets: &ChangelogOffsets) -> Result<()> {
        if self.bug == Bug::OffsetsAreStoredByPlace {
            return self.inner.commit(&self.placed(changelog_offsets));
        }
        let owned = self.owned(changelog_offsets);
        let is_foreign = owned != *changelog_offsets;
        let mut offsets = changelog_offsets.clone();
        match self.bug {
            Bug::ForeignOffsetIsDropped => offsets = owned,
            Bug::CommitOfAKnownOffsetIsSkipped
                if offsets.iter().any(|(partition, offset)| {
                    self.inner.committed_offset(partition).is_ok_and(|known| known == Some(offset))
                }) =>
            {
                return self.inner.rollback();
            }
            Bug::CommitBesideACloseIsLost if self.inner.is_open() => {
                thread::sleep(Duration::from_micros(200));
                return match self.inner.commit(&offsets) {
                    Err(error) if error.kind() == ErrorKind::Closed => Ok(()),
                    committed => committed,
                };
            }
            Bug::DeletesDuringACommitAreLost => {
                self.inner.commit(&offsets)?;
                thread::sleep(Duration::from_micros(200));
                let mut changes = self.changes()?;
                if changes.iter().any(|(_, value)| value.is_none()) {
                    changes.retain(|(_, value)| value.is_some());
                    self.inner.rollback()?;
                    self.stage(&changes)?;
                }
                return Ok(());
            }
            Bug::ForeignCommitIsHalfApplied if is_foreign => {
                self.inner.commit(&owned)?;
                return Err(Self::refused("foreign"));
            }
            Bug::FailedCommitLeavesItsOffsets => {
                let mut earlier = self.pending(|pending| pending.offsets.clone());
                earlier.extend(offsets);
                offsets = earlier;
            }
            Bug::RowsVanishDuringACommit => {
                let batch = self.batch(&offsets)?;
                self.inner.rollback()?;
                thread::sleep(Duration::from_millis(1));
                self.pending(|pending| pending.position.clear());
                return self.inner.restore(&batch);
            }
            _ => {}
        }
        let batch = if self.bug == Bug::UnknownCommitIsHalfRepeated { Some(self.batch(&offsets)?) } else { None };
        let committed = without_outcome(self.inner.commit(&offsets), self.bug);
        match &committed {
            Ok(()) => self.pending(|pending| {
                pending.position.clear();
                pending.offsets = ChangelogOffsets::new();
                pending.failed = false;
            }),
            Err(error) => {
                let unknown = error.commit_outcome() == Some(CommitOutcome::Unknown);
                self.pending(|pending| pending.failed = true);
                match self.bug {
                    Bug::FailedCommitRollsBack => self.inner.rollback()?,
                    Bug::FailedCommitLeavesItsOffsets => self.pending(|pending| pending.offsets = offsets),
                    Bug::UnknownIsCalledNotApplied if unknown => {
                        let error = Error::new(ErrorKind::Io, "injected");
                        return Err(error.with_commit_outcome(CommitOutcome::NotApplied));
                    }
                    Bug::UnknownCommitIsHalfRepeated if unknown => self.pending(|pending| pending.half = batch),
                    _ => {}
                }
            }
        }
        if self.bug == Bug::WritesDuringACommitAreLost {
            thread::sleep(Duration::from_micros(200));
            self.inner.rollback()?;
        }
        committed
    }

    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        match self.bug {
            _ if self.modest => self.inner.committed_offset(partition).map(|_| None),
            Bug::ForeignOffsetIsFound => self.backend.committed_offset(partition),
            _ => self.inner.committed_offset(&self.place(partition)),
        }
    }

    fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        if self.modest {
            return self.inner.durable_offset(partition).map(|_| None);
        }
        self.inner.durable_offset(&self.place(partition))
    }

    fn forget_offsets(&self) -> Result<()> {
        without_outcome(self.inner.forget_offsets(), self.bug)?;
        if self.bug == Bug::ForgettingRollsBack { self.inner.rollback() } else { Ok(()) }
    }

    fn stage_position(&self, partition: &TopicPartition, next: Offset) -> Result<()> {
        match self.bug {
            Bug::BadPartitionIsAccepted if partition.validate().is_err() => return Ok(()),
            Bug::PositionIsNotStaged => {
                let mut batch = WriteBatch::new();
                batch.set_position(partition.clone(), next);
                return self.backend.apply(&batch);
            }
            _ => {}
        }
        self.inner.stage_position(partition, next)?;
        self.pending(|pending| pending.position.insert(partition.clone(), next));
        Ok(())
    }

    fn position(&self) -> Result<Position> {
        self.inner.position()
    }

    fn staged_changes(&self, visit: &mut VisitChange<'_>) -> Result<()> {
        let mut changes = self.changes()?;
        match self.bug {
            Bug::StagedChangesLackDeletes => changes.retain(|(_, value)| value.is_some()),
            Bug::StagedChangesComeBackwards => changes.reverse(),
            Bug::StagedChangesEndAfterAThousand => changes.truncate(1000),
            Bug::FailedCommitLosesItsChanges if self.pending(|pending| pending.failed) => changes.clear(),
            Bug::StagedChangesIgnoreErrors => {
                for (key, value) in &changes {
                    drop(visit(key, value.as_deref()));
                }
                return Ok(());
            }
            _ => {}
        }
        changes.iter().try_for_each(|(key, value)| visit(key, value.as_deref()))
    }

    fn committed_value(&self, key: &[u8]) -> Result<Option<Bytes>> {
        match self.bug {
            Bug::CommittedValueIsTheOwners => self.get(key),
            Bug::CommittedValueIsNever => Ok(None),
            _ => self.inner.committed_value(key),
        }
    }

    fn uncommitted_bytes(&self) -> u64 {
        match self.bug {
            Bug::UncommittedBytesAreZero => 0,
            Bug::OverwrittenBytesCount => {
                let now = self.inner.uncommitted_bytes();
                self.pending(|pending| {
                    pending.most_staged = if now == 0 { 0 } else { now.max(pending.most_staged) };
                    pending.most_staged
                })
            }
            Bug::UncommittedBytesOnlyGrow => self.pending(|pending| pending.ever_staged),
            _ => self.inner.uncommitted_bytes(),
        }
    }

    fn rollback(&self) -> Result<()> {
        match self.bug {
            Bug::RollbackDoesNothing if self.inner.is_open() => Ok(()),
            Bug::RollbackKeepsThePosition => {
                self.inner.rollback()?;
                let position = self.pending(|pending| pending.position.clone());
                position.iter().try_for_each(|(partition, next)| self.inner.stage_position(partition, *next))
            }
            _ => {
                self.inner.rollback()?;
                self.pending(|pending| pending.position.clear());
                Ok(())
            }
        }
    }

    fn restore(&self, batch: &WriteBatch) -> Result<()> {
        let mut restored = WriteBatch::new();
        let without_offsets = batch.offsets().is_empty() && self.bug == Bug::RestoreWithoutOffsetsForgetsThem;
        if batch.forgets_offsets() || without_offsets {
            restored.forget_offsets();
        }
        match self.bug {
            Bug::RestoreWithoutRecordsIsSkipped if batch.records().len() == 0 => return Ok(()),
            Bug::RestoreOfAKnownOffsetIsSkipped if self.is_known(batch.offsets())? => return Ok(()),
            _ => {}
        }
        restored.set_offsets(&self.placed(batch.offsets()));
        if self.bug != Bug::RestoreIgnoresThePosition {
            let taken = batch
                .position()
                .iter()
                .filter(|(partition, _)| self.bug != Bug::BadPositionIsRestored || partition.validate().is_ok());
            taken.for_each(|(partition, next)| restored.set_position(partition.clone(), next));
        }
        let most = if self.bug == Bug::RestoreEndsAfterTenThousandRecords { 10_000 } else { usize::MAX };
        for (key, value) in batch.records().take(most) {
            match value {
                Some(_) if self.bug == Bug::RestoreKeepsWhatIsThere && self.inner.contains_key(key)? => {}
                Some(value) => restored.put(key, value.clone()),
                None if self.bug == Bug::RestoredTombstoneIsAValue => restored.put(key, ""),
                None if self.bug == Bug::LargeRestoreLosesDeletes && batch.len() > 3 => {}
                None => restored.delete(key),
            }
        }
        match self.bug {
            Bug::ForeignRestoreIsApplied => self.backend.apply(&restored),
            Bug::RestoreIsNotWritten => {
                self.backend.restoring(true);
                let done = self.inner.restore(&restored);
                self.backend.restoring(false);
                done
            }
            Bug::RestoreShowsInTwoSteps => {
                let mut records = WriteBatch::new();
                for (key, value) in restored.records() {
                    match value {
                        Some(value) => records.put(Bytes::copy_from_slice(key), value.clone()),
                        None => records.delete(Bytes::copy_from_slice(key)),
                    }
                }
                self.inner.restore(&records)?;
                thread::sleep(Duration::from_millis(2));
                self.inner.restore(&restored)
            }
            Bug::RestoreRollsBack => {
                self.inner.rollback()?;
                self.inner.restore(&restored)
            }
            Bug::RestoreIsStaged => batch.records().try_for_each(|(key, value)| match value {
                Some(value) => self.inner.put(key, value),
                None => self.inner.delete(key),
            }),
            _ => without_outcome(self.inner.restore(&restored), self.bug),
        }
    }

    fn flush(&self) -> Result<()> {
        if self.bug == Bug::FlushCommits {
            self.inner.commit(&ChangelogOffsets::new())?;
        }
        self.inner.flush()
    }

    fn wipe(&self) -> Result<()> {
        let staged = if self.bug == Bug::WipeKeepsWhatIsStaged { self.changes()? } else { Changes::new() };
        let wiped = without_outcome(self.inner.wipe(), self.bug);
        if wiped.is_err() && self.bug == Bug::FailedWipeRollsBack {
            self.inner.rollback()?;
        }
        wiped?;
        self.pending(|pending| pending.position.clear());
        self.stage(&staged)
    }

    fn is_open(&self) -> bool {
        self.inner.is_open() || (self.bug == Bug::UnknownDoesNotPoison && !self.pending(|pending| pending.closed))
    }

    fn close(&self) -> Result<()> {
        match self.bug {
            Bug::CloseCommits if self.inner.is_open() => self.inner.commit(&ChangelogOffsets::new())?,
            Bug::SecondCloseFails if !self.inner.is_open() => return Err(Error::new(ErrorKind::Closed, "closed")),
            Bug::SecondCloseFreesTheSuccessor => self.backend.close()?,
            _ => {}
        }
        if let Some(half) = self.pending(|pending| pending.half.take()) {
            let mut records = WriteBatch::new();
            half.records().for_each(|(key, value)| match value {
                Some(value) => records.put(key, value.clone()),
                None => records.delete(key),
            });
            self.backend.apply(&records)?;
        }
        if self.bug == Bug::PoisonedEngineStaysOpen && !self.inner.is_open() {
            return Ok(());
        }
        self.pending(|pending| pending.closed = true);
        self.inner.close()
    }
}
