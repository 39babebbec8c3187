//! Changelogs with keys that a store's engine does not take: another engine has written them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod support;

use std::sync::Arc;

use kstate_api::{
    Backend, Capabilities, CommitOutcome, Cursor, Error, ErrorKind, KeyRange, KeyValueStore, Offset, Order, Position,
    ReadOnlyKeyValueStore, Result, Snapshot, StagedStore, StateStore, TopicPartition, WriteBatch,
};
use kstate_checkpoint::{RestoreOptions, checkpoint, restore, update_standby};
use kstate_store_memory::MemoryBackend;
use support::{
    broker::{Broker, Slot, changelog, logged, offset, position, record_of, row, rows, task},
    memory_store,
};

/// The longest key that the engine takes.
const LIMIT: usize = 8;
const LONG: &str = "ninebytes";

/// An engine that takes no long keys, and panics if it is handed one.
#[derive(Debug)]
struct ShortKeys(MemoryBackend);

impl ReadOnlyKeyValueStore for ShortKeys {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        assert!(key.len() <= LIMIT);
        self.0.get_with(key, read)
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        self.0.scan(range, order)
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        self.0.approximate_num_entries()
    }
}

impl Backend for ShortKeys {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities().with_max_key_len(LIMIT)
    }

    fn apply(&self, batch: &WriteBatch) -> Result<()> {
        assert!(batch.records().all(|(key, _)| key.len() <= LIMIT));
        self.0.apply(batch)
    }

    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.0.committed_offset(partition)
    }

    fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.0.durable_offset(partition)
    }

    fn position(&self) -> Result<Position> {
        self.0.position()
    }

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        self.0.snapshot()
    }

    fn flush(&self) -> Result<()> {
        self.0.flush()
    }

    fn wipe(&self) -> Result<()> {
        self.0.wipe()
    }

    fn close(&self) -> Result<()> {
        self.0.close()
    }
}

fn short_keys() -> Arc<dyn KeyValueStore> {
    Arc::new(StagedStore::open("counts", ShortKeys(MemoryBackend::new()), &[changelog()]).unwrap())
}

/// Three records that every engine takes, one that not every engine takes, and one that comes after it.
fn log(long: Option<&str>) -> Vec<Slot> {
    vec![
        record_of("a", Some("1"), 10),
        record_of("b", Some("1"), 10),
        record_of("eightbyt", Some("1"), 20),
        record_of(LONG, long, 20),
        record_of("a", Some("2"), 20),
    ]
}

fn broker(long: Option<&str>) -> Broker {
    let broker = Broker::new(log(long));
    broker.0.borrow_mut().committed = position(20);
    broker
}

fn assert_refused(error: &Error, case: &str) {
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{case}: {error}");
    assert_eq!(error.commit_outcome(), Some(CommitOutcome::NotApplied), "{case}: {error}");
    let told = error.to_string();
    for what in ["9 bytes", "counts", "counts-changelog"] {
        assert!(told.contains(what), "{case}: {what} is not in {told}");
    }
}

/// Neither a look at the log nor a second try gets past it, and none of it is lost: what came before is in the store
/// with its offset, and an engine that takes the key has all of it.
#[test]
fn p4_a_key_that_the_engine_does_not_take_ends_a_restore_with_an_error_that_stays() {
    // One record to a step, two, or all of them.
    for (max_batch_bytes, applied) in [(1, 3), (100, 2), (1 << 20, 0)] {
        for long in [Some("1"), None] {
            let case = format!("{long:?} in batches of {max_batch_bytes}");
            let (broker, store) = (broker(long), short_keys());
            let options = RestoreOptions::new().max_batch_bytes(max_batch_bytes);
            for _ in 0..3 {
                assert_refused(&broker.restore(&store, &options).unwrap_err(), &case);
                let last = store.committed_offset(&changelog()).unwrap();
                assert_eq!(rows(&store).len(), applied, "{case}");
                assert_eq!(last.map_or(0, |last| last.get() + 1), i64::try_from(applied).unwrap(), "{case}");
                assert!(store.is_open(), "{case}");
            }
            assert_eq!(broker.0.borrow().log, log(long), "{case}: the log is as it was");

            let wide = memory_store();
            assert_eq!(broker.restore(&wide, &options).unwrap().applied, 5, "{case}");
            assert_eq!(rows(&wide).len(), if long.is_some() { 4 } else { 3 }, "{case}");
        }
    }
}

#[test]
fn p4_a_key_that_the_engine_does_not_take_ends_a_standby_with_an_error() {
    let (mut broker, store) = (broker(Some("1")), short_keys());
    let logged = logged(&store);
    let options = RestoreOptions::new().max_batch_bytes(1);
    for _ in 0..3 {
        let updated = update_standby(&logged, &position(20), &mut broker, &options, &mut |_| {});
        assert_refused(&updated.unwrap_err(), "standby");
        assert_eq!(rows(&store), [row("a", "1"), row("b", "1"), row("eightbyt", "1")]);
        assert_eq!(store.committed_offset(&changelog()).unwrap(), Some(offset(2)));
    }
}

/// Such a key never comes into a changelog by the store itself: it is refused before anything is staged.
#[test]
fn a_key_that_the_engine_does_not_take_never_comes_into_a_changelog() {
    let (broker, store) = (Broker::new(Vec::new()), short_keys());
    store.put(b"a", b"1").unwrap();
    assert_eq!(store.put(LONG.as_bytes(), b"1").unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(store.delete(LONG.as_bytes()).unwrap_err().kind(), ErrorKind::InvalidArgument);
    broker.checkpoint(&store, &position(10)).unwrap();
    assert_eq!(broker.0.borrow().log, [record_of("a", Some("1"), 10)]);
    assert_eq!(rows(&store), [row("a", "1")]);
}

/// What another engine left there unfinished is superseded. The log is still not this engine's to restore.
#[test]
fn p3_an_unfinished_record_that_the_engine_does_not_take_is_healed() {
    let broker = Broker::new(vec![record_of("a", Some("1"), 10), record_of(LONG, Some("lost"), 20)]);
    broker.0.borrow_mut().committed = position(10);
    let (store, options) = (short_keys(), RestoreOptions::new());
    let task = task(&store);
    let restored = restore(&task.stores()[0], &position(10), &mut broker.clone(), &options, &mut |_| {}).unwrap();
    assert_eq!((restored.applied, restored.uncommitted), (1, 1));
    checkpoint(&[task], &position(20), &mut broker.clone(), &mut broker.clone()).unwrap();
    assert_eq!(rows(&store), [row("a", "1")]);
    assert_eq!(store.committed_offset(&changelog()).unwrap(), Some(offset(2)));

    let wide = memory_store();
    broker.restore(&wide, &options).unwrap();
    assert_eq!(rows(&wide), [row("a", "1")]);
    assert_refused(&broker.restore(&short_keys(), &options).unwrap_err(), "from nothing");
}
