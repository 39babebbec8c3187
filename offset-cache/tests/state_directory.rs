//! Owning a state directory and its tasks, and deleting what nobody uses: clauses D1 to D4.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../../store-redb/tests/common/events.rs"]
mod events;
mod support;

use std::{
    fs,
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant, SystemTime},
};

use kstate_api::{ErrorKind, KeyValueStoreSupplier, Result, TaskId};
use kstate_offset_cache::{
    CachedOffset, Cancellation, Cleaner, LeftOut, OffsetCache, StartupScan, StateDirectory, StateLayout,
    TopologyStores, Wait,
};
use support::{
    APPLICATION, OtherProcess, changelog, directory_of_child, make_store, offset, open, ready, store_in, supplier,
    topology,
};

const TASK: TaskId = TaskId::new(0, 0);
const HOUR: Duration = Duration::from_secs(3600);

fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

/// As if nobody had used `task` for `age`.
fn make_old(layout: &StateLayout, task: TaskId, age: Duration) {
    let directory = fs::File::open(layout.task_directory(task)).unwrap();
    directory.set_modified(SystemTime::now() - age).unwrap();
}

#[test]
fn a_second_open_in_this_process_is_refused_at_once() {
    let temporary = tempfile::tempdir().unwrap();
    let first = open(temporary.path());
    let start = Instant::now();
    let error = StateDirectory::open(temporary.path(), APPLICATION).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().contains("is in use by this process"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(1));
    // Another application is another directory.
    StateDirectory::open(temporary.path(), "other").unwrap();
    drop(first);
    open(temporary.path());
}

#[test]
fn it_is_owned_as_long_as_a_lock_lives() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = open(temporary.path());
    let lock = directory.clone().lock(TASK).unwrap();
    drop(directory);
    assert_eq!(kind(StateDirectory::open(temporary.path(), APPLICATION)), Some(ErrorKind::Locked));
    drop(lock);
    open(temporary.path());
}

#[test]
fn waiting_for_the_directory_is_bounded_and_can_be_cancelled() {
    let temporary = tempfile::tempdir().unwrap();
    let first = open(temporary.path());
    let within = |wait: &Wait| StateDirectory::open_within(temporary.path(), APPLICATION, wait);

    let start = Instant::now();
    assert_eq!(kind(within(&Wait::up_to(Duration::from_millis(80)))), Some(ErrorKind::Locked));
    assert!((80..2000).contains(&start.elapsed().as_millis()));

    let cancellation = Cancellation::new();
    let wait = Wait::up_to(HOUR).cancelled_by(&cancellation);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| within(&wait));
        thread::sleep(Duration::from_millis(30));
        cancellation.cancel();
        let error = waiting.join().unwrap().unwrap_err();
        assert!(error.kind() == ErrorKind::Locked && error.to_string().contains("cancelled"), "{error}");
    });

    thread::scope(|scope| {
        let waiting = scope.spawn(|| within(&Wait::up_to(HOUR)));
        thread::sleep(Duration::from_millis(30));
        drop(first);
        waiting.join().unwrap().unwrap();
    });
}

#[test]
fn ho_37_one_process_at_a_time() {
    let temporary = tempfile::tempdir().unwrap();
    let other = OtherProcess::start("child_owns_the_directory", temporary.path());
    let error = StateDirectory::open(temporary.path(), APPLICATION).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().contains(&format!("is in use by process {}", other.id())), "{error}");
    let layout = StateLayout::new(temporary.path(), APPLICATION).unwrap();
    assert!(layout.is_owned().unwrap());

    // Nobody has to clear away what a dead owner left.
    other.kill();
    assert!(!layout.is_owned().unwrap());
    let directory = open(temporary.path());
    assert_eq!(directory.layout().list().unwrap().tasks(), [TASK]);
}

#[test]
#[ignore = "run by other tests in another process"]
fn child_owns_the_directory() {
    let directory = open(&directory_of_child());
    let path = make_store(&directory, TASK, 7);
    let _lock = directory.lock(TASK).unwrap();
    assert!(path.is_dir());
    ready();
}

