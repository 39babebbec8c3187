//! Restores end, and end right (clauses P3, P4).

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod support;

use std::{sync::Arc, time::Duration};

use kstate_api::{ChangelogOffsets, ErrorKind, KeyValueStore, Offset, Position, ReadOnlyKeyValueStoreExt, StateStore};
use kstate_checkpoint::{LogRetention, RestoreOptions, WipeReason};
use support::{Broker, Slot, changelog, memory_store, offset, position, record, record_of, row, rows, stores};

/// One record to a step, so that every batch border is tried.
fn one_at_a_time() -> RestoreOptions {
    RestoreOptions::new().max_batch_bytes(1)
}

/// Every store, restored in one batch and in many.
fn stores_and_batches() -> impl Iterator<Item = (Arc<dyn KeyValueStore>, RestoreOptions)> {
    let many = stores().into_iter().map(|store| (store, one_at_a_time()));
    stores().into_iter().map(|store| (store, RestoreOptions::new())).chain(many)
}

fn committed(store: &Arc<dyn KeyValueStore>) -> Option<i64> {
    store.committed_offset(&changelog()).unwrap().map(Offset::get)
}

#[test]
fn p4_a_restore_resumes_after_the_committed_offset() {
    let store = memory_store();
    store.put(b"a", b"old").unwrap();
    store.commit(&ChangelogOffsets::new().with(changelog(), offset(0))).unwrap();
    let broker = Broker::new(vec![record("a", Some("never read again")), record("b", Some("1"))]);
    let restored = broker.restore(&store, &RestoreOptions::new()).unwrap();
    assert_eq!((restored.from, restored.applied, restored.wiped), (Some(offset(0)), 1, None));
    assert_eq!(rows(&store), [row("a", "old"), row("b", "1")]);
    assert_eq!(committed(&store), Some(1));

    let again = broker.restore(&store, &RestoreOptions::new()).unwrap();
    assert_eq!(again.applied, 0, "nothing is left to do");
}

#[test]
fn p4_a_restore_ends_by_position_over_gaps_at_the_end() {
    let store = memory_store();
    let broker = Broker::new(vec![record("a", Some("1")), Slot::Gap, Slot::Gap]);
    broker.restore(&store, &RestoreOptions::new()).unwrap();
    assert_eq!(committed(&store), Some(2), "the gaps are passed over, so the lag is 0");
}

#[test]
fn p4_an_empty_log_is_restored_at_once() {
    let store = memory_store();
    let broker = Broker::new(vec![Slot::Gap; 5]);
    broker.0.borrow_mut().start = 5;
    let restored = broker.restore(&store, &RestoreOptions::new()).unwrap();
    assert_eq!((restored.applied, restored.end), (0, offset(5)));
}

#[test]
fn p4_a_store_beyond_the_log_is_wiped_and_restored() {
    let store = memory_store();
    store.put(b"ghost", b"").unwrap();
    store.commit(&ChangelogOffsets::new().with(changelog(), offset(900))).unwrap();
    let broker = Broker::new(vec![record("a", Some("1"))]);
    let restored = broker.restore(&store, &RestoreOptions::new()).unwrap();
    assert_eq!(restored.wiped, Some(WipeReason::StoreBeyondLogEnd));
    assert_eq!(rows(&store), [row("a", "1")]);
    assert_eq!(committed(&store), Some(0));
}

/// The group's offsets expired: the source records whose effect the store has will come again.
#[test]
fn p4_a_store_beyond_its_source_is_wiped_and_restored() {
    for store in stores() {
        let broker = Broker::new(Vec::new());
        store.put(b"count", b"10").unwrap();
        broker.checkpoint(&store, &position(10)).unwrap();
        broker.0.borrow_mut().committed = Position::new();
        let restored = broker.restore(&store, &RestoreOptions::new()).unwrap();
        assert_eq!(restored.wiped, Some(WipeReason::StoreBeyondSource));
        assert_eq!(rows(&store), [], "the source begins anew, so the count does");
    }
}

