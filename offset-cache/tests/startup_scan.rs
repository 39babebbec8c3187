//! What a start finds on the disk, and what the cache knows from then on: clauses C1 and C2.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod support;

use std::{
    collections::BTreeSet,
    fs, iter,
    num::NonZero,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use kstate_api::{
    ChangelogOffsets, ErrorKind, KeyValueStore, KeyValueStoreSupplier, Result, StagedStore, StagedSupplier, StateStore,
    TaskId, TopicPartition,
};
use kstate_offset_cache::{
    AllLogEnds, CachedOffset, Cancellation, Lag, LeftOut, LogEnds, OffsetCache, ScanReport, StartupScan,
    StateDirectory, StateLayout, TaskLags, TopologyStores,
};
use kstate_store_memory::{MemoryBackend, MemoryBackends};
use kstate_store_redb::redb;
use support::{
    APPLICATION, OtherProcess, changelog, commit, directory_of_child, make_store, offset, open, ready, store_in,
    supplier, topology,
};

const TASK: TaskId = TaskId::new(0, 0);

fn scan(directory: &StateDirectory) -> (ScanReport, OffsetCache) {
    let cache = OffsetCache::new();
    let report = StartupScan::new(&topology()).run(directory, &cache).unwrap();
    (report, cache)
}

fn known(cache: &OffsetCache, task: TaskId) -> Option<CachedOffset> {
    cache.get(task, &changelog(task))
}

#[allow(clippy::unnecessary_wraps, reason = "it is compared with what the cache answers")]
fn at(value: i64) -> Option<CachedOffset> {
    Some(CachedOffset::At(offset(value)))
}

/// The lag of `task` if each of its changelogs has the offsets from 0 to `end`.
fn lag(stores: &TopologyStores, cache: &OffsetCache, task: TaskId, end: i64) -> Lag {
    let changelogs = stores.changelogs(task);
    let ends = LogEnds { start: offset(0), end: offset(end) };
    let ends: AllLogEnds = changelogs.iter().map(|changelog| (changelog.clone(), Ok(ends))).collect();
    let snapshot = cache.snapshot();
    let lags = TaskLags::new(&[(task, changelogs)], |task, partition| snapshot.get(task, partition), &ends);
    lags.get(task).unwrap().total()
}

/// As a version that does not exist yet would have it.
fn make_newer(store: &Path) {
    const META: redb::TableDefinition<'_, &[u8], &[u8]> = redb::TableDefinition::new("meta");
    let database = redb::Database::open(store.join("store.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    let mut header = kstate_api::codec::encode_header("redb");
    header[0] += 1;
    let checked = header.len() - 4;
    let checksum = crc32fast::hash(&header[..checked]);
    header[checked..].copy_from_slice(&checksum.to_be_bytes());
    transaction.open_table(META).unwrap().insert(b"header".as_slice(), header.as_slice()).unwrap();
    transaction.commit().unwrap();
}

#[test]
fn one_bad_task_of_each_kind_never_stops_the_start() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = open(temporary.path());
    let tasks = (0..104).map(|partition| TaskId::new(0, partition));
    let paths: Vec<_> =
        tasks.clone().map(|task| make_store(&directory, task, 7 + i64::from(task.partition()))).collect();
    let (corrupt, newer, locked, owned) =
        (TaskId::new(0, 17), TaskId::new(0, 40), TaskId::new(0, 63), TaskId::new(0, 99));
    let damage = vec![0xA5; 100_000];
    fs::write(paths[17].join("store.redb"), &damage).unwrap();
    make_newer(&paths[40]);
    let newer_file = fs::read(paths[40].join("store.redb")).unwrap();
    // Somebody who does not care for our locks.
    let intruder = store_in(&paths[63], locked);
    let busy = directory.lock(owned).unwrap();
    let foreign = directory.layout().application_directory().join("notes.txt");
    fs::write(&foreign, "mine").unwrap();
    let gone = TaskId::new(7, 0);
    make_store(&directory, gone, 3);

    let (report, cache) = scan(&directory);
    let reason = |task| report.task(task).unwrap().left_out();
    let error = |task| report.task(task).unwrap().error().map(kstate_api::Error::kind);
    assert_eq!((reason(corrupt), error(corrupt)), (Some(LeftOut::Unreadable), Some(ErrorKind::Corrupted)));
    assert_eq!((reason(newer), error(newer)), (Some(LeftOut::Unreadable), Some(ErrorKind::NewerFormat)));
    assert_eq!((reason(locked), error(locked)), (Some(LeftOut::Unreadable), Some(ErrorKind::Locked)));
    assert_eq!((reason(owned), error(owned)), (Some(LeftOut::Owned), None));
    assert_eq!((reason(gone), error(gone)), (Some(LeftOut::NotInTopology), None));
    assert_eq!(report.task(gone).unwrap().leftovers(), ["counts"]);
    assert_eq!(report.task(corrupt).unwrap().error().unwrap().store(), Some("counts"));
    assert_eq!(report.unfamiliar(), iter::once(foreign.clone()).collect::<Vec<_>>());
    assert!(report.is_complete());

    let bad = [corrupt, newer, locked, owned];
    for task in tasks {
        let expected = if bad.contains(&task) { None } else { at(7 + i64::from(task.partition())) };
        assert_eq!(known(&cache, task), expected, "{task}");
    }
    assert_eq!((report.tasks().len(), report.left_out().count(), cache.snapshot().iter().count()), (105, 5, 100));

    // No lock is kept, and nothing is lost.
    assert_eq!(directory.locked(), [owned]);
    assert_eq!(fs::read(paths[17].join("store.redb")).unwrap(), damage);
    assert_eq!(fs::read(paths[40].join("store.redb")).unwrap(), newer_file);
    assert_eq!(fs::read_to_string(foreign).unwrap(), "mine");
    drop((intruder, busy));
    assert_eq!(known(&scan(&directory).1, locked), at(70));
}

/// A task is resumed as a whole or not at all, and what is good in it is told.
#[test]
fn a_task_with_one_damaged_store_is_left_out_with_all_its_stores() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = open(temporary.path());
    let stores = topology().with_logged(0, supplier("totals")).unwrap();
    let changelogs = stores.changelogs(TASK);
    make_store(&directory, TASK, 7);
    let totals = directory.lock(TASK).unwrap().store_directory("totals").unwrap();
    fs::write(totals.join("store.redb"), vec![0xA5; 100_000]).unwrap();

    let cache = OffsetCache::new();
    let report = StartupScan::new(&stores).run(&directory, &cache).unwrap();
    let scan = report.task(TASK).unwrap();
    assert_eq!((scan.left_out(), scan.error().unwrap().store()), (Some(LeftOut::Unreadable), Some("totals")));
    assert_eq!(*scan.stores()[0].committed.as_ref().unwrap(), Some(offset(7)));
    assert_eq!(changelogs.iter().map(|changelog| cache.get(TASK, changelog)).collect::<Vec<_>>(), [None, None]);
    assert!(directory.locked().is_empty());
}

/// Delegates, but counts, and panics for one task.
#[derive(Debug)]
struct Watched {
    inner: Arc<dyn KeyValueStoreSupplier>,
    reads: Arc<AtomicUsize>,
    opens: Arc<AtomicUsize>,
    panics_in: Option<&'static str>,
}

impl Watched {
    fn new(name: &str) -> Self {
        let (reads, opens) = Default::default();
        Self { inner: supplier(name), reads, opens, panics_in: None }
    }
}

impl KeyValueStoreSupplier for Watched {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn persistent(&self) -> bool {
        self.inner.persistent()
    }

    fn open(&self, directory: &Path, partitions: &[TopicPartition]) -> Result<Arc<dyn KeyValueStore>> {
        self.opens.fetch_add(1, Ordering::Relaxed);
        self.inner.open(directory, partitions)
    }

    fn read_offsets(&self, directory: &Path, partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        assert!(self.panics_in.is_none_or(|task| !directory.to_str().unwrap().contains(task)), "the engine panics");
        self.inner.read_offsets(directory, partitions)
    }
}

#[test]
fn an_engine_that_panics_is_one_bad_task() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = open(temporary.path());
    for partition in 0..4 {
        make_store(&directory, TaskId::new(0, partition), 5);
    }
    let watched = Watched { panics_in: Some("0_2"), ..Watched::new("counts") };
    let stores = TopologyStores::new(APPLICATION).unwrap().with_logged(0, Arc::new(watched)).unwrap();
    let cache = OffsetCache::new();
    let report = StartupScan::new(&stores).run(&directory, &cache).unwrap();
    let error = report.task(TaskId::new(0, 2)).unwrap().error().unwrap();
    assert!(error.kind() == ErrorKind::Corrupted && error.to_string().contains("the engine panics"), "{error}");
    assert_eq!((report.left_out().count(), cache.snapshot().iter().count()), (1, 3));
    assert!(directory.locked().is_empty());
}

