//! Models: the scheduler of `shuttle` tries many orders of the threads that meet at the task locks and the cache.
//!
//! The crate's own files are compiled here once more, over its types for what threads meet at (`sync`).
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "tests, and files that are the library elsewhere"
)]

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use kstate_api::{ErrorKind, StateStore, TaskId};
use shuttle::{
    Config, Runner,
    scheduler::{PctScheduler, RandomScheduler},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

#[path = "../src/cached_offset.rs"]
mod cached_offset;
#[path = "../src/cancellation.rs"]
mod cancellation;
#[path = "../src/clean_up.rs"]
mod clean_up;
#[path = "../src/in_order.rs"]
mod in_order;
#[path = "../src/known_offsets.rs"]
mod known_offsets;
#[path = "../src/layout.rs"]
mod layout;
#[path = "../src/listing.rs"]
mod listing;
#[path = "../src/lock_table.rs"]
mod lock_table;
#[path = "../src/offset_cache.rs"]
mod offset_cache;
#[path = "../src/offset_snapshot.rs"]
mod offset_snapshot;
#[path = "../src/permissions.rs"]
mod permissions;
#[path = "../src/process_id.rs"]
mod process_id;
#[path = "../src/process_lock.rs"]
mod process_lock;
#[path = "../src/removal.rs"]
mod removal;
#[path = "../src/scan_report.rs"]
mod scan_report;
#[path = "../src/startup_scan.rs"]
mod startup_scan;
#[path = "../src/state_directory.rs"]
mod state_directory;
mod support;
#[path = "../src/task_contents.rs"]
mod task_contents;
#[path = "../src/task_lock.rs"]
mod task_lock;
#[path = "../src/task_offsets.rs"]
mod task_offsets;
#[path = "../src/task_scan.rs"]
mod task_scan;
#[path = "../src/topology_stores.rs"]
mod topology_stores;
#[path = "../src/wait.rs"]
mod wait;

/// In place of the library's own.
mod sync {
    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

pub use cached_offset::CachedOffset;
pub use cancellation::Cancellation;
pub use clean_up::CleanUp;
pub use layout::StateLayout;
pub use listing::Listing;
pub use offset_cache::OffsetCache;
pub use offset_snapshot::OffsetSnapshot;
pub use scan_report::{ScanProgress, ScanReport};
pub use startup_scan::StartupScan;
pub use state_directory::StateDirectory;
pub use task_contents::TaskContents;
pub use task_lock::TaskLock;
pub use task_offsets::TaskOffsets;
pub use task_scan::{LeftOut, StoreScan, TaskScan};
pub use topology_stores::TopologyStores;
pub use wait::Wait;

use support::{APPLICATION, changelog, commit, offset, store_in, supplier};

const TASK: TaskId = TaskId::new(0, 0);
/// Longer than any model: a wait that is not woken is a deadlock, which the scheduler finds.
const LONG: Duration = Duration::from_secs(3600);

/// Runs `model` in orders drawn at random, and in orders with few but nasty changes.
fn check(iterations: usize, model: impl Fn() + Send + Sync + Clone + 'static) {
    let mut config = Config::new();
    // An engine runs on these stacks.
    config.stack_size = 1 << 20;
    Runner::new(RandomScheduler::new(iterations), config.clone()).run(model.clone());
    Runner::new(PctScheduler::new(3, iterations), config).run(model);
}

fn temporary() -> tempfile::TempDir {
    // In memory, where there is such a place: nothing waits for a disk then.
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

fn open(state: &Path) -> StateDirectory {
    StateDirectory::open(state, APPLICATION).unwrap()
}

fn topology() -> TopologyStores {
    TopologyStores::new(APPLICATION).unwrap().with_logged(0, supplier("counts")).unwrap()
}

#[test]
fn a_task_never_has_two_owners_and_whoever_waits_gets_it() {
    check(500, || {
        let temporary = temporary();
        let directory = open(temporary.path());
        let owners: Arc<[AtomicUsize; 2]> = Arc::default();
        let threads: Vec<_> = (0..3)
            .map(|number| {
                let (directory, owners) = (directory.clone(), Arc::clone(&owners));
                thread::spawn(move || {
                    for partition in [number % 2, (number + 1) % 2] {
                        let task = TaskId::new(0, partition);
                        let lock = directory.lock_within(task, &Wait::up_to(LONG)).unwrap();
                        let owners = &owners[usize::try_from(partition).unwrap()];
                        assert_eq!(owners.fetch_add(1, Ordering::SeqCst), 0, "two owners of {task}");
                        // Without waiting, the answer is there at once and the owner stays the owner.
                        assert_eq!(directory.lock(task).unwrap_err().kind(), ErrorKind::Locked);
                        assert_eq!(owners.fetch_sub(1, Ordering::SeqCst), 1);
                        drop(lock);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(directory.locked().is_empty());
    });
}

/// What is known of the task is what its files say, whenever nobody is changing them.
fn check_agreement(directory: &StateDirectory, cache: &OffsetCache, scanned: bool) {
    let Ok(_lock) = directory.lock(TASK) else { return };
    let on_disk = topology().of(TASK)[0]
        .read_offset(&directory.layout().store_directory(TASK, "counts").unwrap(), &changelog(TASK))
        .unwrap();
    match cache.get(TASK, &changelog(TASK)) {
        Some(CachedOffset::At(known)) => assert_eq!(Some(known), on_disk),
        Some(CachedOffset::Unknown) => assert_eq!(on_disk, None),
        Some(CachedOffset::Running) => panic!("nobody runs it"),
        None => assert!(!scanned || on_disk.is_none(), "{on_disk:?} is on the disk and not known"),
    }
}

fn assign(directory: &StateDirectory, cache: &OffsetCache) {
    let lock = directory.lock_within(TASK, &Wait::up_to(LONG)).unwrap();
    let store = store_in(&lock.store_directory("counts").unwrap(), TASK);
    cache.opened(&lock, &*store).unwrap();
    let before = store.committed_offset(&changelog(TASK)).unwrap();
    assert!(before.is_none() || before == Some(offset(100)), "{before:?}");
    cache.restored(&lock, &*store);
    commit(&*store, 250);
    cache.committed(&lock, &*store).unwrap();
    assert_eq!(cache.get(TASK, &changelog(TASK)), Some(CachedOffset::Running), "someone else spoke for it");
    cache.close(&lock, &*store).unwrap();
    assert_eq!(cache.get(TASK, &changelog(TASK)), Some(CachedOffset::At(offset(250))));
}

fn clean(directory: &StateDirectory, cache: &OffsetCache) {
    let store: PathBuf = directory.layout().store_directory(TASK, "counts").unwrap();
    let cleaned = directory.clean(Duration::ZERO, |lock| {
        assert!(store.join("store.redb").exists(), "the files went first");
        cache.forget(lock);
    });
    assert!(cleaned.unwrap().failed().is_empty());
}

#[test]
fn scan_assign_close_and_clean_up_agree_in_any_order() {
    let template = temporary();
    {
        let store = store_in(template.path(), TASK);
        commit(&*store, 100);
        store.close().unwrap();
    }
    let template = Arc::new(template);
    check(150, move || {
        let temporary = temporary();
        let directory = open(temporary.path());
        let path = directory.lock(TASK).unwrap().store_directory("counts").unwrap();
        std::fs::copy(template.path().join("store.redb"), path.join("store.redb")).unwrap();
        let cache = Arc::new(OffsetCache::new());

        let spawn = |work: fn(&StateDirectory, &OffsetCache)| {
            let (directory, cache) = (directory.clone(), Arc::clone(&cache));
            thread::spawn(move || work(&directory, &cache))
        };
        let threads = [
            spawn(|directory, cache| {
                let stores = topology();
                let scan = StartupScan::new(&stores).scan(TASK, directory, cache);
                assert!(
                    matches!(scan.left_out(), None | Some(LeftOut::Owned | LeftOut::Gone)),
                    "{:?}: {:?}",
                    scan.left_out(),
                    scan.error()
                );
            }),
            spawn(assign),
            spawn(clean),
            spawn(|directory, cache| check_agreement(directory, cache, false)),
        ];
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(directory.locked().is_empty());
        check_agreement(&directory, &cache, false);
        let stores = topology();
        StartupScan::new(&stores).scan(TASK, &directory, &cache);
        check_agreement(&directory, &cache, true);
    });
}

#[test]
fn ho_35_what_was_released_just_now_stays() {
    check(300, || {
        let temporary = temporary();
        let directory = open(temporary.path());
        // Made by an earlier process, which released it two hours ago.
        let task = directory.layout().task_directory(TASK);
        let store = task.join("counts");
        std::fs::create_dir_all(&store).unwrap();
        std::fs::write(store.join("store"), "records").unwrap();
        let two_hours_ago = std::time::SystemTime::now() - 2 * LONG;
        std::fs::File::open(&task).unwrap().set_modified(two_hours_ago).unwrap();

        let cleaner = {
            let directory = directory.clone();
            thread::spawn(move || directory.clean(LONG, |_| ()).unwrap().removed().len())
        };
        let lock = directory.lock_within(TASK, &Wait::up_to(LONG)).unwrap();
        let was_there = store.exists();
        drop(lock);
        let removed = cleaner.join().unwrap();
        assert_eq!(was_there, store.exists(), "it was deleted after its owner released it");
        assert_eq!(removed, usize::from(!was_there));
    });
}

/// A cleaner that is dropped must not go on for as long as it takes to delete all.
#[test]
fn a_clean_up_that_is_stopped_begins_no_further_task() {
    check(1, || {
        let temporary = temporary();
        let directory = open(temporary.path());
        for partition in 0..4 {
            drop(directory.lock(TaskId::new(0, partition)).unwrap().store_directory("counts").unwrap());
        }
        let begun = std::cell::Cell::new(0);
        let is_stopped = || begun.get() == 2;
        let cleaned = directory.clean_until(Duration::ZERO, |_| begun.set(begun.get() + 1), is_stopped).unwrap();
        assert_eq!(cleaned.removed(), [TaskId::new(0, 0), TaskId::new(0, 1)]);
        assert_eq!(directory.layout().list().unwrap().empty().len(), 2);
    });
}

#[test]
fn a_snapshot_is_one_moment_over_all_tasks() {
    check(300, || {
        let temporary = temporary();
        let (directory, cache) = (open(temporary.path()), Arc::new(OffsetCache::new()));
        let (first, second) = (TaskId::new(0, 0), TaskId::new(0, 1));
        let writer = {
            let (directory, cache) = (directory.clone(), Arc::clone(&cache));
            thread::spawn(move || {
                let locks = [first, second].map(|task| directory.lock(task).unwrap());
                for value in 1..4 {
                    for lock in &locks {
                        cache.scanned(lock, [(changelog(lock.task()), CachedOffset::At(offset(value)))]);
                    }
                }
                for lock in locks.iter().rev() {
                    cache.forget(lock);
                }
            })
        };
        for _ in 0..3 {
            let snapshot = cache.snapshot();
            let value = |task| match snapshot.get(task, &changelog(task)) {
                Some(CachedOffset::At(offset)) => offset.get(),
                _ => 0,
            };
            // The first is always ahead by at most one, until they go.
            let (ahead, behind) = (value(first), value(second));
            assert!(ahead == behind || ahead == behind + 1 || (ahead, behind) == (3, 0), "{ahead} and {behind}");
        }
        writer.join().unwrap();
        assert_eq!(cache.snapshot().iter().count(), 0);
    });
}