#[test]
fn a_restored_store_knows_the_source_position_of_what_it_holds() {
    let store = memory_store();
    let broker = Broker::new(vec![record_of("a", Some("1"), 10), record_of("b", Some("1"), 12)]);
    broker.0.borrow_mut().committed = position(10);
    broker.restore(&store, &RestoreOptions::new()).unwrap();
    assert_eq!(store.position().unwrap(), position(10), "that of the last checkpoint applied");
}

#[test]
fn p4_a_store_behind_the_log_start_is_wiped_and_restored() {
    let store = memory_store();
    store.put(b"stale", b"").unwrap();
    store.commit(&ChangelogOffsets::new().with(changelog(), offset(0))).unwrap();
    let broker = Broker::new(vec![Slot::Gap, Slot::Gap, record("a", Some("1"))]);
    broker.0.borrow_mut().start = 2;
    let restored = broker.restore(&store, &RestoreOptions::new()).unwrap();
    assert_eq!(restored.wiped, Some(WipeReason::LogStartBeyondStore));
    assert_eq!(rows(&store), [row("a", "1")]);
}

#[test]
fn p4_a_store_just_at_the_log_start_is_not_wiped() {
    let store = memory_store();
    store.put(b"kept", b"").unwrap();
    store.commit(&ChangelogOffsets::new().with(changelog(), offset(1))).unwrap();
    let broker = Broker::new(vec![Slot::Gap, Slot::Gap, record("a", Some("1"))]);
    broker.0.borrow_mut().start = 2;
    assert_eq!(broker.restore(&store, &RestoreOptions::new()).unwrap().wiped, None);
    assert_eq!(rows(&store), [row("a", "1"), row("kept", "")]);
}

#[test]
fn p4_a_log_that_drops_its_oldest_records_refuses_to_rebuild_from_nothing() {
    let broker = Broker::new(vec![record("a", Some("1")), record("b", Some("1"))]);
    broker.0.borrow_mut().start = 1;
    let options = RestoreOptions::new().retention(LogRetention::DropsOldest);
    let store = memory_store();
    assert_eq!(broker.restore(&store, &options).unwrap_err().kind(), ErrorKind::Unsupported);

    // A store that has what was dropped needs nothing of it.
    store.commit(&ChangelogOffsets::new().with(changelog(), offset(0))).unwrap();
    assert_eq!(broker.restore(&store, &options).unwrap().applied, 1);
}

