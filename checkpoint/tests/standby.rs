//! A standby follows its task as far as the group has committed.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod support;

use std::sync::Arc;

use kstate_api::{Durability, KeyValueStore, StagedStore, StateStore};
use kstate_checkpoint::{RestoreOptions, StandbyUpdate, Task, WipeReason, update_standby};
use kstate_store_redb::{RedbBackend, RedbOptions};
use support::{
    broker::{Broker, changelog, offset, position, record_of, row, rows, task},
    memory_store, scenarios,
};

fn update(broker: &Broker, task: &Task, committed: i64) -> StandbyUpdate {
    let options = RestoreOptions::new();
    update_standby(&task.stores()[0], &position(committed), &mut broker.clone(), &options, &mut |_| {}).unwrap()
}

fn standby() -> (Arc<dyn KeyValueStore>, Task) {
    let store = memory_store();
    let task = task(&store);
    (store, task)
}

#[test]
fn it_stops_before_a_checkpoint_that_is_under_way_and_goes_on_once_it_is_committed() {
    let log = vec![
        record_of("a", Some("1"), 10),
        record_of("b", Some("1"), 10),
        record_of("a", Some("2"), 20),
        record_of("b", None, 20),
    ];
    let broker = Broker::new(log);
    let (store, task) = standby();
    let first = update(&broker, &task, 10);
    assert_eq!((first.applied, first.next, first.end), (2, offset(2), offset(4)));
    assert_eq!(rows(&store), [row("a", "1"), row("b", "1")]);
    assert_eq!(store.committed_offset(&changelog()).unwrap(), Some(offset(1)));
    assert_eq!(task.stores()[0].unsettled_keys(), 0, "a standby has nothing to heal");

    let again = update(&broker, &task, 10);
    assert_eq!((again.applied, again.next), (0, offset(2)));

    let last = update(&broker, &task, 20);
    assert_eq!((last.applied, last.next), (2, offset(4)));
    assert_eq!(rows(&store), [row("a", "2")]);
    assert_eq!(store.committed_offset(&changelog()).unwrap(), Some(offset(3)));
    assert_eq!(update(&broker, &task, 20).applied, 0);
}

#[test]
fn nothing_committed_is_nothing_to_follow() {
    let broker = Broker::new(vec![record_of("a", Some("1"), 10)]);
    let (store, task) = standby();
    let update = update(&broker, &task, 9);
    assert_eq!((update.applied, update.next, update.wiped), (0, offset(0), Some(WipeReason::NoOffset)));
    assert_eq!(rows(&store), []);
    assert_eq!(store.committed_offset(&changelog()).unwrap(), None);
}

/// Becoming active costs what is missing, and no more.
#[test]
fn a_standby_that_takes_over_restores_only_the_rest() {
    let log = vec![record_of("a", Some("1"), 10), record_of("a", Some("2"), 20)];
    let broker = Broker::new(log);
    let (store, task) = standby();
    update(&broker, &task, 10);
    broker.0.borrow_mut().committed = position(20);
    let restored = broker.restore(&store, &RestoreOptions::new()).unwrap();
    assert_eq!((restored.from, restored.applied, restored.wiped), (Some(offset(0)), 1, None));
    assert_eq!(rows(&store), [row("a", "2")]);
    drop(task);
}

#[test]
fn ho_61_a_standby_that_follows_for_long_has_few_files() {
    let directory = tempfile::tempdir().unwrap();
    let options = RedbOptions::new().durability(Durability::Eventual).flush_every(1000, u64::MAX);
    let redb = RedbBackend::open(directory.path(), &options).unwrap();
    let store: Arc<dyn KeyValueStore> = Arc::new(StagedStore::open("counts", redb, &[changelog()]).unwrap());
    scenarios::ho_61_a_standby_that_follows_for_long_has_few_files(&store, directory.path());
}
