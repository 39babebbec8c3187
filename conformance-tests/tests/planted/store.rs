//! A toy store: staging over the toy backend. It keeps the contract, but for its bug.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex},
    thread,
};

use bytes::Bytes;
use kstate_api::{
    Backend, BackendSupplier, ChangelogOffsets, CommitOutcome, Durability, Error, ErrorKind, KeyValueStore,
    PartitionPosition, Result, StagedStore, StateStore, TopicPartition, WriteBatch,
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
        Self { backends: ToyBackends::new(bug, durability), modest: false }
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

    fn supplier_persistent(&self) -> Told<bool> {
        Told::This(self.backends.persistent())
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
    pub(super) position: BTreeMap<TopicPartition, PartitionPosition>,
    pub(super) offsets: ChangelogOffsets,
    pub(super) half: Option<WriteBatch>,
    pub(crate) ever_staged: u64,
    pub(super) most_staged: u64,
    pub(super) failed: bool,
    pub(super) closed: bool,
}

#[derive(Debug)]
pub(crate) struct ToyStore {
    pub(crate) bug: Bug,
    pub(crate) modest: bool,
    pub(crate) inner: Arc<dyn KeyValueStore>,
    pub(crate) backend: Arc<ToyBackend>,
    pending: Mutex<Pending>,
    pub(super) owned: Box<[TopicPartition]>,
}

pub(super) type Changes = Vec<(Bytes, Option<Bytes>)>;

impl ToyStore {
    pub(crate) fn pending<T>(&self, with: impl FnOnce(&mut Pending) -> T) -> T {
        with(&mut self.pending.lock().unwrap())
    }

    pub(super) fn changes(&self) -> Result<Changes> {
        let mut changes = Vec::new();
        self.inner.staged_changes(&mut |key, value| {
            changes.push((Bytes::copy_from_slice(key), value.map(Bytes::copy_from_slice)));
            Ok(())
        })?;
        Ok(changes)
    }

    pub(super) fn stage(&self, changes: &Changes) -> Result<()> {
        changes.iter().try_for_each(|(key, value)| match value {
            Some(value) => self.inner.put(key, value),
            None => self.inner.delete(key),
        })
    }

    /// What is staged, with its position and `offsets`.
    pub(super) fn batch(&self, offsets: &ChangelogOffsets) -> Result<WriteBatch> {
        let mut batch = WriteBatch::new();
        for (key, value) in self.changes()? {
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        batch.set_offsets(offsets);
        self.pending(|pending| {
            pending
                .position
                .iter()
                .for_each(|(partition, position)| batch.set_position(partition.clone(), position.clone()));
        });
        Ok(batch)
    }

    /// What `partition` is stored as.
    pub(super) fn place(&self, partition: &TopicPartition) -> TopicPartition {
        match self.owned.iter().position(|owned| owned == partition) {
            Some(place) if self.bug == Bug::OffsetsAreStoredByPlace => {
                TopicPartition::new("place", i32::try_from(place).unwrap())
            }
            _ => partition.clone(),
        }
    }

    pub(super) fn placed(&self, offsets: &ChangelogOffsets) -> ChangelogOffsets {
        offsets.iter().map(|(partition, offset)| (self.place(partition), offset)).collect()
    }

    /// Whether `offsets` are those that are stored, or lower.
    pub(super) fn is_known(&self, offsets: &ChangelogOffsets) -> Result<bool> {
        let mut known = !offsets.is_empty();
        for (partition, offset) in offsets.iter() {
            known &= self.inner.committed_offset(partition)? >= Some(offset);
        }
        Ok(known)
    }

    pub(super) fn owned(&self, offsets: &ChangelogOffsets) -> ChangelogOffsets {
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

    /// The offsets in the files that are not the store's.
    pub(super) fn foreign(&self) -> Result<WriteBatch> {
        let mut foreign = WriteBatch::new();
        for partition in (0..10).map(|number| TopicPartition::new("conformance-changelog", number)) {
            if !self.owned.contains(&partition)
                && let Some(offset) = self.backend.committed_offset(&partition)?
            {
                foreign.set_offset(partition, offset);
            }
        }
        Ok(foreign)
    }

    pub(crate) fn refused(what: &str) -> Error {
        Error::new(ErrorKind::InvalidArgument, what).with_commit_outcome(CommitOutcome::NotApplied)
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