#[test]
fn progress_a_deadline_and_a_cancellation() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = open(temporary.path());
    for partition in 0..6 {
        make_store(&directory, TaskId::new(0, partition), 5);
    }
    let stores = topology();
    let heard = Mutex::new(Vec::new());
    let scan = StartupScan::new(&stores).threads(NonZero::new(3).unwrap());
    let scan = scan.progress(|progress| heard.lock().unwrap().push(progress));
    scan.run(&directory, &OffsetCache::new()).unwrap();
    let done: BTreeSet<_> = heard.lock().unwrap().iter().map(|progress| progress.done).collect();
    assert_eq!(done, (1..=6).collect());
    let tasks: BTreeSet<_> = heard.lock().unwrap().iter().map(|progress| progress.task.partition()).collect();
    assert_eq!(tasks, (0..6).collect());
    assert!(heard.lock().unwrap().iter().all(|progress| progress.total == 6));

    let cache = OffsetCache::new();
    let report = StartupScan::new(&stores).within(Duration::ZERO).run(&directory, &cache).unwrap();
    assert!(!report.is_complete());
    assert!(report.tasks().iter().all(|task| task.left_out() == Some(LeftOut::DeadlinePassed)));
    assert_eq!((report.tasks().len(), cache.snapshot().iter().count()), (6, 0));

    // Cancelled after two tasks, by whoever hears of the progress: what is known by then stays.
    let cancellation = Cancellation::new();
    let scan = StartupScan::new(&stores).threads(NonZero::new(1).unwrap()).cancelled_by(&cancellation);
    let scan = scan.progress(|progress| {
        if progress.done == 2 {
            cancellation.cancel();
        }
    });
    let report = scan.run(&directory, &cache).unwrap();
    let cancelled = report.tasks().iter().filter(|task| task.left_out() == Some(LeftOut::Cancelled)).count();
    assert_eq!((cancelled, cache.snapshot().iter().count(), report.is_complete()), (4, 2, false));
    assert!(directory.locked().is_empty());
}

