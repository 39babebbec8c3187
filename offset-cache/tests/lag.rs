//! Lags from stored offsets and log ends (clause C3).

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::unnecessary_wraps, reason = "tests")]

#[path = "../../store-redb/tests/common/events.rs"]
mod events;
mod support;

use std::{collections::HashMap, slice};

use kstate_api::{
    ChangelogOffsets, Error, ErrorKind, KeyValueStore, Offset, StagedStore, StateStore, TaskId, TopicPartition,
};
use kstate_offset_cache::{AllLogEnds, CachedOffset, Lag, LogEnds, OffsetCache, PartitionLag, TaskLag, TaskLags};
use kstate_store_memory::MemoryBackend;
use proptest::prelude::*;
use support::{offset, open, supplier};

fn at(number: i64) -> Option<CachedOffset> {
    Some(CachedOffset::At(offset(number)))
}

fn ends(start: i64, end: i64) -> Option<LogEnds> {
    Some(LogEnds { start: offset(start), end: offset(end) })
}

fn partition(topic: &str) -> TopicPartition {
    TopicPartition::new(topic, 0)
}

fn lag(cached: Option<CachedOffset>, ends: Option<LogEnds>) -> PartitionLag {
    PartitionLag::new(&partition("cl"), cached, ends)
}

/// The lag of a task with these partitions.
fn task_lag(partitions: &[(&str, Option<CachedOffset>, Option<LogEnds>)]) -> TaskLag {
    let task = TaskId::new(0, 0);
    let names: Vec<_> = partitions.iter().map(|(topic, ..)| partition(topic)).collect();
    let cached: HashMap<_, _> = partitions.iter().map(|(topic, cached, _)| (partition(topic), *cached)).collect();
    let no_ends = || Error::new(ErrorKind::Unavailable, "no broker answers");
    let ends: AllLogEnds =
        partitions.iter().map(|(topic, _, ends)| (partition(topic), ends.ok_or_else(no_ends))).collect();
    TaskLags::new(&[(task, names)], |_, partition| cached[partition], &ends).get(task).unwrap().clone()
}

#[test]
fn a_stored_offset_lags_by_what_comes_after_it() {
    assert_eq!(lag(at(41), ends(0, 50)), PartitionLag::Behind(8));
    assert_eq!(lag(at(49), ends(0, 50)), PartitionLag::Behind(0));
    assert_eq!(lag(at(0), ends(0, 1)), PartitionLag::Behind(0));
}

#[test]
fn nothing_stored_lags_by_the_retained_log() {
    assert_eq!(lag(None, ends(20, 50)), PartitionLag::Behind(30));
    assert_eq!(lag(Some(CachedOffset::Unknown), ends(20, 50)), PartitionLag::Behind(30));
    assert_eq!(lag(None, ends(0, 0)), PartitionLag::Behind(0));
}

#[test]
fn an_empty_changelog_that_starts_above_zero_lags_by_nothing() {
    assert_eq!(lag(None, ends(1_000, 1_000)), PartitionLag::Behind(0));
    assert_eq!(lag(Some(CachedOffset::Unknown), ends(1_000, 1_000)), PartitionLag::Behind(0));
    assert_eq!(lag(at(10), ends(1_000, 1_000)), PartitionLag::Behind(0));
    assert_eq!(lag(at(999), ends(1_000, 1_000)), PartitionLag::Behind(0));
}

#[test]
fn a_log_that_lost_its_front_between_the_two_questions_lags_by_nothing_negative() {
    assert_eq!(lag(None, ends(60, 50)), PartitionLag::Behind(0));
    assert_eq!(lag(at(10), ends(60, 50)), PartitionLag::Behind(0));
}

#[test]
fn what_runs_lags_by_nothing_even_if_no_broker_answers() {
    assert_eq!(lag(Some(CachedOffset::Running), None), PartitionLag::Running);
    assert_eq!(lag(Some(CachedOffset::Running), ends(0, 50)).offsets(), Some(0));
}

