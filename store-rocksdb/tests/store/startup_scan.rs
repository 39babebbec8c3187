//! The start-up scan over stores of this engine (clause C1): what it says is what the engine itself would say.

use std::{fs, path::Path, sync::Arc};

use kstate_api::{
    ChangelogOffsets, Durability, ErrorKind, KeyValueStore, KeyValueStoreSupplier, ReadOnlyKeyValueStoreExt as _,
    StagedSupplier, TaskId, TopicPartition,
};
use kstate_offset_cache::{
    AllLogEnds, CachedOffset, Lag, LeftOut, LogEnds, OffsetCache, ScanReport, StartupScan, StateDirectory, TaskLags,
    TopologyStores,
};
use kstate_store_memory::MemoryBackends;
use kstate_store_rocksdb::RocksDbBackends;
use rocksdb::{DB, Options};

use crate::common::{LEVELS, crashed, offset, options};

const APPLICATION: &str = "app";
const TASK: TaskId = TaskId::new(0, 0);

fn supplier(durability: Durability) -> Arc<dyn KeyValueStoreSupplier> {
    Arc::new(StagedSupplier::new("counts", RocksDbBackends::new(options(durability))).unwrap())
}

fn topology(durability: Durability) -> TopologyStores {
    TopologyStores::new(APPLICATION).unwrap().with_logged(0, supplier(durability)).unwrap()
}

fn changelog(task: TaskId) -> TopicPartition {
    TopicPartition::new("app-counts-changelog", i32::try_from(task.partition()).unwrap())
}

fn open(state: &Path) -> StateDirectory {
    StateDirectory::open(state, APPLICATION).unwrap()
}

/// The store of `task`, whose directory is made.
fn store_of(directory: &StateDirectory, task: TaskId, durability: Durability) -> Arc<dyn KeyValueStore> {
    let path = directory.lock(task).unwrap().store_directory("counts").unwrap();
    supplier(durability).open(&path, &[changelog(task)]).unwrap()
}

fn commit(store: &dyn KeyValueStore, value: i64) {
    let partition = store.changelog_partitions()[0].clone();
    store.put(b"word", &value.to_be_bytes()).unwrap();
    store.commit(&ChangelogOffsets::new().with(partition, offset(value))).unwrap();
}

fn scan(directory: &StateDirectory, durability: Durability) -> (ScanReport, OffsetCache) {
    let cache = OffsetCache::new();
    let report = StartupScan::new(&topology(durability)).run(directory, &cache).unwrap();
    assert!(directory.locked().is_empty());
    (report, cache)
}

fn known(cache: &OffsetCache) -> Option<CachedOffset> {
    cache.get(TASK, &changelog(TASK))
}

fn at(value: i64) -> CachedOffset {
    CachedOffset::At(offset(value))
}

/// The lag of the task if each of `changelogs` has the offsets from 0 to `end`.
fn lag(cache: &OffsetCache, changelogs: &[TopicPartition], end: i64) -> Lag {
    let ends = LogEnds { start: offset(0), end: offset(end) };
    let ends: AllLogEnds = changelogs.iter().map(|changelog| (changelog.clone(), Ok(ends))).collect();
    let lags = TaskLags::new(&[(TASK, changelogs)], |task, partition| cache.get(task, partition), &ends);
    lags.get(TASK).unwrap().total()
}

#[test]
fn ho_10_the_scan_keeps_no_lock_and_what_is_committed_later_is_found() {
    for durability in LEVELS {
        let temporary = tempfile::tempdir().unwrap();
        let store = store_of(&open(temporary.path()), TASK, durability);
        commit(&*store, 100);
        store.close().unwrap();

        {
            let directory = open(temporary.path());
            let (_, cache) = scan(&directory, durability);
            assert_eq!(known(&cache), Some(at(100)), "{durability:?}");
            let lock = directory.lock(TASK).unwrap();
            let path = lock.store_directory("counts").unwrap();
            let store = supplier(durability).open(&path, &[changelog(TASK)]).unwrap();
            cache.opened(&lock, &*store).unwrap();
            cache.restored(&lock, &*store);
            commit(&*store, 250);
            cache.committed(&lock, &*store).unwrap();
            cache.close(&lock, &*store).unwrap();
            assert_eq!(known(&cache), Some(at(250)), "{durability:?}");
        }
        assert_eq!(known(&scan(&open(temporary.path()), durability).1), Some(at(250)), "{durability:?}");
    }
}

/// What a killed owner leaves is in the log, or was never written: the scan says what an open finds.
#[test]
fn ho_11_a_killed_owner_leaves_what_the_engine_finds() {
    let test = "startup_scan::ho_11_a_killed_owner_leaves_what_the_engine_finds";
    let durability = Durability::Process;
    let temporary = crashed(test, durability, |state, durability| {
        let store = store_of(&open(state), TASK, durability);
        commit(&*store, 100);
        commit(&*store, 9_000);
        // Never dropped, as in a crash.
        std::mem::forget(store);
    });
    let directory = open(temporary.path());
    let (report, cache) = scan(&directory, durability);
    assert_eq!(report.left_out().count(), 0);
    assert_eq!(known(&cache), Some(at(9_000)));
    let store = store_of(&directory, TASK, durability);
    assert_eq!(store.committed_offset(&changelog(TASK)).unwrap(), Some(offset(9_000)));
    assert_eq!(store.get(b"word").unwrap().as_deref(), Some(9_000_i64.to_be_bytes().as_slice()));
}