#[test]
fn a_look_changes_nothing_and_works_beside_the_owner() {
    let temporary = tempfile::tempdir().unwrap();
    let other = OtherProcess::start("child_has_a_store_open", temporary.path());
    let layout = StateLayout::new(temporary.path(), APPLICATION).unwrap();
    let report = StartupScan::new(&topology()).look(&layout).unwrap();
    // redb lets nobody else read.
    assert_eq!(report.task(TASK).unwrap().error().unwrap().kind(), ErrorKind::Locked);
    let closed = report.task(TaskId::new(0, 1)).unwrap();
    assert_eq!(*closed.stores()[0].committed.as_ref().unwrap(), Some(offset(41)));
    other.end();
    // Nor does it make anything where there is nothing.
    let nothing = temporary.path().join("nothing");
    let layout = StateLayout::new(&nothing, APPLICATION).unwrap();
    assert!(StartupScan::new(&topology()).look(&layout).unwrap().tasks().is_empty());
    assert!(!nothing.exists());
}

#[test]
#[ignore = "run by another test in another process"]
fn child_has_a_store_open() {
    let directory = open(&directory_of_child());
    make_store(&directory, TaskId::new(0, 1), 41);
    let lock = directory.lock(TASK).unwrap();
    let store = store_in(&lock.store_directory("counts").unwrap(), TASK);
    commit(&*store, 7);
    ready();
}

#[test]
fn ho_10_the_scan_keeps_no_lock_and_what_is_committed_later_is_found() {
    let temporary = tempfile::tempdir().unwrap();
    {
        let directory = open(temporary.path());
        make_store(&directory, TASK, 100);
    }
    {
        let directory = open(temporary.path());
        let (_, cache) = scan(&directory);
        assert_eq!(known(&cache, TASK), at(100));
        // At once, without waiting.
        let lock = directory.lock(TASK).unwrap();
        let store = store_in(&lock.store_directory("counts").unwrap(), TASK);
        cache.opened(&lock, &*store).unwrap();
        cache.restored(&lock, &*store);
        commit(&*store, 250);
        cache.committed(&lock, &*store).unwrap();
        cache.close(&lock, &*store).unwrap();
        assert_eq!(known(&cache, TASK), at(250));
    }
    assert_eq!(known(&scan(&open(temporary.path())).1, TASK), at(250));
}