/// What was learned last is what is known, be it that nothing can be learned any more.
#[test]
fn a_later_answer_of_the_brokers_takes_the_place_of_an_earlier_one() {
    let mut all = AllLogEnds::new();
    let error = || Err(Error::new(ErrorKind::Unavailable, "no leader"));
    all.insert(partition("a"), Ok(ends(0, 10).unwrap()));
    all.insert(TopicPartition::new("a", 1), error());
    all.insert(partition("b"), error());
    assert_eq!((all.len(), all.errors().count(), all.get(&partition("a"))), (3, 2, ends(0, 10)));
    assert_eq!((all.get(&TopicPartition::new("a", 1)), all.get(&TopicPartition::new("a", 7))), (None, None));

    all.insert(partition("a"), Ok(ends(0, 20).unwrap()));
    all.insert(partition("b"), Ok(ends(3, 4).unwrap()));
    assert_eq!((all.len(), all.errors().count()), (3, 1));
    assert_eq!((all.get(&partition("a")), all.get(&partition("b"))), (ends(0, 20), ends(3, 4)));

    all.insert(partition("a"), error());
    assert_eq!((all.len(), all.errors().count(), all.get(&partition("a"))), (3, 2, None));
    assert!(!all.is_empty() && AllLogEnds::new().is_empty());
}

#[test]
fn an_unknown_end_is_no_lag_of_zero() {
    for cached in [None, Some(CachedOffset::Unknown), at(0), at(i64::MAX)] {
        assert_eq!(lag(cached, None), PartitionLag::Unknown);
        assert_eq!(lag(cached, None).offsets(), None);
    }
    let task = task_lag(&[("a", at(9), ends(0, 50)), ("b", at(9), None), ("c", None, ends(0, 7))]);
    assert_eq!(task.total(), Lag::Unknown);
    assert_eq!(task.known(), 47);
    assert_eq!(task.unknown(), [partition("b")]);
    assert_eq!(task.largest(), Some((&partition("a"), PartitionLag::Behind(40))));
}

#[test]
fn the_largest_partition_is_named_beside_the_sum() {
    let task = task_lag(&[("a", at(9), ends(0, 13)), ("b", None, ends(0, 1_000)), ("c", at(9), ends(0, 10))]);
    assert_eq!(task.total(), Lag::Behind(1_003));
    assert_eq!(task.largest(), Some((&partition("b"), PartitionLag::Behind(1_000))));
    // The first of equals, so that it does not change from look to look.
    let task = task_lag(&[("a", at(9), ends(0, 13)), ("b", at(9), ends(0, 13))]);
    assert_eq!(task.largest(), Some((&partition("a"), PartitionLag::Behind(3))));
}

#[test]
fn a_task_runs_only_if_all_its_partitions_do() {
    let running = Some(CachedOffset::Running);
    assert_eq!(task_lag(&[("a", running, None), ("b", running, ends(0, 5))]).total(), Lag::Running);
    assert_eq!(task_lag(&[("a", running, None), ("b", at(1), ends(0, 5))]).total(), Lag::Behind(3));
}

