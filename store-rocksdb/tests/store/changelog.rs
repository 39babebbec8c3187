//! The scenarios of checkpoint and restore, which that crate runs on the stores that need no C++.
use std::{cell::RefCell, sync::Arc};

use kstate_api::{Durability, KeyValueStore, StagedStore};

use crate::{
    broker,
    common::{LEVELS, open},
    scenarios,
};

fn at_each_durability(scenario: fn(scenarios::NewStore<'_>)) {
    for durability in LEVELS {
        on_new_stores(durability, scenario);
    }
}

fn on_new_stores(durability: Durability, scenario: fn(scenarios::NewStore<'_>)) {
    // They outlive the stores.
    let directories = RefCell::new(Vec::new());
    scenario(&|| {
        let directory = tempfile::tempdir().unwrap();
        let backend = open(directory.path(), durability);
        directories.borrow_mut().push(directory);
        let store = StagedStore::open("counts", backend, &[broker::changelog()]).unwrap();
        Arc::new(store) as Arc<dyn KeyValueStore>
    });
}

#[test]
fn p4_a_store_beyond_its_source_is_wiped_and_restored() {
    at_each_durability(scenarios::p4_a_store_beyond_its_source_is_wiped_and_restored);
}

#[test]
fn ho_22_a_reset_store_restores_from_the_log_start_once() {
    at_each_durability(scenarios::ho_22_a_reset_store_restores_from_the_log_start_once);
}

#[test]
fn ho_28_tombstones_delete_whatever_the_batches() {
    at_each_durability(scenarios::ho_28_tombstones_delete_whatever_the_batches);
}

#[test]
fn ho_29_a_key_added_again_after_its_deletion_is_there() {
    at_each_durability(scenarios::ho_29_a_key_added_again_after_its_deletion_is_there);
}

#[test]
fn ho_30_changes_that_will_be_made_again_are_not_applied() {
    at_each_durability(scenarios::ho_30_changes_that_will_be_made_again_are_not_applied);
}

#[test]
fn ho_30_a_record_without_the_header_is_applied() {
    at_each_durability(scenarios::ho_30_a_record_without_the_header_is_applied);
}

#[test]
fn ho_47_an_empty_value_is_restored_as_a_value() {
    at_each_durability(scenarios::ho_47_an_empty_value_is_restored_as_a_value);
}

#[test]
fn ho_48_an_oversized_value_fails_the_checkpoint_as_a_whole() {
    at_each_durability(scenarios::ho_48_an_oversized_value_fails_the_checkpoint_as_a_whole);
}

#[test]
fn ho_61_a_standby_that_follows_for_long_has_few_files() {
    let directory = tempfile::tempdir().unwrap();
    let backend = open(directory.path(), Durability::Eventual);
    let store: Arc<dyn KeyValueStore> = Arc::new(StagedStore::open("counts", backend, &[broker::changelog()]).unwrap());
    scenarios::ho_61_a_standby_that_follows_for_long_has_few_files(&store, directory.path());
}
