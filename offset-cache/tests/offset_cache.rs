//! What the cache makes of stores that do not do as they should: clauses C2 and D3.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod support;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use kstate_api::{
    Bytes, ChangelogOffsets, Error, ErrorKind, Offset, PartitionPosition, Position, Result, StateStore, TaskId,
    TopicPartition, VisitChange, WriteBatch,
};
use kstate_offset_cache::{CachedOffset, OffsetCache};
use support::{offset, open};

const TASK: TaskId = TaskId::new(0, 0);

fn damaged<T>(what: &str) -> Result<T> {
    Err(Error::new(ErrorKind::Corrupted, what.to_owned()))
}

#[derive(Clone, Copy, Debug)]
enum Committed {
    Nothing,
    At(i64),
    Damaged,
}

/// A store that answers as it is told, and looks into the cache while it is wiped.
#[derive(Debug)]
struct Scripted {
    partitions: Vec<TopicPartition>,
    committed: BTreeMap<TopicPartition, Committed>,
    closes: bool,
    wipes: bool,
    cache: Arc<OffsetCache>,
    was_closed: AtomicBool,
    was_known_while_wiped: AtomicBool,
}

impl Scripted {
    /// With what is committed for each of its partitions.
    fn new(cache: &Arc<OffsetCache>, committed: &[(&str, Committed)]) -> Self {
        let partition = |topic: &str| TopicPartition::new(topic, 0);
        Self {
            partitions: committed.iter().map(|(topic, _)| partition(topic)).collect(),
            committed: committed.iter().map(|(topic, committed)| (partition(topic), *committed)).collect(),
            closes: true,
            wipes: true,
            cache: Arc::clone(cache),
            was_closed: AtomicBool::default(),
            was_known_while_wiped: AtomicBool::default(),
        }
    }
}

impl StateStore for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn persistent(&self) -> bool {
        true
    }

    fn manages_offsets(&self) -> bool {
        true
    }

    fn changelog_partitions(&self) -> &[TopicPartition] {
        &self.partitions
    }

    fn commit(&self, _: &ChangelogOffsets) -> Result<()> {
        Ok(())
    }

    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        match self.committed[partition] {
            Committed::Nothing => Ok(None),
            Committed::At(value) => Ok(Some(offset(value))),
            Committed::Damaged => damaged("the offset is damaged"),
        }
    }

    fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.committed_offset(partition)
    }

    fn forget_offsets(&self) -> Result<()> {
        Ok(())
    }

    fn stage_position(&self, _: &TopicPartition, _: PartitionPosition) -> Result<()> {
        Ok(())
    }

    fn position(&self) -> Result<Position> {
        Ok(Position::new())
    }

    fn staged_changes(&self, _: &mut VisitChange<'_>) -> Result<()> {
        Ok(())
    }

    fn committed_value(&self, _: &[u8]) -> Result<Option<Bytes>> {
        Ok(None)
    }

    fn uncommitted_bytes(&self) -> u64 {
        0
    }

    fn rollback(&self) -> Result<()> {
        Ok(())
    }

    fn restore(&self, _: &WriteBatch) -> Result<()> {
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn wipe(&self) -> Result<()> {
        let known = self.partitions.iter().any(|partition| self.cache.get(TASK, partition).is_some());
        self.was_known_while_wiped.store(known, Ordering::Relaxed);
        if self.wipes { Ok(()) } else { damaged("the wipe fails") }
    }

    fn is_open(&self) -> bool {
        !self.was_closed.load(Ordering::Relaxed)
    }

    fn close(&self) -> Result<()> {
        self.was_closed.store(true, Ordering::Relaxed);
        if self.closes { Ok(()) } else { damaged("the close fails") }
    }
}

fn known(cache: &OffsetCache, topic: &str) -> Option<CachedOffset> {
    cache.get(TASK, &TopicPartition::new(topic, 0))
}

#[allow(clippy::unnecessary_wraps, reason = "it is compared with what the cache answers")]
fn at(value: i64) -> Option<CachedOffset> {
    Some(CachedOffset::At(offset(value)))
}

#[test]
fn an_offset_that_cannot_be_read_is_unknown_and_the_others_are_known() {
    let temporary = tempfile::tempdir().unwrap();
    let (directory, cache) = (open(temporary.path()), Arc::new(OffsetCache::new()));
    let lock = directory.lock(TASK).unwrap();
    let store = Scripted::new(&cache, &[("a", Committed::Damaged), ("b", Committed::At(7)), ("c", Committed::Nothing)]);
    for tell in [OffsetCache::opened, OffsetCache::committed, OffsetCache::close] {
        cache.forget(&lock);
        assert_eq!(tell(&cache, &lock, &store).unwrap_err().to_string(), "the offset is damaged");
        let unknown = Some(CachedOffset::Unknown);
        assert_eq!(["a", "b", "c"].map(|topic| known(&cache, topic)), [unknown, at(7), unknown]);
    }
    assert!(!store.is_open(), "closed nevertheless");
}

/// What it could not write at its close, a reopen will not show.
#[test]
fn what_a_store_had_committed_is_unknown_if_its_close_fails() {
    let temporary = tempfile::tempdir().unwrap();
    let (directory, cache) = (open(temporary.path()), Arc::new(OffsetCache::new()));
    let lock = directory.lock(TASK).unwrap();
    let store = Scripted { closes: false, ..Scripted::new(&cache, &[("a", Committed::At(7))]) };
    cache.restored(&lock, &store);
    assert_eq!(cache.close(&lock, &store).unwrap_err().to_string(), "the close fails");
    assert_eq!(known(&cache, "a"), Some(CachedOffset::Unknown));
}

#[test]
fn entries_go_before_the_records_do_and_only_the_stores_own() {
    let temporary = tempfile::tempdir().unwrap();
    let (directory, cache) = (open(temporary.path()), Arc::new(OffsetCache::new()));
    let lock = directory.lock(TASK).unwrap();
    let other = Scripted::new(&cache, &[("other", Committed::At(3))]);
    cache.opened(&lock, &other).unwrap();
    for wipes in [true, false] {
        let store = Scripted { wipes, ..Scripted::new(&cache, &[("a", Committed::At(7))]) };
        cache.opened(&lock, &store).unwrap();
        assert_eq!(cache.wipe(&lock, &store).is_ok(), wipes);
        assert!(!store.was_known_while_wiped.load(Ordering::Relaxed));
        assert_eq!((known(&cache, "a"), known(&cache, "other")), (None, at(3)));
    }
}