#[test]
fn a_directory_that_was_replaced_is_no_longer_ours() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = open(temporary.path());
    fs::remove_dir_all(directory.layout().application_directory()).unwrap();
    let error = directory.lock(TASK).unwrap_err();
    assert!(error.kind() == ErrorKind::Io && error.to_string().contains("deleted or replaced"), "{error}");
    assert!(directory.locked().is_empty());

    let other = open(temporary.path());
    make_store(&other, TASK, 7);
    assert_eq!(kind(directory.lock(TASK)), Some(ErrorKind::Io));
    assert_eq!(kind(directory.clean(Duration::ZERO, |_| ())), Some(ErrorKind::Io));
    assert_eq!(other.layout().list().unwrap().tasks(), [TASK]);
}

#[test]
fn a_task_has_one_owner_and_its_lock_frees_itself() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = open(temporary.path());
    let lock = directory.lock(TASK).unwrap();
    assert_eq!(kind(directory.lock(TASK)), Some(ErrorKind::Locked));
    let other = directory.lock(TaskId::new(0, 1)).unwrap();
    assert_eq!(directory.locked(), [TASK, other.task()]);
    drop(lock);

    let panicking = directory.clone();
    let owner = thread::spawn(move || {
        let _lock = panicking.lock(TASK).unwrap();
        panic!("the owner of a task panics");
    });
    assert!(owner.join().is_err());
    let lock = directory.lock_within(TASK, &Wait::up_to(HOUR)).unwrap();

    let cancellation = Cancellation::new();
    let start = Instant::now();
    assert_eq!(kind(directory.lock_within(TASK, &Wait::up_to(Duration::from_millis(50)))), Some(ErrorKind::Locked));
    assert!(start.elapsed() >= Duration::from_millis(50));
    let wait = Wait::up_to(HOUR).cancelled_by(&cancellation);
    thread::scope(|scope| {
        let cancelled = scope.spawn(|| kind(directory.lock_within(TASK, &wait)));
        thread::sleep(Duration::from_millis(30));
        cancellation.cancel();
        assert_eq!(cancelled.join().unwrap(), Some(ErrorKind::Locked));

        let waiting = scope.spawn(|| directory.lock_within(TASK, &Wait::up_to(HOUR)).unwrap().task());
        thread::sleep(Duration::from_millis(30));
        drop(lock);
        assert_eq!(waiting.join().unwrap(), TASK);
    });
}

#[test]
fn ho_35_the_cleaner_counts_from_the_last_release() {
    let temporary = tempfile::tempdir().unwrap();
    let (directory, cache) = (open(temporary.path()), OffsetCache::new());
    let path = make_store(&directory, TASK, 7);
    StartupScan::new(&topology()).run(&directory, &cache).unwrap();
    let known = || cache.get(TASK, &changelog(TASK));
    let clean = |delay| directory.clean(delay, |lock| cache.forget(lock)).unwrap().removed().to_vec();

    // However old its files are: it was released just now.
    make_old(directory.layout(), TASK, 10 * HOUR);
    assert!(clean(HOUR).is_empty());
    assert!(path.join("store.redb").exists() && known() == Some(CachedOffset::At(offset(7))));

    // An owner keeps it, however long ago it was released before.
    let lock = directory.lock(TASK).unwrap();
    thread::sleep(Duration::from_millis(60));
    assert!(clean(Duration::from_millis(50)).is_empty());
    drop(lock);
    assert!(clean(Duration::from_millis(50)).is_empty());

    thread::sleep(Duration::from_millis(60));
    assert_eq!(clean(Duration::from_millis(50)), [TASK]);
    assert!(!path.exists() && !directory.layout().task_directory(TASK).exists());
    assert_eq!(known(), None);
}

#[test]
fn the_age_outlives_the_process_and_a_scan_is_no_use() {
    let temporary = tempfile::tempdir().unwrap();
    let path = make_store(&open(temporary.path()), TASK, 7);
    {
        // Whoever only has the lock has used it, too, and the next process knows when.
        let directory = open(temporary.path());
        make_old(directory.layout(), TASK, 2 * HOUR);
        drop(directory.lock(TASK).unwrap());
    }
    let directory = open(temporary.path());
    assert!(directory.clean(HOUR, |_| ()).unwrap().removed().is_empty());
    make_old(directory.layout(), TASK, 2 * HOUR);
    StartupScan::new(&topology()).run(&directory, &OffsetCache::new()).unwrap();
    assert!(directory.clean(3 * HOUR, |_| ()).unwrap().removed().is_empty());
    assert!(path.exists());
    assert_eq!(directory.clean(HOUR, |_| ()).unwrap().removed(), [TASK]);
    assert!(!path.exists());
}

