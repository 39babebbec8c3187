//! The suite without its macro: what a driver of one's own meets.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod planted;

use std::ops::Bound;

use kstate_api::{Durability, Order};
use kstate_conformance_tests::{CASES, Capability, Declared, Operation, Outcome, Suite, case};
use planted::{bug::Bug, store::ToyHarness};

fn suite(bug: Bug) -> Suite {
    let declared = Capability::ALL.into_iter().filter(|capability| *capability != Capability::SyncedCommit);
    Suite::new(ToyHarness::new(bug, Durability::Process), Declared::new(&declared.collect::<Vec<_>>()))
}

#[test]
fn names_are_unique_and_say_what_they_are_about() {
    for (n, case) in CASES.iter().enumerate() {
        assert!(CASES.iter().skip(n + 1).all(|other| other.name() != case.name()), "{} comes twice", case.name());
        let clause = format!("{}_", case.clause()).to_lowercase();
        let begins = [clause.as_str(), "ho_", "model_", "declaration_"];
        assert!(begins.iter().any(|begin| case.name().starts_with(begin)), "{} is of {}", case.name(), case.clause());
    }
}

#[test]
fn a_case_that_does_not_apply_is_skipped() {
    let outcome = suite(Bug::None).run(case("o4_a_volatile_store_reopens_empty").unwrap()).unwrap();
    assert_eq!(outcome, Outcome::Skipped("store declares `persistent: true`".into()));
    let outcome = suite(Bug::None).run(case("o6_a_synced_commit_is_durable_at_once").unwrap()).unwrap();
    assert_eq!(outcome, Outcome::Skipped("store declares `synced_commit: false`".into()));
}

#[test]
fn a_case_that_kills_does_not_pass_without_a_victim() {
    let kill = case("o6_a_kill_leaves_one_whole_commit").unwrap();
    let violation = suite(Bug::None).run(kill).unwrap_err().to_string();
    assert!(violation.contains("respawned_by"), "{violation}");
    // A test of a wrong name runs nothing, and says nothing.
    let violation = suite(Bug::None).respawned_by("driving::no_such_test").run(kill).unwrap_err().to_string();
    assert!(violation.contains("the child ended by itself"), "{violation}");
}

#[test]
fn a_violation_names_the_clause_and_what_was_seen() {
    let violation =
        suite(Bug::OffsetIsTheGreatest).run(case("o3_a_lower_offset_is_stored_as_given").unwrap()).unwrap_err();
    assert_eq!(violation.clause(), Some(kstate_conformance_tests::Clause::O3));
    let text = violation.to_string();
    assert!(text.starts_with("violates O3 (an offset is stored exactly as given): "), "{text}");
    assert!(text.contains("expected Some(120), saw Some(9000)"), "{text}");
}

#[test]
fn the_model_prints_a_test_that_fails_for_the_same_reason() {
    let violation =
        suite(Bug::OffsetIsTheGreatest).run(case("model_random_operations_agree_with_a_map").unwrap()).unwrap_err();
    let text = violation.to_string();
    // As short as it can be: one offset, and then a lower one.
    let steps: Vec<_> = text.lines().filter(|line| line.trim_start().starts_with("Operation::")).collect();
    assert_eq!(steps.len(), 2, "{text}");
    assert!(text.contains("suite.replay(&[\n"), "{text}");
}

#[test]
fn what_the_model_prints_can_be_replayed() {
    // Every form that is printed, as it is printed.
    let operations = [
        Operation::Put(b"\xff", b""),
        Operation::Delete(b"a"),
        Operation::PutAll(vec![(&b"a"[..], Some(&b"1"[..])), (&b"\x00"[..], None)]),
        Operation::PutIfAbsent(b"ab", b"2"),
        Operation::StagePosition(1, 7),
        Operation::Commit(Some(9), None),
        Operation::OpenCursor(Order::Ascending),
        Operation::Snapshot,
        Operation::Rollback,
        Operation::Restore(vec![(&b"a"[..], None)], 3, true),
        Operation::ReadSnapshot(0),
        Operation::StepCursor(2),
        Operation::Scan(Bound::Included(b"a"), Bound::Excluded(b"\xff"), Order::Descending),
        Operation::ForgetOffsets,
        Operation::Flush,
        Operation::DropAndReopen,
        Operation::Wipe,
        Operation::Reopen,
    ];
    suite(Bug::None).replay(&operations).unwrap();
    let lower = [Operation::Commit(Some(9), None), Operation::Commit(Some(3), None)];
    let violation = suite(Bug::OffsetIsTheGreatest).replay(&lower).unwrap_err().to_string();
    assert!(violation.contains("expected Some(3), saw Some(9)"), "{violation}");
    let printed = format!("{operations:?}");
    for form in [
        r#"Operation::Put(b"\xff", b"")"#,
        r#"Operation::PutAll(vec![(&b"a"[..], Some(&b"1"[..])), (&b"\x00"[..], None)])"#,
        r#"Operation::Restore(vec![(&b"a"[..], None)], 3, true)"#,
        r#"Operation::Scan(Bound::Included(b"a"), Bound::Excluded(b"\xff"), Order::Descending)"#,
        "Operation::Commit(Some(9), None)",
    ] {
        assert!(printed.contains(form), "{form} is not in {printed}");
    }
}
