//! A task with two stores of which one is not committed (clause P6): what the other has, what a restart finds, and
//! that no event counts twice or not at all.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod support;

use std::{collections::BTreeMap, ops::Range, path::Path, sync::Arc};

use kstate_api::{
    ChangelogOffsets, CommitOutcome, Error, ErrorKind, KeyValueStore, Offset, Position, ReadOnlyKeyValueStoreExt,
    Result, StagedStore, StateStore, TaskId, TopicPartition,
};
use kstate_checkpoint::{
    ChangelogRecord, ChangelogWriter, LoggedStore, RestoreOptions, Restored, SourceCommitter, Task, checkpoint, restore,
};
use kstate_conformance_tests::{Faults, FaultyBackend, StepFault};
use kstate_store_memory::MemoryBackend;
use kstate_store_redb::{RedbBackend, RedbOptions};
use support::broker::{Broker, offset, position, rows, source};

/// Counts by key, and the count of all: three records of the one and one of the other for each checkpoint.
const STORES: [&str; 2] = ["counts", "total"];
/// How many keys there are.
const KEYS: i64 = 3;

fn changelog_of(store: usize) -> TopicPartition {
    TopicPartition::new(format!("{}-changelog", STORES[store]), 0)
}

/// A changelog for each store. The group's position is the first one's.
#[derive(Clone)]
struct Logs([Broker; 2]);

impl Logs {
    fn new() -> Self {
        Self([Broker::new(Vec::new()), Broker::new(Vec::new())])
    }

    fn committed(&self) -> Position {
        self.0[0].0.borrow().committed.clone()
    }

    fn lens(&self) -> [usize; 2] {
        self.0.each_ref().map(|log| log.0.borrow().log.len())
    }

    fn restore(&self, store: usize, logged: &LoggedStore) -> Restored {
        let mut log = self.0[store].clone();
        restore(logged, &self.committed(), &mut log, &RestoreOptions::new(), &mut |_| {}).unwrap()
    }

    /// What stores hold that are built from the logs alone.
    fn rebuilt(&self) -> [BTreeMap<String, String>; 2] {
        [0, 1].map(|store| {
            let own = [changelog_of(store)];
            let rebuilt: Arc<dyn KeyValueStore> =
                Arc::new(StagedStore::open(STORES[store], MemoryBackend::new(), &own).unwrap());
            self.restore(store, &LoggedStore::new(Arc::clone(&rebuilt) as _, changelog_of(store)).unwrap());
            rows(&rebuilt).into_iter().collect()
        })
    }
}

impl ChangelogWriter for Logs {
    fn check(&self, record: ChangelogRecord<'_>) -> Result<()> {
        self.0[0].check(record)
    }

    fn append(&mut self, partition: &TopicPartition, record: ChangelogRecord<'_>) -> Result<()> {
        let store = [0, 1].into_iter().find(|store| changelog_of(*store) == *partition).unwrap();
        self.0[store].append(partition, record)
    }

    fn flush(&mut self) -> Result<ChangelogOffsets> {
        let mut acknowledged = ChangelogOffsets::new();
        for (store, log) in self.0.iter_mut().enumerate() {
            let last = log.flush()?.iter().next().map(|(_, last)| last);
            acknowledged.extend(last.map(|last| (changelog_of(store), last)));
        }
        Ok(acknowledged)
    }
}

impl SourceCommitter for Logs {
    fn commit(&mut self, position: &Position) -> Result<()> {
        self.0[0].commit(position)
    }
}

/// The task while its process lives. A process that dies is one that is dropped: nothing staged outlives it.
struct Life {
    logs: Logs,
    stores: [Arc<dyn KeyValueStore>; 2],
    task: Task,
    faults: [Faults; 2],
}

fn open(directory: &Path, store: usize, faults: &Faults) -> Arc<dyn KeyValueStore> {
    let redb = RedbBackend::open(&directory.join(STORES[store]), &RedbOptions::new()).unwrap();
    let backend = FaultyBackend::new(redb, faults.clone());
    Arc::new(StagedStore::open(STORES[store], backend, &[changelog_of(store)]).unwrap())
}