#[test]
fn nobody_knows_when_a_dead_owner_released_its_tasks() {
    let temporary = tempfile::tempdir().unwrap();
    OtherProcess::start("child_owns_the_directory", temporary.path()).kill();
    let layout = StateLayout::new(temporary.path(), APPLICATION).unwrap();
    make_old(&layout, TASK, 10 * HOUR);
    // Neither the next process knows, nor one after it, which itself has a predecessor that ended in peace.
    for _ in 0..2 {
        let directory = open(temporary.path());
        assert!(directory.clean(HOUR, |_| ()).unwrap().removed().is_empty());
        assert!(directory.locked().is_empty());
    }

    // One that ended in peace told.
    OtherProcess::start("child_owns_the_directory", temporary.path()).end();
    let directory = open(temporary.path());
    make_old(directory.layout(), TASK, 10 * HOUR);
    assert_eq!(directory.clean(HOUR, |_| ()).unwrap().removed(), [TASK]);
}

#[test]
fn ho_36_a_deleted_task_is_gone_and_has_no_two_owners() {
    let temporary = tempfile::tempdir().unwrap();
    let (directory, cache) = (open(temporary.path()), OffsetCache::new());
    let path = make_store(&directory, TASK, 7);
    StartupScan::new(&topology()).run(&directory, &cache).unwrap();
    let mut seen = false;
    let left = directory.wipe(TASK, |lock| {
        // At the same moment, from elsewhere; and the cache goes before the files (clause D3).
        assert_eq!(kind(directory.lock(TASK)), Some(ErrorKind::Locked));
        assert!(path.join("store.redb").exists());
        cache.forget(lock);
        seen = true;
    });
    assert!(seen && left.unwrap().is_empty());
    let listing = directory.layout().list().unwrap();
    assert!(listing.tasks().is_empty() && listing.empty().is_empty() && listing.unfamiliar().is_empty());
    assert_eq!(cache.snapshot().iter().count(), 0);
    make_store(&directory, TASK, 8);

    // What only has locks and bookkeeping is no task.
    let locks = directory.layout().task_directory(TaskId::new(0, 9));
    fs::create_dir_all(locks.join("counts/segments/1")).unwrap();
    fs::write(locks.join(".lock"), "").unwrap();
    fs::write(locks.join("counts/LOCK"), "").unwrap();
    fs::write(locks.join("counts/segments/1/LOG"), "").unwrap();
    fs::write(locks.join(".checkpoint_counts"), "").unwrap();
    let listing = directory.layout().list().unwrap();
    assert_eq!((listing.tasks(), listing.empty()), ([TASK].as_slice(), [TaskId::new(0, 9)].as_slice()));
    let report = StartupScan::new(&topology()).run(&directory, &cache).unwrap();
    assert_eq!(report.tasks().len(), 1);
    // One file of an engine, however deep, and it is one.
    fs::write(locks.join("counts/segments/1/CURRENT"), "").unwrap();
    assert_eq!(directory.layout().list().unwrap().tasks(), [TASK, TaskId::new(0, 9)]);
}

#[test]
fn what_is_unfamiliar_is_never_deleted() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = open(temporary.path());
    let store = make_store(&directory, TASK, 7);
    let elsewhere = temporary.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("precious"), "mine").unwrap();

    let application = directory.layout().application_directory();
    let task = directory.layout().task_directory(TASK);
    fs::write(application.join("notes.txt"), "mine").unwrap();
    fs::create_dir(application.join("0_01")).unwrap();
    fs::write(application.join("0_5"), "a file with a task's name").unwrap();
    fs::write(task.join("notes.txt"), "mine").unwrap();
    fs::create_dir(task.join("my backup")).unwrap();
    let mut unfamiliar =
        vec![application.join("notes.txt"), application.join("0_01"), application.join("0_5"), task.join("notes.txt")];
    unfamiliar.push(task.join("my backup"));
    #[cfg(unix)]
    for link in [application.join("0_7"), task.join("linked")] {
        std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
        unfamiliar.push(link);
    }
    unfamiliar.sort();
    let only = directory.layout().task_directory(TaskId::new(0, 3));
    fs::create_dir(&only).unwrap();
    fs::write(only.join("mine"), "").unwrap();

    let found = directory.layout().list().unwrap();
    let expected: Vec<_> = unfamiliar.iter().cloned().chain([only.join("mine")]).collect();
    assert_eq!(found.unfamiliar().iter().collect::<std::collections::BTreeSet<_>>(), expected.iter().collect());

    thread::sleep(Duration::from_millis(2));
    let cleaned = directory.clean(Duration::ZERO, |_| ()).unwrap();
    assert_eq!((cleaned.removed(), cleaned.failed().len()), ([TASK].as_slice(), 0));
    assert!(!store.exists());
    for path in &expected {
        assert!(path.symlink_metadata().is_ok(), "{} was deleted", path.display());
    }
    assert_eq!(fs::read_to_string(elsewhere.join("precious")).unwrap(), "mine");
    // Of what is left nothing is a task, and nothing is deleted again.
    thread::sleep(Duration::from_millis(2));
    assert!(directory.clean(Duration::ZERO, |_| ()).unwrap().removed().is_empty());
    assert!(directory.layout().list().unwrap().tasks().is_empty());
}