#[test]
fn ho_11_a_killed_owner_leaves_its_newest_offset() {
    let temporary = tempfile::tempdir().unwrap();
    OtherProcess::start("child_ho_11", temporary.path()).kill();
    let directory = open(temporary.path());
    let (report, cache) = scan(&directory);
    assert_eq!(report.left_out().count(), 0);
    assert_eq!(known(&cache, TASK), at(9000));
    // That is what the engine itself says.
    let lock = directory.lock(TASK).unwrap();
    let store = store_in(&lock.store_directory("counts").unwrap(), TASK);
    assert_eq!(store.committed_offset(&changelog(TASK)).unwrap(), Some(offset(9000)));
}

#[test]
#[ignore = "run by another test in another process"]
fn child_ho_11() {
    let directory = open(&directory_of_child());
    let lock = directory.lock(TASK).unwrap();
    let store = store_in(&lock.store_directory("counts").unwrap(), TASK);
    commit(&*store, 100);
    commit(&*store, 9000);
    ready();
}

#[test]
fn ho_12_a_store_closed_before_its_first_commit_is_unknown_and_whole() {
    let temporary = tempfile::tempdir().unwrap();
    {
        let directory = open(temporary.path());
        let cache = OffsetCache::new();
        let lock = directory.lock(TASK).unwrap();
        let store = store_in(&lock.store_directory("counts").unwrap(), TASK);
        cache.opened(&lock, &*store).unwrap();
        cache.close(&lock, &*store).unwrap();
        assert_eq!(known(&cache, TASK), Some(CachedOffset::Unknown));
    }
    let directory = open(temporary.path());
    let (report, cache) = scan(&directory);
    assert_eq!(report.left_out().count(), 0);
    assert_eq!(known(&cache, TASK), Some(CachedOffset::Unknown));
    assert_eq!(lag(&topology(), &cache, TASK, 500), Lag::Behind(500));
    assert!(directory.layout().task_directory(TASK).join("counts/store.redb").exists());
}

#[test]
fn ho_13_a_store_in_memory_is_not_missed_on_the_disk() {
    let temporary = tempfile::tempdir().unwrap();
    let memory = Arc::new(StagedSupplier::new("memory", MemoryBackends::new()).unwrap());
    let stores = topology().with_logged(0, memory.clone()).unwrap();
    let changelogs = stores.changelogs(TASK);
    {
        let directory = open(temporary.path());
        let cache = OffsetCache::new();
        let lock = directory.lock(TASK).unwrap();
        let disk = store_in(&lock.store_directory("counts").unwrap(), TASK);
        let memory = memory.open("unused".as_ref(), &changelogs[1..]).unwrap();
        commit(&*disk, 50);
        commit(&*memory, 70);
        for store in [&disk, &memory] {
            cache.opened(&lock, &**store).unwrap();
            cache.restored(&lock, &**store);
            cache.committed(&lock, &**store).unwrap();
            cache.close(&lock, &**store).unwrap();
        }
        let snapshot = cache.snapshot();
        assert_eq!(snapshot.task(TASK).unwrap().iter().count(), 1, "only what is on the disk");
    }
    let directory = open(temporary.path());
    let cache = OffsetCache::new();
    let report = StartupScan::new(&stores).run(&directory, &cache).unwrap();
    assert_eq!(report.left_out().count(), 0);
    assert_eq!(cache.get(TASK, &changelogs[0]), at(50));
    assert_eq!(cache.get(TASK, &changelogs[1]), None);
    // 100 - 51 of one, the whole of the other.
    assert_eq!(lag(&stores, &cache, TASK, 100), Lag::Behind(149));
}

