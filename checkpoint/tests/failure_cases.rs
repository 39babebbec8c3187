//! Faults that other systems had in restores, by the ids they are known by here: positions, ends, and what is stale.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod support;

use std::time::Duration;

use kstate_api::{ChangelogOffsets, KeyValueStore as _, Offset, Position, Result, StateStore as _, TopicPartition};
use kstate_checkpoint::{ChangelogReader, ChangelogRecord, LogBounds, RestoreOptions, WipeReason, checkpoint, restore};
use support::{
    broker::{Broker, Fault, Slot, changelog, logged, offset, position, record, record_of, row, rows, task},
    memory_store, on_each_backend,
};

/// Records of the keys `0`, `1`, ... of a log of `count`.
fn records(count: usize) -> Vec<Slot> {
    (0..count).map(|n| record(&n.to_string(), Some("1"))).collect()
}

/// A log that others append to once its end was asked for.
struct Growing {
    broker: Broker,
    end: Offset,
    /// Fails when it is to read this offset.
    breaks_at: Option<Offset>,
}

impl ChangelogReader for Growing {
    fn bounds(&mut self, partition: &TopicPartition) -> Result<LogBounds> {
        Ok(LogBounds { end: self.end, ..self.broker.bounds(partition)? })
    }

    fn seek(&mut self, partition: &TopicPartition, next: Offset) -> Result<()> {
        self.broker.seek(partition, next)
    }

