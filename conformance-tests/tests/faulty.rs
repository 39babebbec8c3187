//! The decorators that fail: they keep the contract while they do, and do what the plan says.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use std::{path::Path, sync::Arc};

use kstate_api::{
    Backend, ChangelogOffsets, CommitOutcome, CursorExt, ErrorKind, KeyValueStore, Offset, ReadOnlyKeyValueStore,
    ReadOnlyKeyValueStoreExt, Result, StagedStore, StateStore, TopicPartition, WriteBatch,
};
use kstate_conformance_tests::{
    FaultRates, Faults, Faulty, FaultyBackend, Harness, Injected, StepFault, conformance_tests,
};
use kstate_store_memory::MemoryBackend;

fn changelog() -> TopicPartition {
    TopicPartition::new("counts-changelog", 0)
}

fn at(value: i64) -> ChangelogOffsets {
    ChangelogOffsets::new().with(changelog(), Offset::new(value).unwrap())
}

fn memory(partitions: &[TopicPartition]) -> Result<StagedStore<MemoryBackend>> {
    StagedStore::open("counts", MemoryBackend::new(), partitions)
}

fn faulty(faults: &Faults) -> Faulty<StagedStore<MemoryBackend>> {
    Faulty::new(memory(&[changelog()]).unwrap(), faults.clone())
}

struct FaultyHarness;

impl Harness for FaultyHarness {
    type Store = Faulty<StagedStore<MemoryBackend>>;

    fn open(&self, _: &Path, partitions: &[TopicPartition]) -> Result<Self::Store> {
        Ok(Faulty::new(memory(partitions)?, Faults::new()))
    }

    fn open_faulty(&self, _: &Path, partitions: &[TopicPartition], faults: &Faults) -> Result<Arc<dyn KeyValueStore>> {
        Ok(Arc::new(Faulty::new(memory(partitions)?, faults.clone())))
    }
}

mod suite {
    use super::*;

    conformance_tests! {
        harness: FaultyHarness,
        persistent: false,
        manages_offsets: true,
        durable_commit: false,
        synced_commit: false,
        snapshots: true,
        reverse_scan: true,
        long_keys: true,
        multi_process_lock: false,
        closed_offsets: false,
        faults: true,
    }
}

#[test]
fn a_plan_by_hand_is_carried_out_in_order() {
    let faults = Faults::new();
    faults.plan_steps([None, Some(StepFault::Refused), None]);
    faults.fail_next_step(StepFault::Refused);
    let store = faulty(&faults);
    let outcomes: Vec<_> = (0..5).map(|n| store.commit(&at(n)).map_err(|error| error.commit_outcome())).collect();
    let refused = Err(Some(CommitOutcome::NotApplied));
    assert_eq!(outcomes, [refused, Ok(()), refused, Ok(()), Ok(())]);
    assert_eq!(
        faults.injected(),
        [Injected::Step(0, StepFault::Refused), Injected::Step(2, StepFault::Refused)],
        "what is written down can be planned again"
    );
    faults.plan_reads([false, true, false]);
    let reads: Vec<_> = (0..3).map(|_| store.get(b"a").is_ok()).collect();
    assert_eq!(reads, [true, false, true]);
    faults.plan_flushes([true]);
    assert_eq!(store.flush().unwrap_err().kind(), ErrorKind::Io);
    store.flush().unwrap();
    faults.plan_steps([Some(StepFault::Refused)]);
    faults.end();
    store.commit(&at(9)).unwrap();
}

#[test]
fn each_step_fault_leaves_the_store_below_as_it_says() {
    type Step = fn(&dyn KeyValueStore) -> Result<()>;
    let steps: [(&str, Step); 4] = [
        ("commit", |store| store.commit(&at(2))),
        ("restore", |store| {
            store.rollback()?;
            let mut batch = WriteBatch::new();
            batch.put("a", "2");
            batch.set_offset(changelog(), Offset::new(2).unwrap());
            store.restore(&batch)
        }),
        ("wipe", |store| store.wipe()),
        ("forget_offsets", |store| store.forget_offsets()),
    ];
    for (what, step) in steps {
        for fault in [StepFault::Refused, StepFault::LostBefore, StepFault::LostAfter, StepFault::Unsaid] {
            let faults = Faults::new();
            let store = faulty(&faults);
            store.put(b"a", b"1").unwrap();
            store.commit(&at(1)).unwrap();
            store.put(b"a", b"2").unwrap();
            faults.fail_next_step(fault);
            let error = step(&store).unwrap_err();
            let poisoned = fault != StepFault::Refused;
            let outcome = if poisoned { CommitOutcome::Unknown } else { CommitOutcome::NotApplied };
            assert_eq!(error.commit_outcome(), Some(outcome), "{what}, {fault:?}");
            assert_eq!(error.store(), Some("counts"), "{what}, {fault:?}");
            assert_eq!(store.is_open(), !poisoned, "{what}, {fault:?}");
            assert_eq!(store.get(b"a").is_err_and(|error| error.kind() == ErrorKind::Poisoned), poisoned);
            // The store below is what a reopen would show.
            let below = store.store().snapshot().unwrap();
            let seen = (below.get(b"a").unwrap(), below.committed_offset(&changelog()).unwrap().map(Offset::get));
            let expected = match (fault, what) {
                (StepFault::LostAfter, "wipe") => (None, None),
                (StepFault::LostAfter, "forget_offsets") => (Some("1".into()), None),
                (StepFault::LostAfter, _) => (Some("2".into()), Some(2)),
                _ => (Some("1".into()), Some(1)),
            };
            assert_eq!(seen, expected, "{what}, {fault:?}");
        }
    }
}