#[test]
fn p4_a_log_that_stops_short_is_an_error_in_bounded_time() {
    struct Silent(Broker);
    impl kstate_checkpoint::ChangelogReader for Silent {
        fn bounds(&mut self, p: &kstate_api::TopicPartition) -> kstate_api::Result<kstate_checkpoint::LogBounds> {
            self.0.bounds(p)
        }
        fn seek(&mut self, p: &kstate_api::TopicPartition, next: Offset) -> kstate_api::Result<()> {
            self.0.seek(p, next)
        }
        fn poll(
            &mut self,
            _: Duration,
            _: &mut dyn FnMut(Offset, kstate_checkpoint::ChangelogRecord<'_>),
        ) -> kstate_api::Result<bool> {
            Ok(false)
        }
        fn position(&mut self) -> kstate_api::Result<Offset> {
            self.0.position()
        }
    }
    let store = memory_store();
    let mut silent = Silent(Broker::new(vec![record("a", Some("1"))]));
    let options = RestoreOptions::new().stall_timeout(Duration::from_millis(10));
    let outcome =
        kstate_checkpoint::restore(&support::logged(&store), &position(0), &mut silent, &options, &mut |_| {});
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(committed(&store), None, "not done, so nothing may look done");
}

#[test]
fn p3_no_committed_offset_at_all_means_no_checkpoint_ever_ended() {
    let store = memory_store();
    let broker = Broker::new(vec![record_of("a", Some("1"), 10)]);
    let restored = broker.restore(&store, &RestoreOptions::new()).unwrap();
    assert_eq!((restored.applied, restored.uncommitted), (0, 1));
    assert_eq!(rows(&store), []);
    assert_eq!(committed(&store), Some(0), "passed over");
}

#[test]
fn p3_an_unreadable_header_is_an_error_not_a_guess() {
    let store = memory_store();
    let slot = Slot::Record { key: Some(b"a".to_vec()), value: None, header: Some(b"nonsense".to_vec()) };
    let error = Broker::new(vec![slot]).restore(&store, &RestoreOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupted);
    assert!(error.to_string().contains("offset 0"), "{error}");
}

/// An empty offset map never brings an old offset back: after a reset there is none, and the restore begins at the
/// log's start and ends.
#[test]
fn ho_22_a_reset_store_restores_from_the_log_start_once() {
    for store in stores() {
        store.commit(&ChangelogOffsets::new().with(changelog(), offset(0))).unwrap();
        store.forget_offsets().unwrap();
        let broker = Broker::new(vec![Slot::Gap, Slot::Gap, record("a", Some("1"))]);
        broker.0.borrow_mut().start = 2;
        let restored = broker.restore(&store, &RestoreOptions::new()).unwrap();
        assert_eq!((restored.from, restored.applied), (None, 1));
        assert_eq!(committed(&store), Some(2));
    }
}

#[test]
fn ho_28_tombstones_delete_whatever_the_batches() {
    let log = vec![record("a", Some("1")), record("b", Some("2")), record("a", None)];
    for (store, options) in stores_and_batches() {
        Broker::new(log.clone()).restore(&store, &options).unwrap();
        assert_eq!(store.get(b"a").unwrap(), None);
        assert_eq!(rows(&store), [row("b", "2")]);
        assert_eq!(committed(&store), Some(2));
    }
}

#[test]
fn ho_29_a_key_added_again_after_its_deletion_is_there() {
    let log = vec![record("1", Some("Foo")), record("2", Some("Bar")), record("2", None), record("2", Some("Baz"))];
    for (store, options) in stores_and_batches() {
        Broker::new(log.clone()).restore(&store, &options).unwrap();
        assert_eq!(rows(&store), [row("1", "Foo"), row("2", "Baz")]);
    }
}

/// Changes of a checkpoint whose source commit never happened are not applied, for their source records come again.
#[test]
fn ho_30_changes_that_will_be_made_again_are_not_applied() {
    let broker = Broker::new(vec![record_of("a", Some("1"), 10), record_of("a", Some("2"), 13)]);
    broker.0.borrow_mut().committed = position(10);
    for (store, options) in stores_and_batches() {
        let restored = broker.restore(&store, &options).unwrap();
        assert_eq!((restored.applied, restored.uncommitted), (1, 1));
        assert_eq!(rows(&store), [row("a", "1")]);
        assert_eq!(committed(&store), Some(1), "passed over, so it is not lag");
    }
    // The source records 10 to 12 come again: the counter moves once.
    let store = memory_store();
    broker.restore(&store, &RestoreOptions::new()).unwrap();
    let count: u64 = std::str::from_utf8(&store.get(b"a").unwrap().unwrap()).unwrap().parse().unwrap();
    store.put(b"a", (count + 1).to_string().as_bytes()).unwrap();
    broker.checkpoint(&store, &position(13)).unwrap();
    assert_eq!(rows(&store), [row("a", "2")]);

    // A store rebuilt from nothing agrees now.
    let rebuilt = memory_store();
    broker.restore(&rebuilt, &RestoreOptions::new()).unwrap();
    assert_eq!(rows(&rebuilt), [row("a", "2")]);
}

#[test]
fn ho_30_a_record_without_the_header_is_applied() {
    let store = memory_store();
    Broker::new(vec![record("a", Some("1"))]).restore(&store, &RestoreOptions::new()).unwrap();
    assert_eq!(rows(&store), [row("a", "1")]);
}

#[test]
fn ho_47_an_empty_value_is_restored_as_a_value() {
    let store = memory_store();
    Broker::new(vec![record("k", Some(""))]).restore(&store, &RestoreOptions::new()).unwrap();
    assert_eq!(store.get(b"k").unwrap().unwrap(), "");
}