impl Life {
    /// Opens both stores and restores them.
    fn begin(directory: &Path, logs: &Logs) -> (Self, [Restored; 2]) {
        let faults = [Faults::new(), Faults::new()];
        let stores = [0, 1].map(|store| open(directory, store, &faults[store]));
        let logged =
            [0, 1].map(|store| LoggedStore::new(Arc::clone(&stores[store]) as _, changelog_of(store)).unwrap());
        let restored = [0, 1].map(|store| logs.restore(store, &logged[store]));
        let task = Task::new(TaskId::new(0, 0), vec![source()], logged.into());
        (Self { logs: logs.clone(), stores, task, faults }, restored)
    }

    fn process(&self, events: Range<i64>) {
        for event in events {
            for (store, key) in self.stores.iter().zip([format!("key-{}", event % KEYS), "all".into()]) {
                let count = store.get(key.as_bytes()).unwrap();
                let count = count.map_or(0, |count| std::str::from_utf8(&count).unwrap().parse::<u64>().unwrap());
                store.put(key.as_bytes(), (count + 1).to_string().as_bytes()).unwrap();
            }
        }
    }

    fn checkpoint(&self, next: i64) -> Result<()> {
        let (mut writer, mut source) = (self.logs.clone(), self.logs.clone());
        checkpoint(std::slice::from_ref(&self.task), &position(next), &mut writer, &mut source).map(drop)
    }

    /// One good checkpoint of ten events, and one of ten more in which `fault` befalls `store`.
    fn fail(&self, store: usize, fault: StepFault) -> Error {
        self.process(0..10);
        self.checkpoint(10).unwrap();
        self.process(10..20);
        self.faults[store].fail_next_step(fault);
        self.checkpoint(20).unwrap_err()
    }

    /// Goes on to the end, which is where a task would be that nothing ever befell.
    fn finish(&self) {
        let next = self.logs.committed().next(&source()).unwrap().get();
        assert_eq!(next, 20, "the group was first: nothing before it comes again");
        self.process(next..30);
        self.checkpoint(30).unwrap();
        assert_eq!(
            self.stores.each_ref().map(|store| rows(store).into_iter().collect::<BTreeMap<_, _>>()),
            reference()
        );
        assert_eq!(self.logs.rebuilt(), reference());
        assert_eq!(self.offsets(), self.logs.lens().map(|len| offset(i64::try_from(len).unwrap()).previous()));
    }

    fn offsets(&self) -> [Option<Offset>; 2] {
        [0, 1].map(|store| self.stores[store].committed_offset(&changelog_of(store)).unwrap())
    }
}

fn reference() -> [BTreeMap<String, String>; 2] {
    [
        (0..KEYS).map(|key| (format!("key-{key}"), (30 / KEYS).to_string())).collect(),
        BTreeMap::from([("all".into(), "30".into())]),
    ]
}

/// What the last record is of each store's changelog after the first checkpoint and after the second.
const LAST: [[i64; 2]; 2] = [[2, 5], [0, 1]];

#[test]
fn p6_a_crash_between_the_commits_of_two_stores_restores_what_the_one_lacks_and_no_more() {
    for dies in [0, 1] {
        for fault in [StepFault::Refused, StepFault::LostBefore, StepFault::LostAfter] {
            let directory = tempfile::tempdir().unwrap();
            let logs = Logs::new();
            let (life, _) = Life::begin(directory.path(), &logs);
            life.fail(dies, fault);
            drop(life);

            let (life, restored) = Life::begin(directory.path(), &logs);
            for store in [0, 1] {
                let behind = store == dies && fault != StepFault::LostAfter;
                let [first, second] = LAST[store];
                let expected = if behind { (first, second - first) } else { (second, 0) };
                let found = (restored[store].from.unwrap().get(), restored[store].applied.cast_signed());
                assert_eq!(found, expected, "{} after {fault:?} of {}", STORES[store], STORES[dies]);
                assert_eq!((restored[store].wiped, restored[store].uncommitted), (None, 0));
            }
            assert_eq!(life.offsets(), LAST.map(|[_, second]| Some(offset(second))));
            assert_eq!(life.stores.each_ref().map(|store| store.position().unwrap()), [position(20), position(20)]);
            life.finish();
        }
    }
}