#[test]
fn ho_33_what_was_opened_and_never_used_is_empty_and_a_recycled_standby_keeps_its_offset() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = open(temporary.path());
    directory.lock(TASK).unwrap().store_directory("counts").unwrap();
    let listing = directory.layout().list().unwrap();
    assert_eq!((listing.tasks().len(), listing.empty()), (0, [TASK].as_slice()));
    let (report, cache) = scan(&directory);
    assert!(report.tasks().is_empty() && cache.snapshot().iter().count() == 0);
    assert_eq!(lag(&topology(), &cache, TASK, 80), Lag::Behind(80));

    // Nor is it damage if an engine has been there, and nothing was written.
    {
        let lock = directory.lock(TASK).unwrap();
        store_in(&lock.store_directory("counts").unwrap(), TASK).close().unwrap();
    }
    let (report, cache) = scan(&directory);
    assert_eq!(report.left_out().count(), 0);
    assert_eq!(known(&cache, TASK), Some(CachedOffset::Unknown));
    assert_eq!(lag(&topology(), &cache, TASK, 80), Lag::Behind(80));

    // A standby at 80 becomes active and is closed before anything else happens.
    make_store(&directory, TASK, 80);
    let lock = directory.lock(TASK).unwrap();
    let store = store_in(&lock.store_directory("counts").unwrap(), TASK);
    cache.opened(&lock, &*store).unwrap();
    cache.close(&lock, &*store).unwrap();
    assert_eq!(known(&cache, TASK), at(80));
    drop(lock);
    assert_eq!(known(&scan(&directory).1, TASK), at(80));
}

#[test]
fn ho_67_lags_are_answered_from_the_cache_and_the_scan_opens_nothing() {
    const TASKS: u32 = 500;
    let temporary = tempfile::tempdir().unwrap();
    let watched = ["counts", "totals"].map(|name| Arc::new(Watched::new(name)));
    let mut stores = TopologyStores::new(APPLICATION).unwrap();
    for supplier in &watched {
        stores = stores.with_logged(0, Arc::clone(supplier) as _).unwrap();
    }
    let tasks: Vec<_> = (0..TASKS).map(|partition| TaskId::new(0, partition)).collect();
    {
        let directory = open(temporary.path());
        // One store of each name that knows the partitions of all tasks, and a copy of it for each.
        for (index, name) in ["counts", "totals"].into_iter().enumerate() {
            let all: Vec<_> = tasks.iter().map(|task| stores.changelogs(*task).swap_remove(index)).collect();
            let template = temporary.path().join(name);
            let store = supplier(name).open(&template, &all).unwrap();
            store.commit(&all.into_iter().map(|partition| (partition, offset(9))).collect()).unwrap();
            store.close().unwrap();
            for task in &tasks {
                let path = directory.lock(*task).unwrap().store_directory(name).unwrap();
                fs::copy(template.join("store.redb"), path.join("store.redb")).unwrap();
            }
        }
    }
    let directory = open(temporary.path());
    let cache = OffsetCache::new();
    let report = StartupScan::new(&stores).run(&directory, &cache).unwrap();
    assert_eq!((report.tasks().len(), report.left_out().count()), (500, 0));
    let start = Instant::now();
    for _rebalance in 0..10 {
        for task in &tasks {
            assert_eq!(lag(&stores, &cache, *task, 15), Lag::Behind(10));
        }
    }
    println!("scan {:?}, 10 rebalances {:?}", report.duration(), start.elapsed());
    for supplier in &watched {
        let (reads, opens) = (supplier.reads.load(Ordering::Relaxed), supplier.opens.load(Ordering::Relaxed));
        assert_eq!((reads, opens), (500, 0), "each store is looked at once, and none is opened");
    }
}