/// In whatever order they are asked for, and wherever there is nothing.
#[test]
fn a_snapshot_of_the_cache_gives_the_lags_that_its_entries_give() {
    let temporary = tempfile::tempdir().unwrap();
    let (directory, cache) = (open(temporary.path()), OffsetCache::new());
    let partition = |topic: &str, number: u32| TopicPartition::new(topic, i32::try_from(number).unwrap());
    for number in [0, 1, 2, 3, 5, 8] {
        let path = temporary.path().join(number.to_string());
        let store = supplier("counts").open(&path, &[partition("a", number), partition("b", number)]).unwrap();
        let offsets = ChangelogOffsets::new().with(partition("a", number), offset(i64::from(number)));
        store.commit(&offsets).unwrap();
        cache.opened(&directory.lock(TaskId::new(0, number)).unwrap(), &*store).unwrap();
    }
    let numbers = [0, 2, 3, 4, 5, 6, 9];
    let known = |topic: &'static str| numbers.map(|number| (partition(topic, number), Ok(ends(1, 20).unwrap())));
    let ends = known("a").into_iter().chain(known("b")).chain(known("c")).collect();
    let snapshot = cache.snapshot();
    for order in [(0..10).collect::<Vec<_>>(), (0..10).rev().collect(), vec![5, 5, 2, 8, 1, 9, 0], Vec::new()] {
        let tasks = order.iter().map(|number| {
            // Not always in the same order either.
            let topics = if number % 3 == 0 { ["b", "a", "c", "d"] } else { ["a", "b", "d", "c"] };
            (TaskId::new(0, *number), topics.map(|topic| partition(topic, *number)))
        });
        let tasks: Vec<_> = tasks.collect();
        let lags = TaskLags::of_snapshot(&tasks, &snapshot, &ends);
        assert_eq!(lags, TaskLags::new(&tasks, |task, partition| snapshot.get(task, partition), &ends));
        for (task, partitions) in &tasks {
            let expected = partitions.iter().map(|partition| {
                (partition, PartitionLag::new(partition, snapshot.get(*task, partition), ends.get(partition)))
            });
            assert_eq!(lags.get(*task), Some(&TaskLag::new(expected)), "{task}");
        }
        assert!(lags.iter().map(|(task, _)| task).is_sorted());
        assert_eq!(lags.get(TaskId::new(1, 0)), None);
    }
}

/// The store refuses the other task's partition, and a lag counts a task's own partitions, whatever the cache knows.
#[test]
fn ho_05_offsets_of_another_task_never_enter_a_lag() {
    let (own, foreign) = (partition("cl-0"), partition("cl-1"));
    let store = StagedStore::open("counts", MemoryBackend::new(), slice::from_ref(&own)).unwrap();
    store.put(b"k", b"v").unwrap();
    let both = ChangelogOffsets::new().with(own.clone(), offset(10)).with(foreign.clone(), offset(77));
    assert_eq!(store.commit(&both).unwrap_err().kind(), ErrorKind::InvalidArgument);
    store.commit(&ChangelogOffsets::new().with(own.clone(), offset(10))).unwrap();
    assert_eq!(store.committed_offset(&own).unwrap(), Some(offset(10)));

    let cached = HashMap::from([(own.clone(), offset(10)), (foreign.clone(), offset(77))]);
    let ends = AllLogEnds::from_iter([(own.clone(), Ok(ends(0, 11).unwrap())), (foreign, Ok(ends(0, 500).unwrap()))]);
    let task = TaskId::new(0, 0);
    let lags = TaskLags::new(&[(task, [own])], |_, asked| cached.get(asked).copied().map(CachedOffset::At), &ends);
    assert_eq!(lags.get(task).unwrap().total(), Lag::Behind(0));
}

#[test]
fn ho_06_an_unknown_partition_counts_its_whole_log_and_is_no_running_one() {
    let unknown = Some(CachedOffset::Unknown);
    assert_eq!(task_lag(&[("cl-a", unknown, ends(0, 30))]).total(), Lag::Behind(30));
    assert_eq!(task_lag(&[("cl-a", unknown, ends(0, 30)), ("cl-b", at(39), ends(0, 45))]).total(), Lag::Behind(35));
}

#[test]
fn ho_07_a_sum_saturates() {
    let whole = Some(LogEnds { start: Offset::ZERO, end: Offset::MAX });
    let task = task_lag(&[("a", None, whole), ("b", None, whole), ("c", None, whole)]);
    assert_eq!(task.total(), Lag::Behind(u64::MAX));
    assert_eq!(lag(at(i64::MAX), whole), PartitionLag::Behind(0));
    assert_eq!(lag(at(i64::MAX - 1), whole), PartitionLag::Behind(0));
    assert_eq!(lag(at(i64::MAX - 5), whole), PartitionLag::Behind(4));
    assert_eq!(Offset::new(-7), None);
}

