//! What a failed checkpoint left in the changelog does not survive into state (clause P3).

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod support;

use std::sync::Arc;

use kstate_api::{ErrorKind, KeyValueStore, Position, StagedStore, StateStore};
use kstate_checkpoint::{RestoreOptions, Task, checkpoint, restore};
use kstate_conformance_tests::{Faults, FaultyBackend, StepFault};
use kstate_store_memory::MemoryBackend;
use support::{
    broker::{Broker, Fault, Slot, changelog, offset, position, record_of, row, rows, task},
    memory_store,
};

fn take(broker: &Broker, task: &Task, position: &Position) -> kstate_api::Result<()> {
    checkpoint(std::slice::from_ref(task), position, &mut broker.clone(), &mut broker.clone()).map(drop)
}

/// What a store holds that is built from the log alone.
fn rebuilt(broker: &Broker) -> Vec<(String, String)> {
    let store = memory_store();
    broker.restore(&store, &RestoreOptions::new()).unwrap();
    rows(&store)
}

/// A checkpoint of a and b, then one of b, c and a tombstone for a that fails.
fn after_a_failure(fault: Fault) -> (Broker, Arc<dyn KeyValueStore>, Task) {
    let (broker, store) = (Broker::new(Vec::new()), memory_store());
    let task = task(&store);
    store.put(b"a", b"1").unwrap();
    store.put(b"b", b"1").unwrap();
    take(&broker, &task, &position(10)).unwrap();
    store.delete(b"a").unwrap();
    store.put(b"b", b"2").unwrap();
    store.put(b"c", b"2").unwrap();
    broker.0.borrow_mut().fault = Some(fault);
    take(&broker, &task, &position(20)).unwrap_err();
    (broker, store, task)
}

#[test]
fn p3_changes_rolled_back_after_a_failed_delivery_are_not_in_a_rebuilt_store() {
    for fault in [Fault::Append, Fault::Delivery] {
        let (broker, store, task) = after_a_failure(fault);
        store.rollback().unwrap();
        assert!(task.stores()[0].unsettled_keys() > 0, "{fault:?}");
        // Other records come after the rollback, and the group goes beyond the failed checkpoint.
        store.put(b"d", b"3").unwrap();
        take(&broker, &task, &position(30)).unwrap();
        assert_eq!(task.stores()[0].unsettled_keys(), 0, "{fault:?}");

        let expected = [row("a", "1"), row("b", "1"), row("d", "3")];
        assert_eq!(rows(&store), expected, "{fault:?}");
        assert_eq!(rebuilt(&broker), expected, "{fault:?}");
    }
}

#[test]
fn p3_a_key_written_again_is_healed_by_its_new_value() {
    let (broker, store, task) = after_a_failure(Fault::Delivery);
    store.rollback().unwrap();
    store.put(b"b", b"3").unwrap();
    let before = broker.0.borrow().log.len();
    take(&broker, &task, &position(30)).unwrap();

    let written = broker.0.borrow_mut().log.split_off(before);
    let keys: Vec<_> = written
        .iter()
        .map(|slot| match slot {
            Slot::Record { key, value, .. } => (key.clone().unwrap(), value.clone()),
            Slot::Gap => panic!("no gaps here"),
        })
        .collect();
    // The delivery that failed was that of c; it is superseded all the same, for nobody can tell.
    assert_eq!(
        keys,
        [(b"a".to_vec(), Some(b"1".to_vec())), (b"c".to_vec(), None), (b"b".to_vec(), Some(b"3".to_vec()))]
    );
}

#[test]
fn p3_healing_is_a_checkpoint_of_its_own_if_nothing_else_is_to_do() {
    let (broker, store, task) = after_a_failure(Fault::Delivery);
    store.rollback().unwrap();
    take(&broker, &task, &Position::new()).unwrap();
    assert_eq!(task.stores()[0].unsettled_keys(), 0);

    broker.0.borrow_mut().committed = position(100);
    assert_eq!(rebuilt(&broker), [row("a", "1"), row("b", "1")]);
}

#[test]
fn p3_a_healing_that_fails_is_repeated() {
    let (broker, store, task) = after_a_failure(Fault::Delivery);
    store.rollback().unwrap();
    broker.0.borrow_mut().fault = Some(Fault::Delivery);
    take(&broker, &task, &position(30)).unwrap_err();
    take(&broker, &task, &position(30)).unwrap();
    assert_eq!(rebuilt(&broker), [row("a", "1"), row("b", "1")]);
}