#[test]
fn what_says_how_far_a_store_has_come_goes_with_it() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = open(temporary.path());
    make_store(&directory, TASK, 7);
    let checkpoint = directory.layout().task_directory(TASK).join(".checkpoint_other");
    fs::write(&checkpoint, "0").unwrap();
    directory.lock(TASK).unwrap().wipe(|_| ()).unwrap();
    assert!(!checkpoint.exists());
}

/// An engine may take half a store for a whole one, if a crash leaves it in its place.
#[test]
fn a_store_disappears_in_one_step() {
    const FILES: usize = 3_000;
    let temporary = tempfile::tempdir().unwrap();
    let directory = open(temporary.path());
    let store = directory.lock(TASK).unwrap().store_directory("counts").unwrap();
    for file in 0..FILES {
        fs::write(store.join(file.to_string()), "").unwrap();
    }
    let looks = thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut looks = 0;
            while let Ok(entries) = fs::read_dir(&store) {
                let files = entries.count();
                // Whatever is listed while the store goes, it is whole as long as it is in its place.
                assert!(files == FILES || !store.exists(), "{files} of {FILES} files are there");
                looks += 1;
            }
            looks
        });
        thread::sleep(Duration::from_millis(20));
        directory.wipe(TASK, |_| ()).unwrap();
        watcher.join().unwrap()
    });
    assert!(looks > 0);
    assert!(!temporary.path().join(APPLICATION).join(".trash").read_dir().is_ok_and(|mut left| left.next().is_some()));
}

#[test]
fn what_a_dead_process_was_deleting_is_deleted_at_the_next_start() {
    let temporary = tempfile::tempdir().unwrap();
    drop(open(temporary.path()));
    let trash = temporary.path().join(APPLICATION).join(".trash");
    fs::create_dir_all(trash.join("a-store")).unwrap();
    fs::write(trash.join("a-store/store.redb"), "half").unwrap();
    let directory = open(temporary.path());
    assert!(!trash.exists());
    assert!(directory.layout().list().unwrap().unfamiliar().is_empty());
}