#[test]
fn ho_08_more_stored_than_the_log_holds_counts_as_the_whole_log() {
    assert_eq!(lag(at(500), ends(0, 300)), PartitionLag::Diverged(300));
    assert_eq!(lag(at(300), ends(100, 300)), PartitionLag::Diverged(200));
    // The last record of the log: everything is there.
    assert_eq!(lag(at(299), ends(0, 300)), PartitionLag::Behind(0));
    // A topic made anew.
    assert_eq!(lag(at(0), ends(0, 0)), PartitionLag::Diverged(0));
    let task = task_lag(&[("a", at(500), ends(0, 300)), ("b", at(9), ends(0, 10))]);
    assert_eq!(task.total(), Lag::Behind(300));
    assert_eq!(task.diverged(), [partition("a")]);
    assert_eq!(task.largest(), Some((&partition("a"), PartitionLag::Diverged(300))));
    let warnings = events::warnings_during(|| _ = lag(at(500), ends(0, 300)));
    assert!(warnings.len() == 1 && warnings[0].contains("more than its changelog"), "{warnings:?}");
    assert!(events::warnings_during(|| _ = lag(at(299), ends(0, 300))).is_empty());
}

#[test]
fn ho_09_an_unset_offset_never_enters_arithmetic() {
    let unset = Offset::new(-1001).map(CachedOffset::At);
    assert_eq!(unset, None);
    assert_eq!(lag(unset, ends(29, 29)), PartitionLag::Behind(0));
    assert_eq!(lag(unset, ends(20, 29)), PartitionLag::Behind(9));
}

/// A restore from 101 would be out of range: what is left of the log is to be read.
#[test]
fn ho_11_a_copy_that_ends_before_the_log_begins_lags_by_the_whole_log() {
    assert_eq!(lag(at(100), ends(5_000, 9_001)), PartitionLag::Behind(4_001));
    assert_eq!(lag(at(9_000), ends(5_000, 9_001)), PartitionLag::Behind(0));
}

#[test]
fn ho_12_a_store_that_never_learned_its_offset_lags_by_the_whole_log() {
    let store = StagedStore::open("standby", MemoryBackend::new(), &[partition("cl-0")]).unwrap();
    store.commit(&ChangelogOffsets::new()).unwrap();
    let cached = CachedOffset::from(store.committed_offset(&partition("cl-0")).unwrap());
    assert_eq!(lag(Some(cached), ends(0, 80)), PartitionLag::Behind(80));
}

#[test]
fn ho_13_a_store_in_memory_counts_its_full_lag_beside_one_on_disk() {
    let task = task_lag(&[("cl-m", None, ends(0, 71)), ("cl-p", at(50), ends(0, 61))]);
    assert_eq!(task.total(), Lag::Behind(71 + 10));
    assert_eq!(task.largest(), Some((&partition("cl-m"), PartitionLag::Behind(71))));
}

fn any_cached() -> impl Strategy<Value = Option<CachedOffset>> {
    prop_oneof![
        Just(None),
        Just(Some(CachedOffset::Unknown)),
        Just(Some(CachedOffset::Running)),
        any_offset().prop_map(|offset| Some(CachedOffset::At(offset))),
    ]
}

fn any_offset() -> impl Strategy<Value = Offset> {
    prop_oneof![0..50_i64, i64::MAX - 50..=i64::MAX].prop_map(offset)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Against arithmetic in numbers wide enough for all of it.
    #[test]
    fn a_lag_is_what_a_restore_has_to_pass(cached in any_cached(), start in any_offset(), end in any_offset()) {
        let wide = |offset: Offset| i128::from(offset.get());
        let whole = (wide(end) - wide(start)).max(0);
        let expected = match cached {
            Some(CachedOffset::Running) => 0,
            Some(CachedOffset::At(offset)) if wide(offset) < wide(end) =>
                (wide(end) - (wide(offset) + 1).max(wide(start))).max(0),
            // Nothing can be beyond the largest offset there is.
            Some(CachedOffset::At(_)) if end == Offset::MAX => 0,
            _ => whole,
        };
        let found = lag(cached, Some(LogEnds { start, end }));
        prop_assert_eq!(found.offsets().map(i128::from), Some(expected));
    }
}
