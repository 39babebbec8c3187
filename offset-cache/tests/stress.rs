//! Eight threads take, use, release, wipe and scan the same tasks while the cleaner is on.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use kstate_api::{ErrorKind, TaskId};
use kstate_offset_cache::{CachedOffset, Cleaner, LeftOut, OffsetCache, StartupScan, StateDirectory, Wait};
use support::{changelog, commit, make_store, open, store_in, topology};

const THREADS: u64 = 8;
const TASKS: u64 = 5;
const DURATION: Duration = Duration::from_secs(4);

/// What happened, so that a run in which nothing happened does not pass.
#[derive(Debug, Default)]
struct Tally {
    used: AtomicUsize,
    found: AtomicUsize,
    found_gone: AtomicUsize,
    refused: AtomicUsize,
    wiped: AtomicUsize,
    scanned: AtomicUsize,
}

fn count(tally: &AtomicUsize) {
    tally.fetch_add(1, Ordering::Relaxed);
}

/// The owner of a task finds in its store what the cache knows, and leaves in the cache what is in the store.
fn use_task(directory: &StateDirectory, cache: &OffsetCache, task: TaskId, wipe: bool, tally: &Tally) {
    let lock = match directory.lock_within(task, &Wait::up_to(Duration::from_millis(1))) {
        Ok(lock) => lock,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
            return count(&tally.refused);
        }
    };
    let partition = changelog(task);
    let known = cache.get(task, &partition);
    let store = store_in(&lock.store_directory("counts").unwrap(), task);
    let stored = store.committed_offset(&partition).unwrap();
    match (known, stored) {
        (Some(CachedOffset::At(known)), Some(stored)) => {
            assert_eq!(known, stored, "{task}");
            count(&tally.found);
        }
        // The cleaner, or a wipe, took both.
        (None, None) => count(&tally.found_gone),
        other => panic!("{task} is known as {:?} and has {:?}", other.0, other.1),
    }
    cache.opened(&lock, &*store).unwrap();
    cache.restored(&lock, &*store);
    commit(&*store, stored.map_or(0, |stored| stored.next().get()));
    cache.committed(&lock, &*store).unwrap();
    assert_eq!(cache.get(task, &partition), Some(CachedOffset::Running), "{task}");
    cache.close(&lock, &*store).unwrap();
    count(&tally.used);
    if wipe {
        assert!(lock.wipe(|lock| cache.forget(lock)).unwrap().is_empty());
        count(&tally.wiped);
    }
}

#[test]
fn eight_threads_and_the_cleaner() {
    // In memory, where there is such a place: nothing waits for a disk then.
    let temporary = tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap());
    let (directory, cache) = (open(temporary.path()), Arc::new(OffsetCache::new()));
    let tasks: Vec<_> = (0..TASKS).map(|task| TaskId::new(0, u32::try_from(task).unwrap())).collect();
    for task in &tasks {
        make_store(&directory, *task, 5);
    }
    let stores = topology();
    StartupScan::new(&stores).run(&directory, &cache).unwrap();

    let tally = Tally::default();
    let cleaner = Cleaner::start(&directory, &cache, Duration::from_millis(15)).unwrap();
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (directory, cache, stores, tasks, tally) = (&directory, &*cache, &stores, &tasks, &tally);
            scope.spawn(move || {
                // Each thread has its own order: the steps of a linear congruence.
                let mut state = number;
                let end = Instant::now() + DURATION;
                while Instant::now() < end {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(number * 2 + 1);
                    let drawn = state >> 33;
                    if drawn % 16 == 0 {
                        let report = StartupScan::new(stores).run(directory, cache).unwrap();
                        for left in report.left_out() {
                            let why = left.left_out().unwrap();
                            assert!(matches!(why, LeftOut::Owned | LeftOut::Gone), "{why}: {:?}", left.error());
                        }
                        count(&tally.scanned);
                    }
                    let task = tasks[usize::try_from(drawn % TASKS).unwrap()];
                    use_task(directory, cache, task, drawn % 11 == 0, tally);
                    // Long enough, at times, for the cleaner.
                    thread::sleep(Duration::from_millis(drawn % 30));
                }
            });
        }
    });
    drop(cleaner);
    assert!(directory.locked().is_empty());
    println!("{tally:?}");
    for happened in [&tally.used, &tally.found, &tally.found_gone, &tally.refused, &tally.wiped, &tally.scanned] {
        assert!(happened.load(Ordering::Relaxed) > 0, "{tally:?}");
    }

    // At the end all of them are known as they are, and the directory can be opened again.
    for task in &tasks {
        use_task(&directory, &cache, *task, false, &tally);
    }
    let known = cache.snapshot();
    drop(directory);
    let (directory, cache) = (open(temporary.path()), OffsetCache::new());
    StartupScan::new(&stores).run(&directory, &cache).unwrap();
    for task in &tasks {
        assert_eq!(cache.get(*task, &changelog(*task)), known.get(*task, &changelog(*task)), "{task}");
    }
}