#[test]
fn ho_11_at_eventual_an_offset_that_was_not_flushed_is_not_claimed() {
    let test = "startup_scan::ho_11_at_eventual_an_offset_that_was_not_flushed_is_not_claimed";
    let durability = Durability::Eventual;
    let temporary = crashed(test, durability, |state, durability| {
        let store = store_of(&open(state), TASK, durability);
        commit(&*store, 100);
        store.close().unwrap();
        let store = store_of(&open(state), TASK, durability);
        commit(&*store, 9_000);
        std::mem::forget(store);
    });
    let directory = open(temporary.path());
    assert_eq!(known(&scan(&directory, durability).1), Some(at(100)));
    let store = store_of(&directory, TASK, durability);
    assert_eq!(store.committed_offset(&changelog(TASK)).unwrap(), Some(offset(100)));
    assert_eq!(store.get(b"word").unwrap().as_deref(), Some(100_i64.to_be_bytes().as_slice()));
}

#[test]
fn ho_12_and_ho_33_what_was_opened_and_closed_is_whole_and_unknown() {
    let temporary = tempfile::tempdir().unwrap();
    let durability = Durability::Eventual;
    let directory = open(temporary.path());
    // Only made.
    directory.lock(TASK).unwrap().store_directory("counts").unwrap();
    let (report, cache) = scan(&directory, durability);
    assert!(report.tasks().is_empty() && known(&cache).is_none());
    // Opened, and closed before anything was committed.
    store_of(&directory, TASK, durability).close().unwrap();
    let (report, cache) = scan(&directory, durability);
    assert_eq!(report.left_out().count(), 0);
    assert_eq!(known(&cache), Some(CachedOffset::Unknown));
    assert_eq!(lag(&cache, &[changelog(TASK)], 80), Lag::Behind(80));
    // A standby at 80 becomes active and is closed before anything else happens.
    let store = store_of(&directory, TASK, durability);
    commit(&*store, 80);
    store.close().unwrap();
    store_of(&directory, TASK, durability).close().unwrap();
    assert_eq!(known(&scan(&directory, durability).1), Some(at(80)));
}

#[test]
fn ho_13_a_store_in_memory_is_not_missed_on_the_disk() {
    let temporary = tempfile::tempdir().unwrap();
    let memory = Arc::new(StagedSupplier::new("memory", MemoryBackends::new()).unwrap());
    let stores = topology(Durability::Eventual).with_logged(0, memory).unwrap();
    let directory = open(temporary.path());
    let store = store_of(&directory, TASK, Durability::Eventual);
    commit(&*store, 50);
    store.close().unwrap();
    let cache = OffsetCache::new();
    let report = StartupScan::new(&stores).run(&directory, &cache).unwrap();
    assert_eq!((report.left_out().count(), known(&cache)), (0, Some(at(50))));
    // 100 - 51 of one, the whole of the other.
    assert_eq!(lag(&cache, &stores.changelogs(TASK), 100), Lag::Behind(149));
}

#[test]
fn one_bad_store_of_each_kind_is_told_and_the_others_are_known() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = open(temporary.path());
    let tasks: Vec<_> = (0..12).map(|partition| TaskId::new(0, partition)).collect();
    for task in &tasks {
        let store = store_of(&directory, *task, Durability::Eventual);
        commit(&*store, 7);
        store.close().unwrap();
    }
    let path = |task: usize| directory.layout().store_directory(tasks[task], "counts").unwrap();
    fs::write(path(2).join("CURRENT"), "nonsense").unwrap();
    fs::remove_file(path(4).join("CURRENT")).unwrap();
    DB::open_cf(&Options::default(), path(6), ["default", "offsets"])
        .unwrap()
        .create_cf("later", &Options::default())
        .unwrap();
    // Open elsewhere: this engine lets others read.
    let open_elsewhere = store_of(&directory, tasks[8], Durability::Process);
    commit(&*open_elsewhere, 8);

    let (report, cache) = scan(&directory, Durability::Eventual);
    let kind = |task: usize| report.task(tasks[task]).unwrap().error().map(kstate_api::Error::kind);
    assert_eq!([2, 4, 6].map(kind), [ErrorKind::Corrupted, ErrorKind::Corrupted, ErrorKind::NewerFormat].map(Some));
    assert!(report.left_out().all(|task| task.left_out() == Some(LeftOut::Unreadable)));
    for (number, task) in tasks.iter().enumerate() {
        let expected = match number {
            2 | 4 | 6 => None,
            8 => Some(at(8)),
            _ => Some(at(7)),
        };
        assert_eq!(cache.get(*task, &changelog(*task)), expected, "{task}");
    }
}