#[test]
fn a_cursor_fails_in_the_middle_and_ends_where_it_ends() {
    let faults = Faults::new();
    let store = faulty(&faults);
    for key in [b"a", b"b", b"c"] {
        store.put(key, b"1").unwrap();
    }
    store.commit(&at(0)).unwrap();
    let snapshot = store.snapshot().unwrap();
    for view in [&store as &dyn ReadOnlyKeyValueStore, &snapshot] {
        faults.plan_cursors([Some(2), None, Some(1), Some(9)]);
        let copies: Vec<_> = view.all().unwrap().entries().map(|row| row.is_ok()).collect();
        assert_eq!(copies, [true, true, false]);
        assert_eq!(view.all().unwrap().entries().flatten().count(), 3);
        let mut failed = view.all().unwrap();
        assert!(failed.advance().unwrap() && failed.advance().is_err());
        assert_eq!(failed.row(), None);
        let mut ends_before_it_fails = view.all().unwrap();
        while ends_before_it_fails.advance().unwrap() {}
        assert!((0..20).all(|_| !ends_before_it_fails.advance().unwrap()), "an end is an end");
    }
    faults.fail_next_read();
    assert_eq!(snapshot.get(b"a").unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(snapshot.get(b"a").unwrap().unwrap(), "1");
}

#[test]
fn the_same_seed_is_the_same_plan() {
    const EVERYTHING: FaultRates =
        FaultRates { refused: 100, lost_before: 0, lost_after: 0, reads: 200, cursors: 300, flushes: 150 };
    // Reads between the steps change nothing about the steps.
    let run = |seed: u64, reads: u32| {
        let faults = Faults::seeded(seed, EVERYTHING);
        let store = faulty(&faults);
        for n in 0..200 {
            let _ = store.commit(&at(n));
            let _ = store.flush();
            drop(store.all().unwrap());
            for _ in 0..reads {
                let _ = store.get(b"a");
            }
        }
        faults.injected()
    };
    assert_eq!(run(7, 2), run(7, 2));
    assert_ne!(run(7, 2), run(8, 2));
    let steps = |injected: Vec<Injected>| -> Vec<_> {
        injected.into_iter().filter(|fault| matches!(fault, Injected::Step(..))).collect()
    };
    assert_eq!(steps(run(7, 1)), steps(run(7, 5)));
    // About as many as the rates say.
    let injected = run(7, 1);
    let count = |kind: fn(&Injected) -> bool| injected.iter().filter(|fault| kind(fault)).count();
    assert!((8..=40).contains(&count(|fault| matches!(fault, Injected::Step(..)))), "{injected:?}");
    assert!((20..=65).contains(&count(|fault| matches!(fault, Injected::Read(_)))), "{injected:?}");
    assert!((35..=90).contains(&count(|fault| matches!(fault, Injected::Cursor(..)))), "{injected:?}");
    assert!((12..=55).contains(&count(|fault| matches!(fault, Injected::Flush(_)))), "{injected:?}");
}

#[test]
fn each_kind_of_step_fault_is_drawn() {
    let rates = FaultRates { refused: 200, lost_before: 200, lost_after: 200, ..FaultRates::NONE };
    let faults = Faults::seeded(1, rates);
    for n in 0..300 {
        let backend = FaultyBackend::new(MemoryBackend::new(), faults.clone());
        let mut batch = WriteBatch::new();
        batch.set_offset(changelog(), Offset::new(n).unwrap());
        let _ = backend.apply(&batch);
    }
    for fault in [StepFault::Refused, StepFault::LostBefore, StepFault::LostAfter] {
        let met =
            faults.injected().iter().filter(|met| matches!(met, Injected::Step(_, kind) if *kind == fault)).count();
        assert!((35..=90).contains(&met), "{fault:?} was met {met} times of 300");
    }
}