/// Nothing of it is staged any more in the one that has it, and all of it in the other.
#[test]
fn p6_a_store_that_refused_its_commit_is_committed_with_the_next_checkpoint() {
    for refuses in [0, 1] {
        let directory = tempfile::tempdir().unwrap();
        let (life, _) = Life::begin(directory.path(), &Logs::new());
        let error = life.fail(refuses, StepFault::Refused);
        assert_eq!((error.commit_outcome(), error.store()), (Some(CommitOutcome::NotApplied), Some(STORES[refuses])));
        for store in [0, 1] {
            let kept = usize::from(store != refuses);
            let found = life.offsets()[store].unwrap().get();
            assert_eq!(found, LAST[store][kept], "{} of {:?}", STORES[store], STORES[refuses]);
            assert_eq!(life.stores[store].uncommitted_bytes() > 0, store == refuses);
            assert_eq!(life.task.stores()[store].unsettled_keys() > 0, store == refuses);
        }
        life.finish();
    }
}

#[test]
fn p6_the_first_error_is_returned_if_every_store_refuses() {
    let directory = tempfile::tempdir().unwrap();
    let (life, _) = Life::begin(directory.path(), &Logs::new());
    life.faults[1].plan_steps([None, Some(StepFault::Refused)]);
    let error = life.fail(0, StepFault::Refused);
    assert_eq!(error.store(), Some(STORES[0]));
    assert_eq!(life.offsets(), LAST.map(|[first, _]| Some(offset(first))));
    life.finish();
}

/// It may have it or not: only a store that is opened again tells. Until then no checkpoint goes past it.
#[test]
fn p6_a_store_that_cannot_tell_is_opened_again_and_restored_beside_the_other() {
    for fails in [0, 1] {
        for fault in [StepFault::LostBefore, StepFault::LostAfter, StepFault::Unsaid] {
            let directory = tempfile::tempdir().unwrap();
            let (mut life, _) = Life::begin(directory.path(), &Logs::new());
            let error = life.fail(fails, fault);
            assert_eq!((error.commit_outcome(), error.store()), (Some(CommitOutcome::Unknown), Some(STORES[fails])));
            let other = 1 - fails;
            let of_other = || life.stores[other].committed_offset(&changelog_of(other)).unwrap();
            assert_eq!(of_other(), Some(offset(LAST[other][1])));

            let written = life.logs.lens();
            assert_eq!(life.checkpoint(25).unwrap_err().kind(), ErrorKind::Poisoned, "{fault:?}");
            assert_eq!((life.logs.lens(), life.logs.committed()), (written, position(20)), "nothing was sent");
            assert_eq!(of_other(), Some(offset(LAST[other][1])));

            // The other one stays as it is, as far as it is, whatever it remembers.
            let logged = life.task.stores()[other].clone();
            life.stores[fails].close().unwrap();
            life.stores[fails] = open(directory.path(), fails, &life.faults[fails]);
            let reopened = LoggedStore::new(Arc::clone(&life.stores[fails]) as _, changelog_of(fails)).unwrap();
            let restored = life.logs.restore(fails, &reopened);
            let has_it = fault == StepFault::LostAfter;
            let [first, second] = LAST[fails];
            assert_eq!(restored.applied.cast_signed(), if has_it { 0 } else { second - first }, "{fault:?}");
            assert_eq!(restored.wiped, None);
            let stores = if fails == 0 { vec![reopened, logged] } else { vec![logged, reopened] };
            life.task = Task::new(TaskId::new(0, 0), vec![source()], stores);
            life.finish();
        }
    }
}
