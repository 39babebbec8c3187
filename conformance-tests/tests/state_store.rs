//! The suite on a store that is a `StateStore` only: counters, which know nothing of keys and values.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod counters;

use counters::{Bug, CounterHarness};
use kstate_conformance_tests::{Capability, Declared, Outcome, StateStoreOnly, Suite, case, conformance_tests};

mod in_memory {
    use super::*;

    conformance_tests! {
        harness: CounterHarness(Bug::None),
        state_store_only: true,
        persistent: false,
        manages_offsets: true,
        durable_commit: false,
        synced_commit: false,
        multi_process_lock: false,
        closed_offsets: false,
    }
}

fn suite(bug: Bug) -> Suite {
    let declared = Declared::new(&[Capability::ManagesOffsets, Capability::StateStoreOnly]);
    Suite::new(StateStoreOnly::new(CounterHarness(bug)), declared)
}

#[test]
fn a_bug_in_such_a_store_is_caught() {
    for (bug, name) in [
        (Bug::CloseKeepsCounters, "o4_a_volatile_store_reopens_empty"),
        (Bug::RollbackKeepsCounters, "r5_a_rollback_drops_what_is_staged"),
        (Bug::CommitForgetsOffsets, "o2_a_commit_of_no_offsets_keeps_them"),
        (Bug::ClosedStoreCounts, "ho_64_every_use_after_a_close_is_closed"),
        (Bug::ZeroIsAbsent, "r4_an_empty_value_is_a_value"),
        (Bug::RollbackKeepsCounters, "model_random_operations_agree_with_a_map"),
    ] {
        let violation = suite(bug).run(case(name).unwrap()).expect_err("the case catches the bug");
        println!("{name}: {violation}");
        assert_eq!(suite(Bug::None).run(case(name).unwrap()).unwrap(), Outcome::Passed);
    }
}

#[test]
fn cases_about_keys_and_values_are_ignored_and_say_why() {
    for name in ["r1_keys_are_ordered_as_unsigned_bytes", "ho_40_a_cursor_of_a_closed_store_is_closed_for_good"] {
        let outcome = suite(Bug::None).run(case(name).unwrap()).unwrap();
        assert_eq!(outcome, Outcome::Skipped("store declares `state_store_only: true`".into()));
    }
}

#[test]
fn a_key_value_store_is_not_declared_as_less() {
    let harness = kstate_conformance_tests::BackendHarness::new(kstate_store_memory::MemoryBackends::new());
    let declared = [Capability::ManagesOffsets, Capability::Snapshots, Capability::ReverseScan];
    let declared = Declared::new(&declared).and(Capability::ClosedOffsets);
    let declared = declared.and(Capability::Faults).and(Capability::LongKeys);
    let declaration = case("declaration_matches_the_store").unwrap();
    assert_eq!(Suite::new(harness.clone(), declared).run(declaration).unwrap(), Outcome::Passed);
    let violation = Suite::new(harness, declared.and(Capability::StateStoreOnly)).run(declaration).unwrap_err();
    assert!(violation.to_string().contains("declares `state_store_only: true`"), "{violation}");
}
