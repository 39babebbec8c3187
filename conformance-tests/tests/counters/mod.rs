//! Counters by name: a `StateStore` with an interface of its own, and no more.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Mutex, MutexGuard},
};

use kstate_api::{
    Bytes, ChangelogOffsets, CommitOutcome, Error, ErrorKind, Offset, PartitionPosition, Position, Result, StateStore,
    TopicPartition, VisitChange, WriteBatch,
};
use kstate_conformance_tests::StateStoreHarness;

/// What can be wrong with the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    None,
    CloseKeepsCounters,
    RollbackKeepsCounters,
    CommitForgetsOffsets,
    ClosedStoreCounts,
    ZeroIsAbsent,
}

/// The bytes of a counter: the suite's values are bytes of any length, so a count is what they spell.
type Count = Vec<u8>;

#[derive(Debug, Default)]
struct Inner {
    counts: BTreeMap<Vec<u8>, Count>,
    offsets: BTreeMap<TopicPartition, Offset>,
    position: Position,
    /// What was counted since the last commit; `None` is a counter that was reset.
    staged: BTreeMap<Vec<u8>, Option<Count>>,
    staged_position: Position,
    closed: bool,
}

/// Counters by name.
#[derive(Debug)]
pub(crate) struct Counters {
    bug: Bug,
    partitions: Box<[TopicPartition]>,
    inner: Mutex<Inner>,
}

/// For the bug of counters that outlive their store.
static KEPT: Mutex<BTreeMap<Vec<u8>, Count>> = Mutex::new(BTreeMap::new());

fn refused(message: &str) -> Error {
    Error::new(ErrorKind::InvalidArgument, message).with_commit_outcome(CommitOutcome::NotApplied)
}

impl Counters {
    fn new(bug: Bug, partitions: &[TopicPartition]) -> Result<Self> {
        partitions.iter().try_for_each(TopicPartition::validate)?;
        let counts = if bug == Bug::CloseKeepsCounters { KEPT.lock().unwrap().clone() } else { BTreeMap::new() };
        Ok(Self { bug, partitions: partitions.into(), inner: Mutex::new(Inner { counts, ..Inner::default() }) })
    }

    fn open(&self) -> Result<MutexGuard<'_, Inner>> {
        let inner = self.inner.lock().unwrap();
        if inner.closed && self.bug != Bug::ClosedStoreCounts {
            return Err(Error::new(ErrorKind::Closed, "closed").with_commit_outcome(CommitOutcome::NotApplied));
        }
        Ok(inner)
    }

    fn check_owned(&self, offsets: &ChangelogOffsets) -> Result<()> {
        let is_foreign = offsets.iter().any(|(partition, _)| !self.partitions.contains(partition));
        if is_foreign { Err(refused("a foreign partition")) } else { Ok(()) }
    }

    /// The interface of its own: sets a counter.
    pub(crate) fn set(&self, name: &[u8], count: &[u8]) -> Result<()> {
        let count = (!count.is_empty() || self.bug != Bug::ZeroIsAbsent).then(|| count.to_vec());
        self.open()?.staged.insert(name.to_vec(), count);
        Ok(())
    }

    /// Resets a counter.
    pub(crate) fn reset(&self, name: &[u8]) -> Result<()> {
        self.open()?.staged.insert(name.to_vec(), None);
        Ok(())
    }

    /// Every counter, as its owner sees it.
    pub(crate) fn report(&self) -> Result<BTreeMap<Vec<u8>, Count>> {
        let inner = self.open()?;
        let mut counts = inner.counts.clone();
        merge(&mut counts, inner.staged.clone());
        Ok(counts)
    }
}

fn merge(counts: &mut BTreeMap<Vec<u8>, Count>, staged: BTreeMap<Vec<u8>, Option<Count>>) {
    for (name, count) in staged {
        match count {
            Some(count) => counts.insert(name, count),
            None => counts.remove(&name),
        };
    }
}

