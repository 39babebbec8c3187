//! Restores end, and end right (clauses P3, P4).

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod support;

use std::{sync::Arc, time::Duration};

use kstate_api::{ChangelogOffsets, ErrorKind, KeyValueStore, Offset, Position, StateStore};
use kstate_checkpoint::{LogRetention, RestoreOptions, RestoreProgress, WipeReason, restore};
use support::{
    broker::{Broker, Slot, changelog, logged, offset, position, record, record_of, row, rows},
    memory_store, on_each_backend, scenarios,
};

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
fn what_is_told_of_a_restore_is_in_the_store_by_then() {
    let records: Vec<_> = (0..100).map(|n| record(&n.to_string(), Some("1"))).collect();
    for max_batch_bytes in [1, 200, 1 << 20] {
        let (store, mut broker) = (memory_store(), Broker::new(records.clone()));
        let options = RestoreOptions::new().max_batch_bytes(max_batch_bytes);
        let mut told = vec![0];
        let mut progress = |progress: RestoreProgress| {
            let next = progress.next.get();
            assert!(committed(&store).is_some_and(|committed| committed >= next - 1), "{progress:?}");
            assert_eq!((i64::try_from(progress.applied).unwrap(), progress.end), (next, offset(100)));
            told.push(next);
        };
        restore(&logged(&store), &position(0), &mut broker, &options, &mut progress).unwrap();
        assert!(told.is_sorted() && told.last() == Some(&100), "{told:?}");
        assert_eq!(rows(&store).len(), 100);
    }
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

#[test]
fn p4_a_store_beyond_its_source_is_wiped_and_restored() {
    on_each_backend(scenarios::p4_a_store_beyond_its_source_is_wiped_and_restored);
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
    let outcome = kstate_checkpoint::restore(&logged(&store), &position(0), &mut silent, &options, &mut |_| {});
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
    assert_eq!(committed(&store), None, "still to be healed, so a restart has to find it again");
}

#[test]
fn p3_an_unreadable_header_is_an_error_not_a_guess() {
    let store = memory_store();
    let slot = Slot::Record { key: Some(b"a".to_vec()), value: None, header: Some(b"nonsense".to_vec()) };
    let error = Broker::new(vec![slot]).restore(&store, &RestoreOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupted);
    assert!(error.to_string().contains("offset 0"), "{error}");
}

#[test]
fn ho_22_a_reset_store_restores_from_the_log_start_once() {
    on_each_backend(scenarios::ho_22_a_reset_store_restores_from_the_log_start_once);
}

#[test]
fn ho_28_tombstones_delete_whatever_the_batches() {
    on_each_backend(scenarios::ho_28_tombstones_delete_whatever_the_batches);
}

#[test]
fn ho_29_a_key_added_again_after_its_deletion_is_there() {
    on_each_backend(scenarios::ho_29_a_key_added_again_after_its_deletion_is_there);
}

#[test]
fn ho_30_changes_that_will_be_made_again_are_not_applied() {
    on_each_backend(scenarios::ho_30_changes_that_will_be_made_again_are_not_applied);
}

#[test]
fn ho_30_a_record_without_the_header_is_applied() {
    on_each_backend(scenarios::ho_30_a_record_without_the_header_is_applied);
}

#[test]
fn ho_47_an_empty_value_is_restored_as_a_value() {
    on_each_backend(scenarios::ho_47_an_empty_value_is_restored_as_a_value);
}

/// The group's offsets have expired, and its source has dropped what they were past: a state passed over would be healed
/// away.
#[test]
fn p3_a_group_that_lost_its_offsets_is_refused_if_its_source_cannot_be_read_again() {
    let broker = Broker::new(vec![record_of("a", Some("1"), 10), record_of("b", Some("2"), 20)]);
    for with_state in [false, true] {
        let store = memory_store();
        if with_state {
            broker.0.borrow_mut().committed = position(20);
            broker.restore(&store, &RestoreOptions::new()).unwrap();
        }
        broker.0.borrow_mut().committed = Position::new();
        let before = (rows(&store), committed(&store));
        let error = broker.restore(&store, &RestoreOptions::new().source_starts(position(5))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("lines-0"), "{error}");
        assert_eq!((rows(&store), committed(&store)), before, "nothing was wiped");
    }
    // From its start on it can be read again: all of it comes again.
    let restored = broker.restore(&memory_store(), &RestoreOptions::new().source_starts(position(0))).unwrap();
    assert_eq!((restored.applied, restored.uncommitted), (0, 2));
    // What is committed is committed, wherever the source begins.
    broker.0.borrow_mut().committed = position(20);
    let restored = broker.restore(&memory_store(), &RestoreOptions::new().source_starts(position(5))).unwrap();
    assert_eq!((restored.applied, restored.uncommitted), (2, 0));
}