#[test]
fn a_store_lives_through_the_cache() {
    let temporary = tempfile::tempdir().unwrap();
    let (directory, cache) = (open(temporary.path()), OffsetCache::new());
    let lock = directory.lock(TASK).unwrap();
    let store = store_in(&lock.store_directory("counts").unwrap(), TASK);
    cache.opened(&lock, &*store).unwrap();
    assert_eq!(known(&cache, TASK), Some(CachedOffset::Unknown));
    commit(&*store, 10);
    cache.committed(&lock, &*store).unwrap();
    assert_eq!(known(&cache, TASK), at(10));
    let before = cache.snapshot();
    cache.restored(&lock, &*store);
    commit(&*store, 20);
    cache.committed(&lock, &*store).unwrap();
    assert_eq!(known(&cache, TASK), Some(CachedOffset::Running), "live, whatever it commits");
    // An active task becomes a standby.
    cache.opened(&lock, &*store).unwrap();
    assert_eq!(known(&cache, TASK), at(20));
    cache.wipe(&lock, &*store).unwrap();
    assert_eq!(known(&cache, TASK), None);
    assert_eq!(store.committed_offset(&changelog(TASK)).unwrap(), None);
    commit(&*store, 3);
    cache.committed(&lock, &*store).unwrap();
    cache.close(&lock, &*store).unwrap();
    assert_eq!(known(&cache, TASK), at(3));
    assert_eq!(before.get(TASK, &changelog(TASK)), at(10), "a snapshot stays what it was");

    // What a closed store says is an error, and unknown.
    assert_eq!(cache.opened(&lock, &*store).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(known(&cache, TASK), Some(CachedOffset::Unknown));
    lock.wipe(|lock| cache.forget(lock)).unwrap();
    assert_eq!(cache.snapshot().iter().count(), 0);
}

/// `Running` is of an owner that is there, or the task's lag would be 0 for a member that does not run it.
#[test]
fn what_an_owner_leaves_open_runs_no_more() {
    let temporary = tempfile::tempdir().unwrap();
    let (directory, cache) = (open(temporary.path()), OffsetCache::new());
    make_store(&directory, TASK, 5);
    let before = thread::scope(|scope| {
        let owner = scope.spawn(|| {
            let lock = directory.lock(TASK).unwrap();
            let store = store_in(&lock.store_directory("counts").unwrap(), TASK);
            cache.opened(&lock, &*store).unwrap();
            cache.restored(&lock, &*store);
            commit(&*store, 9);
            let snapshot = cache.snapshot();
            // As by a panic: dropped in this order, and nothing closed.
            drop((lock, store));
            snapshot
        });
        owner.join().unwrap()
    });
    assert_eq!(known(&cache, TASK), Some(CachedOffset::Unknown));
    assert_eq!(lag(&topology(), &cache, TASK, 80), Lag::Behind(80));
    assert_eq!(before.get(TASK, &changelog(TASK)), Some(CachedOffset::Running), "a snapshot stays what it was");
    // Whoever has it next looks.
    let lock = directory.lock(TASK).unwrap();
    let store = store_in(&lock.store_directory("counts").unwrap(), TASK);
    cache.opened(&lock, &*store).unwrap();
    assert_eq!(known(&cache, TASK), at(9));
    // What is known of a store that did not run stays, too.
    drop((lock, store));
    assert_eq!(known(&cache, TASK), at(9));
}

#[test]
fn only_persistent_stores_with_a_changelog_enter() {
    let temporary = tempfile::tempdir().unwrap();
    let (directory, cache) = (open(temporary.path()), OffsetCache::new());
    let lock = directory.lock(TASK).unwrap();
    let memory = StagedStore::open("memory", MemoryBackend::new(), &[changelog(TASK)]).unwrap();
    let unlogged = supplier("scratch").open(&lock.store_directory("scratch").unwrap(), &[]).unwrap();
    for store in [&memory as &dyn StateStore, &*unlogged] {
        cache.opened(&lock, store).unwrap();
        cache.restored(&lock, store);
        cache.committed(&lock, store).unwrap();
        cache.close(&lock, store).unwrap();
        assert_eq!(cache.snapshot().iter().count(), 0, "{}", store.name());
    }
    drop(lock);
    // The scan does not even look at them.
    let stores = TopologyStores::new(APPLICATION).unwrap().with_unlogged(0, supplier("scratch")).unwrap();
    let report = StartupScan::new(&stores).run(&directory, &cache).unwrap();
    assert_eq!(report.task(TASK).unwrap().left_out(), Some(LeftOut::NotInTopology));
    assert!(report.task(TASK).unwrap().leftovers().is_empty());
}

#[test]
fn a_snapshot_costs_the_same_however_much_is_known() {
    let temporary = tempfile::tempdir().unwrap();
    let (directory, cache) = (open(temporary.path()), OffsetCache::new());
    let time = || {
        let start = Instant::now();
        let snapshots: Vec<_> = (0..1000).map(|_| cache.snapshot()).collect();
        drop(snapshots);
        start.elapsed()
    };
    // One store for all of them will do.
    let partitions = ["a", "b"].map(|topic| TopicPartition::new(topic, 0));
    let store = supplier("counts").open(&temporary.path().join("store"), &partitions).unwrap();
    for partition in 0..10_000 {
        cache.opened(&directory.lock(TaskId::new(0, partition)).unwrap(), &*store).unwrap();
    }
    // A copy of 20 000 entries takes milliseconds.
    let taken = time();
    assert!(taken < Duration::from_millis(200), "1000 snapshots of 10 000 tasks took {taken:?}");
    assert_eq!(cache.snapshot().iter().count(), 10_000);
}