    fn poll(&mut self, timeout: Duration, read: &mut dyn FnMut(Offset, ChangelogRecord<'_>)) -> Result<bool> {
        if self.breaks_at.is_some_and(|breaks_at| self.broker.position().is_ok_and(|next| next >= breaks_at)) {
            return Err(kstate_api::Error::new(kstate_api::ErrorKind::Unavailable, "the broker is away"));
        }
        self.broker.poll(timeout, read)
    }

    fn position(&mut self) -> Result<Offset> {
        self.broker.position()
    }
}

#[test]
fn ho_02_the_last_record_is_not_restored_again() {
    on_each_backend(|open| {
        let store = open();
        let broker = Broker::new(records(42));
        broker.restore(&store, &RestoreOptions::new()).unwrap();
        let again = broker.restore(&store, &RestoreOptions::new()).unwrap();
        assert_eq!((again.from, again.applied, again.end), (Some(offset(41)), 0, offset(42)));
    });
}

#[test]
fn ho_03_a_restore_that_was_cut_leaves_its_own_offset_and_goes_on_there() {
    on_each_backend(|open| {
        let store = open();
        // The task has written all of it before it was wiped.
        let broker = Broker::new(records(100));
        let mut cut = Growing { broker: broker.clone(), end: offset(100), breaks_at: Some(offset(40)) };
        let options = RestoreOptions::new().max_batch_bytes(1);
        restore(&logged(&store), &Position::new(), &mut cut, &options, &mut |_| {}).unwrap_err();
        assert_eq!(store.committed_offset(&changelog()).unwrap(), Some(offset(39)));
        assert_eq!(rows(&store).len(), 40);
        let restored = broker.restore(&store, &options).unwrap();
        assert_eq!((restored.from, restored.applied, restored.wiped), (Some(offset(39)), 60, None));
        assert_eq!(rows(&store).len(), 100);
    });
}

#[test]
fn ho_23_an_emptied_changelog_is_restored_at_once_and_written_on() {
    let store = memory_store();
    let broker = Broker::new(vec![Slot::Gap; 22_512]);
    broker.0.borrow_mut().start = 22_512;
    let restored = broker.restore(&store, &RestoreOptions::new()).unwrap();
    assert_eq!((restored.applied, restored.end), (0, offset(22_512)));
    store.put(b"a", b"1").unwrap();
    broker.checkpoint(&store, &position(1)).unwrap();
    assert_eq!(store.committed_offset(&changelog()).unwrap(), Some(offset(22_512)));
}

#[test]
fn ho_24_what_comes_after_the_end_is_not_this_restores() {
    on_each_backend(|open| {
        let store = open();
        let mut log = Growing { broker: Broker::new(records(105)), end: offset(100), breaks_at: None };
        let restored = restore(&logged(&store), &Position::new(), &mut log, &RestoreOptions::new(), &mut |_| {});
        assert_eq!(restored.unwrap().applied, 100);
        assert_eq!(store.committed_offset(&changelog()).unwrap(), Some(offset(99)));
        assert_eq!(rows(&store).len(), 100);
    });
}

#[test]
fn ho_25_markers_at_the_end_are_passed() {
    for (markers, end) in [(1, 6), (5, 10)] {
        let store = memory_store();
        let mut log = records(5);
        log.extend(vec![Slot::Gap; markers]);
        let restored = Broker::new(log).restore(&store, &RestoreOptions::new()).unwrap();
        assert_eq!((restored.applied, restored.end), (5, offset(end)));
        assert_eq!(store.committed_offset(&changelog()).unwrap(), Some(offset(end - 1)), "the lag is 0");
    }
}

#[test]
fn ho_26_an_offset_before_the_start_of_the_log_is_dropped() {
    on_each_backend(|open| {
        let store = open();
        store.put(b"stale", b"1").unwrap();
        store.commit(&ChangelogOffsets::new().with(changelog(), offset(100))).unwrap();
        let mut log = vec![Slot::Gap; 5000];
        log.extend(records(1000));
        let broker = Broker::new(log);
        broker.0.borrow_mut().start = 5000;
        let restored = broker.restore(&store, &RestoreOptions::new()).unwrap();
        assert_eq!((restored.applied, restored.wiped), (1000, Some(WipeReason::LogStartBeyondStore)));
        assert_eq!(rows(&store).len(), 1000, "what was stale is gone");
    });
}

#[test]
fn ho_31_an_offset_beyond_the_end_of_the_log_is_dropped() {
    on_each_backend(|open| {
        let store = open();
        store.put(b"ghost", b"1").unwrap();
        store.commit(&ChangelogOffsets::new().with(changelog(), offset(613_900))).unwrap();
        let restored = Broker::new(records(613)).restore(&store, &RestoreOptions::new()).unwrap();
        assert_eq!((restored.applied, restored.wiped), (613, Some(WipeReason::StoreBeyondLogEnd)));
        assert_eq!(rows(&store).len(), 613);
    });
}

/// Data without an offset is nobody's: what was not committed must not be counted twice.
#[test]
fn ho_32_data_without_an_offset_is_wiped() {
    on_each_backend(|open| {
        let store = open();
        store.put(b"counter", b"11").unwrap();
        store.put(b"uncommitted", b"1").unwrap();
        store.commit(&ChangelogOffsets::new()).unwrap();
        let broker = Broker::new(vec![record_of("counter", Some("10"), 1), record_of("counter", Some("11"), 2)]);
        broker.0.borrow_mut().committed = position(1);
        let restored = broker.restore(&store, &RestoreOptions::new()).unwrap();
        assert_eq!(restored.wiped, Some(WipeReason::NoOffset));
        assert_eq!(rows(&store), [row("counter", "10")]);
    });
}

/// A changelog record stands for all that befell its key since the last checkpoint, so it has no source record's headers
/// or timestamp. What it has is the position of its checkpoint, and a tombstone has it like any other: made of nothing,
/// it would delete what is committed.
#[test]
fn ho_63_a_tombstone_carries_the_position_that_a_value_would() {
    on_each_backend(|open| {
        let (broker, store) = (Broker::new(Vec::new()), open());
        let task = task(&store);
        let take = |next| {
            let (mut writer, mut source) = (broker.clone(), broker.clone());
            checkpoint(std::slice::from_ref(&task), &position(next), &mut writer, &mut source).map(drop)
        };
        for key in [b"k", b"l"] {
            store.put(key, b"1").unwrap();
        }
        take(10).unwrap();
        // The one is deleted as it is, the other after it was put once more.
        store.delete(b"k").unwrap();
        store.put(b"l", b"2").unwrap();
        store.delete(b"l").unwrap();
        broker.0.borrow_mut().fault = Some(Fault::SourceCommit);
        take(20).unwrap_err();
        let expected = [
            record_of("k", Some("1"), 10),
            record_of("l", Some("1"), 10),
            record_of("k", None, 20),
            record_of("l", None, 20),
        ];
        assert_eq!(broker.0.borrow().log, expected);

        // Its checkpoint is not committed: it deletes nothing.
        let rebuilt = open();
        let restored = broker.restore(&rebuilt, &RestoreOptions::new()).unwrap();
        assert_eq!((restored.applied, restored.uncommitted), (2, 2));
        assert_eq!(rows(&rebuilt), [row("k", "1"), row("l", "1")]);

        // One that heals has it, too.
        take(20).unwrap();
        for key in [b"m", b"n"] {
            store.put(key, b"3").unwrap();
        }
        broker.0.borrow_mut().fault = Some(Fault::Delivery);
        take(30).unwrap_err();
        store.rollback().unwrap();
        let before = broker.0.borrow().log.len();
        take(30).unwrap();
        assert_eq!(broker.0.borrow().log[before..], [record_of("m", None, 30), record_of("n", None, 30)]);
    });
}
