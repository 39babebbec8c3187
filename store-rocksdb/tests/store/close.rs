//! Closing, locks, and what outlives its store.
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use crate::common::{LEVELS, all, batch, changelog, crashed, crashed_in, files, offset, open, options, rows};
use kstate_api::{
    Backend, Cursor, CursorExt, Durability, ErrorKind, KeyRange, Order, ReadOnlyKeyValueStore, ReadOnlyKeyValueStoreExt,
};
use kstate_store_rocksdb::RocksDbBackend;

fn assert_closed<T: std::fmt::Debug>(result: kstate_api::Result<T>) {
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn close_releases_the_lock_while_cursors_and_snapshots_live() {
    let directory = tempfile::tempdir().unwrap();
    for durability in LEVELS {
        let backend = open(directory.path(), durability);
        backend.apply(&batch(&[("a", "1"), ("b", "2"), ("c", "3")], 2)).unwrap();
        let mut cursor = backend.all().unwrap();
        assert!(cursor.advance().unwrap());
        let mut empty = backend.scan(&KeyRange::between(b"z", b"a"), Order::Ascending).unwrap();
        assert!(!empty.advance().unwrap());
        let snapshot = backend.snapshot().unwrap();
        let mut pinned = snapshot.all().unwrap();
        assert!(pinned.advance().unwrap());
        backend.close().unwrap();

        let reopened = open(directory.path(), durability);
        assert_eq!(all(&reopened), rows(&[("a", "1"), ("b", "2"), ("c", "3")]));
        for cursor in [&mut cursor, &mut empty, &mut pinned] {
            for _ in 0..2 {
                assert_closed(cursor.advance());
                assert_eq!(cursor.row(), None);
            }
        }
        assert_closed(snapshot.get(b"a"));
        assert_closed(snapshot.all());
        assert_closed(snapshot.committed_offset(&changelog()));
        assert_closed(snapshot.position());
        assert_closed(snapshot.approximate_num_entries());
        reopened.wipe().unwrap();
    }
}

#[test]
fn after_close_everything_is_closed_and_closing_again_is_fine() {
    let directory = tempfile::tempdir().unwrap();
    let backend = open(directory.path(), Durability::Process);
    backend.close().unwrap();
    backend.close().unwrap();
    assert_closed(backend.get(b"a"));
    assert_closed(backend.all());
    assert_closed(backend.apply(&batch(&[("a", "1")], 0)));
    assert_closed(backend.committed_offset(&changelog()));
    assert_closed(backend.durable_offset(&changelog()));
    assert_closed(backend.position());
    assert_closed(backend.snapshot());
    assert_closed(backend.flush());
    assert_closed(backend.wipe());
    assert_closed(backend.approximate_num_entries());
    assert_closed(backend.property("rocksdb.stats"));
}

/// Readers in other threads are stopped wherever they are, and the lock is free when `close` returns.
#[test]
fn close_stops_readers_in_other_threads() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let backend = open(directory.path(), Durability::Eventual);
        let records: Vec<_> = (0..1000).map(|n| format!("{n:04}")).collect();
        let records: Vec<_> = records.iter().map(|key| (key.as_str(), "value")).collect();
        backend.apply(&batch(&records, round)).unwrap();
        let snapshot = backend.snapshot().unwrap();
        let started = AtomicBool::new(false);
        thread::scope(|scope| {
            let reader = scope.spawn(|| {
                loop {
                    let walk = || -> kstate_api::Result<()> {
                        let mut cursor = snapshot.all()?;
                        let mut count = 0;
                        while cursor.next_row()?.is_some() {
                            count += 1;
                            started.store(true, Ordering::Release);
                        }
                        assert_eq!(count, 1000, "a result that only looks complete");
                        Ok(())
                    };
                    if let Err(error) = walk() {
                        break error.kind();
                    }
                }
            });
            while !started.load(Ordering::Acquire) {
                thread::yield_now();
            }
            backend.close().unwrap();
            open(directory.path(), Durability::Eventual);
            assert_eq!(reader.join().unwrap(), ErrorKind::Closed);
        });
    }
}

#[test]
fn a_store_has_one_owner_whatever_name_it_is_called_by() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("store");
    let owner = open(&directory, Durability::Process);
    let locked = |path: &std::path::Path| RocksDbBackend::open(path, &options(Durability::Process)).unwrap_err().kind();
    assert_eq!(locked(&directory), ErrorKind::Locked);
    assert_eq!(locked(&parent.path().join(".").join("store").join("..").join("store")), ErrorKind::Locked);
    #[cfg(unix)]
    {
        let link = parent.path().join("link");
        std::os::unix::fs::symlink(&directory, &link).unwrap();
        assert_eq!(locked(&link), ErrorKind::Locked);
    }
    owner.apply(&batch(&[("a", "1")], 0)).unwrap();
    drop(owner);
    assert_eq!(all(&open(&directory, Durability::Process)), rows(&[("a", "1")]));
}

#[test]
fn a_store_open_in_another_process_is_locked() {
    let mut owner = None;
    let prepare = || {
        let directory = tempfile::tempdir().unwrap();
        owner = Some(open(directory.path(), Durability::Process));
        directory
    };
    let test = "close::a_store_open_in_another_process_is_locked";
    let directory = crashed_in(test, Durability::Process, prepare, |directory, durability| {
        let error = RocksDbBackend::open(directory, &options(durability)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
    });
    owner.take().unwrap().apply(&batch(&[("a", "1")], 0)).unwrap();
    drop(owner);
    assert_eq!(all(&open(directory.path(), Durability::Process)), rows(&[("a", "1")]));
}

#[test]
fn the_lock_of_a_dead_process_is_free() {
    let test = "close::the_lock_of_a_dead_process_is_free";
    let directory = crashed(test, Durability::Process, |directory, durability| {
        open(directory, durability).apply(&batch(&[("a", "1")], 0)).unwrap();
        std::mem::forget(open(directory, durability));
    });
    assert_eq!(all(&open(directory.path(), Durability::Process)), rows(&[("a", "1")]));
}

#[test]
fn a_clean_close_leaves_no_log_to_replay() {
    for durability in LEVELS {
        let directory = tempfile::tempdir().unwrap();
        let backend = open(directory.path(), durability);
        backend.apply(&batch(&[("a", "1")], 0)).unwrap();
        backend.close().unwrap();
        let logged: usize = files(directory.path())
            .iter()
            .filter(|(path, _)| path.extension().is_some_and(|extension| extension == "log"))
            .map(|(_, bytes)| bytes.len())
            .sum();
        assert_eq!(logged, 0, "{durability:?}");
    }
}

#[test]
fn ho_21_a_store_dropped_while_panicking_shows_the_last_commit() {
    for durability in LEVELS {
        let directory = tempfile::tempdir().unwrap();
        let backend = open(directory.path(), durability);
        backend.apply(&batch(&[("a", "1")], 7)).unwrap();
        backend.flush().unwrap();
        let panicked = catch_unwind(AssertUnwindSafe(move || {
            let _cursor = backend.all().unwrap();
            backend.apply(&batch(&[("b", "2")], 8)).unwrap();
            panic!("in user code");
        }));
        assert!(panicked.is_err());
        let backend = open(directory.path(), durability);
        assert_eq!(all(&backend), rows(&[("a", "1"), ("b", "2")]));
        assert_eq!(backend.committed_offset(&changelog()).unwrap(), Some(offset(8)));
    }
}
