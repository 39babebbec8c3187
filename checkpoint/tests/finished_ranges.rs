//! Checkpoints with finished ranges above the next offset (clause A5), and what a restore makes of them (clause P3).

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod support;

use kstate_api::{PartitionPosition, Position};
use kstate_checkpoint::{RestoreOptions, WipeReason, encode_source_position};
use support::{
    broker::{Broker, Slot, offset, row, rows, source},
    memory_store, on_each_backend,
};

/// A position that waits for the record at `next` and has finished those from the one after it to `end`.
fn position(next: i64, end: i64) -> Position {
    let mut position = PartitionPosition::at(offset(next));
    position.finish(offset(next + 1)..offset(end));
    [(source(), position)].into_iter().collect()
}

fn record_of(key: &str, value: &str, position: &Position) -> Slot {
    let header = Some(encode_source_position(position).unwrap());
    Slot::Record { key: Some(key.into()), value: Some(value.into()), header }
}

#[test]
fn a5_a_checkpoint_stores_and_commits_its_finished_ranges() {
    on_each_backend(|open| {
        let store = open();
        let broker = Broker::new(Vec::new());
        store.put(b"a", b"1").unwrap();
        broker.checkpoint(&store, &position(100, 105)).unwrap();
        assert_eq!(store.position().unwrap(), position(100, 105));
        assert_eq!(broker.0.borrow().committed, position(100, 105));
    });
}

/// The next offset alone does not tell them apart: a record is slow, and those behind it go on.
#[test]
fn p3_a_checkpoint_that_differs_in_its_ranges_only_is_passed_over() {
    let store = memory_store();
    let broker = Broker::new(vec![
        record_of("a", "committed", &position(100, 105)),
        record_of("a", "uncommitted", &position(100, 107)),
        record_of("b", "uncommitted", &position(100, 107)),
    ]);
    broker.0.borrow_mut().committed = position(100, 105);
    let restored = broker.restore(&store, &RestoreOptions::new()).unwrap();
    assert_eq!((restored.applied, restored.uncommitted), (1, 2));
    assert_eq!(rows(&store), [row("a", "committed")]);
    assert_eq!(store.position().unwrap(), position(100, 105));
}

#[test]
fn p3_a_store_that_is_ahead_in_its_ranges_only_is_wiped() {
    let store = memory_store();
    let broker = Broker::new(Vec::new());
    store.put(b"a", b"1").unwrap();
    broker.checkpoint(&store, &position(100, 107)).unwrap();
    broker.0.borrow_mut().committed = position(100, 105);
    let restored = broker.restore(&store, &RestoreOptions::new()).unwrap();
    assert_eq!(restored.wiped, Some(WipeReason::StoreBeyondSource));
    assert_eq!(rows(&store), []);
}

/// Somebody has set the group's offset, say to pass the slow record over. What is below it does not come again.
#[test]
fn a5_nothing_below_an_offset_that_somebody_has_set_is_lost() {
    for set in [100, 101] {
        let store = memory_store();
        let broker = Broker::new(vec![record_of("a", "1", &position(100, 107))]);
        broker.0.borrow_mut().committed = position(set, set + 1);
        let options = RestoreOptions::new().bare_offsets([source()].into());
        let restored = broker.restore(&store, &options).unwrap();
        assert_eq!((restored.applied, restored.uncommitted), (1, 0), "at {set}");
        // Nor is a store that is ahead of it only by what it had finished above.
        assert_eq!(broker.restore(&store, &options).unwrap().wiped, None);
        assert_eq!(rows(&store), [row("a", "1")]);
    }
    let store = memory_store();
    let broker = Broker::new(vec![record_of("a", "1", &position(100, 107))]);
    broker.0.borrow_mut().committed = position(99, 100);
    let options = RestoreOptions::new().bare_offsets([source()].into());
    assert_eq!(broker.restore(&store, &options).unwrap().uncommitted, 1, "everything from 99 on comes again");
}