#[test]
fn the_cleaner_deletes_in_the_background_and_stops_when_dropped() {
    let temporary = tempfile::tempdir().unwrap();
    let (directory, cache) = (open(temporary.path()), Arc::new(OffsetCache::new()));
    make_store(&directory, TASK, 7);
    StartupScan::new(&topology()).run(&directory, &cache).unwrap();
    let held = directory.lock(TaskId::new(0, 1)).unwrap();
    let kept = held.store_directory("counts").unwrap();
    let cleaner = Cleaner::start(&directory, &cache, Duration::from_millis(20)).unwrap();
    let start = Instant::now();
    while directory.layout().task_directory(TASK).exists() {
        assert!(start.elapsed() < Duration::from_secs(30), "the cleaner does nothing");
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(cache.get(TASK, &changelog(TASK)), None);
    drop(cleaner);
    drop(held);
    thread::sleep(Duration::from_millis(80));
    assert!(kept.exists());

    let cleaner = Cleaner::start(&directory, &cache, HOUR).unwrap();
    let start = Instant::now();
    drop(cleaner);
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn ho_65_names_are_checked_before_anything_is_made() {
    let temporary = tempfile::tempdir().unwrap();
    let renamed = |name: &str| Arc::new(Renamed(name.to_owned(), supplier("counts"))) as Arc<dyn KeyValueStoreSupplier>;
    let build = |name: &str| TopologyStores::new(APPLICATION).unwrap().with_logged(0, renamed(name));
    let refused = |name: &str, why: &str| {
        let error = build(name).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains(why), "{error}");
        let layout = StateLayout::new(temporary.path(), APPLICATION).unwrap();
        if name.len() < 200 {
            assert_eq!(kind(layout.store_directory(TASK, name)), Some(ErrorKind::InvalidArgument));
        }
    };
    refused("my store", "' '");
    refused("a/b", "'/'");
    refused("", "is not a name");
    refused("..", "is not a name");
    refused(".checkpoint_counts", "bookkeeping");
    refused("counts.lock", "bookkeeping");
    // `app-` and `-changelog` are 14 more.
    refused(&"x".repeat(236), "250 bytes; 249 are allowed");
    assert!(build(&"x".repeat(235)).is_ok());
    let stores = build("ok.name-1_x").unwrap();
    assert_eq!(stores.changelogs(TASK)[0].topic(), "app-ok.name-1_x-changelog");

    // Two names may not meet: in a path where `a` is `A`, in Kafka where `.` is `_`.
    let second = |name: &str| stores_with("ok.name-1_x").with_logged(1, renamed(name));
    assert!(second("OK.name-1_x").unwrap_err().to_string().contains("would meet"));
    assert!(second("ok_name-1_x").unwrap_err().to_string().contains("would meet"));
    assert!(second("other").is_ok());
    for id in ["", "..", "a/b", "a b"] {
        assert_eq!(kind(TopologyStores::new(id)), Some(ErrorKind::InvalidArgument));
        assert_eq!(kind(StateDirectory::open(temporary.path(), id)), Some(ErrorKind::InvalidArgument));
    }
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
}

fn stores_with(name: &str) -> TopologyStores {
    TopologyStores::new(APPLICATION).unwrap().with_logged(0, supplier(name)).unwrap()
}

/// A supplier of someone's own, who checks no names.
#[derive(Debug)]
struct Renamed(String, Arc<dyn KeyValueStoreSupplier>);

impl KeyValueStoreSupplier for Renamed {
    fn name(&self) -> &str {
        &self.0
    }

    fn persistent(&self) -> bool {
        self.1.persistent()
    }

    fn open(&self, at: &Path, partitions: &[kstate_api::TopicPartition]) -> Result<Arc<dyn kstate_api::KeyValueStore>> {
        self.1.open(at, partitions)
    }

    fn read_offsets(
        &self,
        at: &Path,
        partitions: &[kstate_api::TopicPartition],
    ) -> Result<kstate_api::ChangelogOffsets> {
        self.1.read_offsets(at, partitions)
    }
}

#[test]
fn the_process_id_outlives_the_process() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join(APPLICATION).join("kafka-streams-process-metadata");
    let id = || open(temporary.path()).process_id();
    let first = id();
    assert_eq!(id(), first);
    // As Kafka Streams writes it.
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("{{\"processId\":\"{first}\"}}"));
    fs::remove_file(&file).unwrap();
    assert_ne!(id(), first);

    let newer = r#"{"processId":"7bd7b8ab-7d3e-4f5c-a0ee-3e3a6b6a9b4f","version":9,"rack":{"id":"r1"}}"#;
    fs::write(&file, newer).unwrap();
    assert_eq!(id().to_string(), "7bd7b8ab-7d3e-4f5c-a0ee-3e3a6b6a9b4f");
    assert_eq!(fs::read_to_string(&file).unwrap(), newer, "a newer format is left as it is");

    let unreadable = file.with_file_name("kafka-streams-process-metadata.unreadable");
    for damage in ["", "{\"processId\":", "{\"processId\":\"no uuid\"}", "[]", "{}", "\u{0}\u{0}"] {
        fs::write(&file, damage).unwrap();
        let mut opened = None;
        let warnings = events::warnings_during(|| opened = Some(id()));
        assert!(warnings.len() == 1 && warnings[0].contains("makes no sense"), "{warnings:?}");
        assert_eq!(Some(id()), opened);
        assert_eq!(fs::read_to_string(&unreadable).unwrap(), damage, "nothing is lost");
    }
    assert!(open(temporary.path()).layout().list().unwrap().unfamiliar().is_empty());
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[cfg(unix)]
#[test]
fn ho_38_others_are_denied() {
    use std::os::unix::fs::PermissionsExt as _;

    let temporary = tempfile::tempdir().unwrap();
    let state = temporary.path().join("deep/state");
    let application = state.join(APPLICATION);
    let directory = open(&state);
    make_store(&directory, TASK, 7);
    let task = application.join("0_0");
    for path in [&state, &application, &task, &task.join("counts")] {
        assert_eq!(mode(path), 0o700, "{}", path.display());
    }
    assert_eq!(mode(&application.join(".lock")), 0o600);
    assert_eq!(mode(&application.join("kafka-streams-process-metadata")), 0o600);
    drop(directory);

    // An application's directory that was open to all is closed; what is above it may be anybody's.
    let parent_mode = mode(temporary.path());
    fs::set_permissions(&application, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap();
    let warnings = events::warnings_during(|| drop(open(&state)));
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!((mode(&application), mode(&state), mode(temporary.path())), (0o700, 0o755, parent_mode));
}

/// The directory is another user's, who lets everybody write: its permissions cannot be changed.
#[cfg(target_os = "linux")]
#[test]
fn ho_38_refused_permissions_are_a_warning_and_the_start_goes_on() {
    use std::os::unix::fs::PermissionsExt as _;

    let temporary = tempfile::tempdir().unwrap();
    let application = temporary.path().join(APPLICATION);
    fs::create_dir(&application).unwrap();
    for path in [temporary.path(), &application] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    if std::os::unix::fs::chown(&application, Some(12_345), Some(12_345)).is_err() {
        // Only a superuser can give it away.
        return;
    }
    support::run_in_namespace("true", "child_ho_38", temporary.path());
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "run in a namespace by another test"]
fn child_ho_38() {
    let state = directory_of_child();
    let mut opened = None;
    let warnings = events::warnings_during(|| opened = Some(open(&state)));
    assert!(warnings.len() == 1 && warnings[0].contains("accessible to its owner only"), "{warnings:?}");
    make_store(&opened.unwrap(), TASK, 7);
}

#[cfg(target_os = "linux")]
#[test]
fn a_read_only_file_system_is_told_and_can_be_looked_at() {
    let temporary = tempfile::tempdir().unwrap();
    {
        let directory = open(temporary.path());
        make_store(&directory, TASK, 7);
        // What a crash leaves: the file as it is while the store is open.
        let crashed = directory.lock(CRASHED).unwrap().store_directory("counts").unwrap();
        let lock = directory.lock(TASK).unwrap();
        let path = lock.store_directory("counts").unwrap();
        let store = store_in(&path, TASK);
        fs::copy(path.join("store.redb"), crashed.join("store.redb")).unwrap();
        store.close().unwrap();
    }
    let script = "mount --bind \"$KSTATE_TEST_DIRECTORY\" \"$KSTATE_TEST_DIRECTORY\" && \
                  mount -o remount,ro,bind \"$KSTATE_TEST_DIRECTORY\"";
    support::run_in_namespace(script, "child_read_only", temporary.path());
    let (directory, cache) = (open(temporary.path()), OffsetCache::new());
    let report = StartupScan::new(&topology()).run(&directory, &cache).unwrap();
    assert_eq!(report.left_out().count(), 0, "nothing was lost");
    assert_eq!(cache.get(TASK, &changelog(TASK)), Some(CachedOffset::At(offset(7))));
}

/// The task of a store that was not closed.
#[cfg(target_os = "linux")]
const CRASHED: TaskId = TaskId::new(0, 1);

#[cfg(target_os = "linux")]
#[test]
#[ignore = "run on a read-only file system by another test"]
fn child_read_only() {
    let state = directory_of_child();
    let error = StateDirectory::open(&state, APPLICATION).unwrap_err();
    assert!(error.kind() == ErrorKind::Io && error.to_string().contains("Read-only file system"), "{error}");
    let report = StartupScan::new(&topology()).look(&StateLayout::new(&state, APPLICATION).unwrap()).unwrap();
    assert_eq!(*report.task(TASK).unwrap().stores()[0].committed.as_ref().unwrap(), Some(offset(7)));
    // redb recovers what was not closed, and for that it needs the file for itself.
    let crashed = report.task(CRASHED).unwrap();
    assert_eq!(crashed.left_out(), Some(LeftOut::Unreadable));
    assert_eq!(crashed.error().unwrap().kind(), ErrorKind::Io);
}