#[test]
fn p1_changes_of_an_ambiguous_source_commit_can_be_repeated_but_not_rolled_back() {
    let (broker, store, task) = after_a_failure(Fault::SourceCommit);
    store.put(b"d", b"3").unwrap();
    take(&broker, &task, &position(30)).unwrap();
    assert_eq!(rebuilt(&broker), [row("b", "2"), row("c", "2"), row("d", "3")]);

    let (broker, store, task) = after_a_failure(Fault::SourceCommit);
    store.rollback().unwrap();
    let steps = broker.0.borrow().steps.len();
    let error = take(&broker, &task, &position(30)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Poisoned);
    assert_eq!(broker.0.borrow().steps.len(), steps, "nothing was sent");

    // The group had committed, as it turns out.
    broker.0.borrow_mut().committed = position(20);
    restore(&task.stores()[0], &position(20), &mut broker.clone(), &RestoreOptions::new(), &mut |_| {}).unwrap();
    assert_eq!(rows(&store), [row("b", "2"), row("c", "2")]);
    store.put(b"d", b"3").unwrap();
    take(&broker, &task, &position(30)).unwrap();
    assert_eq!(rebuilt(&broker), [row("b", "2"), row("c", "2"), row("d", "3")]);
}

#[test]
fn p3_a_tail_found_by_a_restore_is_healed_by_the_next_checkpoint() {
    let log = vec![
        record_of("a", Some("1"), 10),
        record_of("b", Some("1"), 10),
        record_of("a", None, 20),
        record_of("c", Some("2"), 20),
    ];
    let broker = Broker::new(log);
    broker.0.borrow_mut().committed = position(10);
    let store = memory_store();
    let task = task(&store);
    let heal = |store: &Arc<dyn KeyValueStore>, task: &Task| {
        let options = RestoreOptions::new();
        let restored = restore(&task.stores()[0], &position(10), &mut broker.clone(), &options, &mut |_| {}).unwrap();
        assert_eq!(restored.uncommitted, 2);
        assert_eq!(task.stores()[0].unsettled_keys(), 2);
        // Else a restart before the next checkpoint would not find the tail again.
        assert_eq!(store.committed_offset(&changelog()).unwrap(), Some(offset(1)));
    };
    heal(&store, &task);
    heal(&store, &task);

    take(&broker, &task, &position(30)).unwrap();
    assert_eq!(store.committed_offset(&changelog()).unwrap(), Some(offset(5)));
    assert_eq!(rows(&store), [row("a", "1"), row("b", "1")]);
    assert_eq!(rebuilt(&broker), [row("a", "1"), row("b", "1")]);
}

#[test]
fn p3_a_tail_is_found_again_whatever_the_batches() {
    let mut log = vec![record_of("a", Some("1"), 10), record_of("t", Some("2"), 20)];
    log.extend((0..50).map(|n| record_of(&format!("k{n}"), Some("1"), 10)));
    let broker = Broker::new(log);
    let store = memory_store();
    let task = task(&store);
    for max in [1, 200, 1 << 20] {
        let options = RestoreOptions::new().max_batch_bytes(max);
        let mut seen = Vec::new();
        restore(&task.stores()[0], &position(10), &mut broker.clone(), &options, &mut |_| {
            seen.push(store.committed_offset(&changelog()).unwrap());
        })
        .unwrap();
        assert!(seen.iter().all(|stored| *stored <= Some(offset(0))), "{max}: {seen:?}");
    }
}

/// The group is ahead of a store whose commit failed: its changes can be committed yet, but not given up.
#[test]
fn p6_changes_that_a_store_refused_can_be_repeated_but_not_rolled_back() {
    for rolled_back in [false, true] {
        let (broker, faults) = (Broker::new(Vec::new()), Faults::new());
        let backend = FaultyBackend::new(MemoryBackend::new(), faults.clone());
        let store: Arc<dyn KeyValueStore> = Arc::new(StagedStore::open("counts", backend, &[changelog()]).unwrap());
        let task = task(&store);
        store.put(b"a", b"1").unwrap();
        faults.fail_next_step(StepFault::Refused);
        take(&broker, &task, &position(10)).unwrap_err();
        assert_eq!(broker.0.borrow().committed, position(10), "the group was first");
        assert_eq!(task.stores()[0].unsettled_keys(), 1);

        if rolled_back {
            store.rollback().unwrap();
            assert_eq!(take(&broker, &task, &position(20)).unwrap_err().kind(), ErrorKind::Poisoned);
            assert_eq!(store.committed_offset(&changelog()).unwrap(), None, "else a restore would begin after it");
        } else {
            take(&broker, &task, &position(20)).unwrap();
            assert_eq!(store.committed_offset(&changelog()).unwrap(), Some(offset(1)));
            assert_eq!(task.stores()[0].unsettled_keys(), 0);
        }
    }
}

#[test]
fn p3_a_key_that_was_committed_after_it_was_passed_over_needs_no_healing() {
    let broker = Broker::new(vec![record_of("a", Some("lost"), 20), record_of("a", Some("1"), 10)]);
    let store = memory_store();
    let task = task(&store);
    let options = RestoreOptions::new();
    let restored = restore(&task.stores()[0], &position(10), &mut broker.clone(), &options, &mut |_| {}).unwrap();
    assert_eq!((restored.applied, restored.uncommitted), (1, 1));
    assert_eq!(task.stores()[0].unsettled_keys(), 0);
    assert_eq!(store.committed_offset(&changelog()).unwrap(), Some(offset(1)), "nothing has to be found again");
}