impl StateStore for Counters {
    fn name(&self) -> &'static str {
        "counters"
    }

    fn persistent(&self) -> bool {
        false
    }

    fn manages_offsets(&self) -> bool {
        true
    }

    fn changelog_partitions(&self) -> &[TopicPartition] {
        &self.partitions
    }

    fn commit(&self, changelog_offsets: &ChangelogOffsets) -> Result<()> {
        let mut inner = self.open()?;
        self.check_owned(changelog_offsets)?;
        if self.bug == Bug::CommitForgetsOffsets {
            inner.offsets.clear();
        }
        let (staged, position) = (std::mem::take(&mut inner.staged), std::mem::take(&mut inner.staged_position));
        merge(&mut inner.counts, staged);
        inner.position.merge(&position);
        inner.offsets.extend(changelog_offsets.iter().map(|(partition, offset)| (partition.clone(), offset)));
        Ok(())
    }

    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        Ok(self.open()?.offsets.get(partition).copied())
    }

    fn durable_offset(&self, _partition: &TopicPartition) -> Result<Option<Offset>> {
        self.open().map(|_| None)
    }

    fn forget_offsets(&self) -> Result<()> {
        let mut inner = self.open()?;
        inner.offsets.clear();
        inner.position = Position::new();
        Ok(())
    }

    fn stage_position(&self, partition: &TopicPartition, position: PartitionPosition) -> Result<()> {
        let mut inner = self.open()?;
        partition.validate()?;
        inner.staged_position.set(partition.clone(), position);
        Ok(())
    }

    fn position(&self) -> Result<Position> {
        Ok(self.open()?.position.clone())
    }

    fn staged_changes(&self, visit: &mut VisitChange<'_>) -> Result<()> {
        self.open()?.staged.iter().try_for_each(|(name, count)| visit(name, count.as_deref()))
    }

    fn committed_value(&self, name: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.open()?.counts.get(name).map(|count| Bytes::copy_from_slice(count)))
    }

    fn uncommitted_bytes(&self) -> u64 {
        let inner = self.inner.lock().unwrap();
        let bytes = inner.staged.iter().map(|(name, count)| name.len() + count.as_ref().map_or(0, Vec::len) + 48);
        bytes.sum::<usize>() as u64
    }

    fn rollback(&self) -> Result<()> {
        let mut inner = self.open()?;
        if self.bug != Bug::RollbackKeepsCounters {
            inner.staged.clear();
        }
        inner.staged_position = Position::new();
        Ok(())
    }

    fn restore(&self, batch: &WriteBatch) -> Result<()> {
        let mut inner = self.open()?;
        self.check_owned(batch.offsets())?;
        if batch.position().iter().any(|(partition, _)| partition.validate().is_err()) {
            return Err(refused("no partition of Kafka's"));
        }
        if !inner.staged.is_empty() || !inner.staged_position.is_empty() {
            return Err(refused("something is staged"));
        }
        if batch.forgets_offsets() {
            inner.offsets.clear();
            inner.position = Position::new();
        }
        merge(
            &mut inner.counts,
            batch.records().map(|(key, value)| (key.to_vec(), value.map(|v| v.to_vec()))).collect(),
        );
        inner.offsets.extend(batch.offsets().iter().map(|(partition, offset)| (partition.clone(), offset)));
        inner.position.merge(batch.position());
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        self.open().map(drop)
    }

    fn wipe(&self) -> Result<()> {
        *self.open()? = Inner::default();
        Ok(())
    }

    fn is_open(&self) -> bool {
        !self.inner.lock().unwrap().closed
    }

    fn close(&self) -> Result<()> {
        let mut inner = self.inner.lock().unwrap();
        if !inner.closed {
            if self.bug == Bug::CloseKeepsCounters {
                KEPT.lock().unwrap().clone_from(&inner.counts);
            }
            *inner = Inner { closed: true, ..Inner::default() };
        }
        Ok(())
    }
}

/// Opens counters: all that the suite has to be told.
pub(crate) struct CounterHarness(pub(crate) Bug);

impl StateStoreHarness for CounterHarness {
    type Store = Counters;

    fn open(&self, _directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<Counters> {
        Counters::new(self.0, changelog_partitions)
    }

    fn put(&self, store: &Counters, key: &[u8], value: &[u8]) -> Result<()> {
        store.set(key, value)
    }

    fn delete(&self, store: &Counters, key: &[u8]) -> Result<()> {
        store.reset(key)
    }

    fn rows(&self, store: &Counters) -> Result<BTreeMap<Bytes, Bytes>> {
        Ok(store.report()?.into_iter().map(|(name, count)| (name.into(), count.into())).collect())
    }
}
