//! What is particular to this backend: locks, files, caches and levels of durability.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use common::{changelog, offset};
use kstate_api::{
    Backend, BackendSupplier, Bytes, CursorExt, Durability, ErrorKind, Offset, ReadOnlyKeyValueStoreExt,
    TopicPartition, WriteBatch,
};
use kstate_store_redb::{CacheBudget, RedbBackend, RedbBackends, RedbOptions};

fn batch(rows: impl IntoIterator<Item = u32>, value: &str, at: i64) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for n in rows {
        batch.put(Bytes::copy_from_slice(&n.to_be_bytes()), value.to_owned());
    }
    batch.set_offset(changelog(), offset(at));
    batch
}

fn open(directory: &Path) -> RedbBackend {
    RedbBackend::open(directory, &RedbOptions::new()).unwrap()
}

fn file_len(directory: &Path) -> u64 {
    directory.join("store.redb").metadata().unwrap().len()
}

#[test]
fn a_close_frees_the_directory_from_under_live_cursors_and_snapshots() {
    for drop_it in [false, true] {
        let temporary = tempfile::tempdir().unwrap();
        let backend = open(temporary.path());
        // More than a page, so that a cursor has to read on after the close.
        backend.apply(&batch(0..1000, &"v".repeat(100), 1)).unwrap();
        let snapshot = backend.snapshot().unwrap();
        let (mut started, mut fresh) = (backend.all().unwrap(), snapshot.all().unwrap());
        assert!(started.advance().unwrap());
        if drop_it {
            drop(backend);
        } else {
            backend.close().unwrap();
            backend.close().unwrap();
            assert_eq!(backend.get(b"").unwrap_err().kind(), ErrorKind::Closed);
            assert_eq!(backend.apply(&batch(0..1, "w", 2)).unwrap_err().kind(), ErrorKind::Closed);
            assert_eq!(backend.wipe().unwrap_err().kind(), ErrorKind::Closed);
            assert_eq!(backend.flush().unwrap_err().kind(), ErrorKind::Closed);
            assert_eq!(backend.durable_offset(&changelog()).unwrap_err().kind(), ErrorKind::Closed);
        }
        let again = open(temporary.path());
        for _ in 0..2 {
            assert_eq!(started.advance().unwrap_err().kind(), ErrorKind::Closed);
            assert_eq!(fresh.advance().unwrap_err().kind(), ErrorKind::Closed);
        }
        assert!(started.row().is_none());
        assert_eq!(snapshot.get(b"").unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(snapshot.all().unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(snapshot.committed_offset(&changelog()).unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(again.all().unwrap().entries().count(), 1000);
    }
}

/// The other side of `a_directory_has_one_owner`.
#[test]
#[ignore = "run in a process of its own by another test"]
fn child_owns_a_directory() {
    let backend = open(Path::new(&env::var_os("KSTATE_TEST_DIRECTORY").unwrap()));
    backend.apply(&batch(0..10, "of the child", 4)).unwrap();
    println!("\nready");
    std::io::stdout().flush().unwrap();
    // Until it is killed.
    loop {
        thread::sleep(Duration::from_secs(1));
    }
}

#[test]
fn a_directory_has_one_owner() {
    let temporary = tempfile::tempdir().unwrap();
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "child_owns_a_directory", "--ignored", "--nocapture"])
        .env("KSTATE_TEST_DIRECTORY", temporary.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "ready"));
    let backends = RedbBackends::new(RedbOptions::new());
    let refusals = [
        backends.open(temporary.path()).map(|_| ()),
        backends.read_offsets(temporary.path(), &[changelog()]).map(|_| ()),
    ];
    child.kill().unwrap();
    child.wait().unwrap();
    for refused in refusals {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Locked);
    }
    // A dead owner's lock is free, and what it committed is there.
    assert_eq!(backends.read_offsets(temporary.path(), &[changelog()]).unwrap().get(&changelog()), Some(offset(4)));
    let backend = open(temporary.path());
    assert_eq!(backend.get(&[0; 4]).unwrap().unwrap(), "of the child");
    assert_eq!(RedbBackend::open(temporary.path(), &RedbOptions::new()).unwrap_err().kind(), ErrorKind::Locked);
}

/// Reading the whole file after a kill takes time that grows with it.
#[test]
fn a_crash_needs_no_repair_of_the_whole_file() {
    for durability in [Durability::Sync, Durability::Eventual] {
        let temporary = tempfile::tempdir().unwrap();
        let repaired = Arc::new(AtomicBool::new(false));
        let options = {
            let repaired = Arc::clone(&repaired);
            RedbOptions::new().durability(durability).flush_every(2, u64::MAX).configure(move |builder| {
                let repaired = Arc::clone(&repaired);
                builder.set_repair_callback(move |_| repaired.store(true, Ordering::Release));
            })
        };
        let (directory, copy) = (temporary.path().join("store"), temporary.path().join("copy"));
        std::fs::create_dir(&copy).unwrap();
        let backend = RedbBackend::open(&directory, &options).unwrap();
        for n in 1..=6 {
            backend.apply(&batch(0..100, "v", n)).unwrap();
            std::fs::copy(directory.join("store.redb"), copy.join("store.redb")).unwrap();
            let crashed = RedbBackend::open(&copy, &options).unwrap();
            let expected = if durability == Durability::Sync { n } else { n - n % 2 };
            let committed = crashed.committed_offset(&changelog()).unwrap();
            assert_eq!(committed, Some(expected).filter(|n| *n > 0).map(offset));
        }
        assert!(!repaired.load(Ordering::Acquire), "{durability:?}");
    }
}

#[test]
fn a_level_is_a_minimum_and_reported() {
    for (asked, given) in [
        (Durability::Eventual, Durability::Eventual),
        (Durability::Process, Durability::Sync),
        (Durability::Sync, Durability::Sync),
    ] {
        let temporary = tempfile::tempdir().unwrap();
        let backend = RedbBackend::open(temporary.path(), &RedbOptions::new().durability(asked)).unwrap();
        assert_eq!(backend.capabilities().durability(), Some(given));
        assert!(RedbBackends::new(RedbOptions::new().durability(asked)).persistent());
    }
}

#[test]
fn every_commit_is_durable_by_default() {
    let temporary = tempfile::tempdir().unwrap();
    let backend = open(temporary.path());
    assert_eq!(backend.durable_offset(&changelog()).unwrap(), None);
    backend.apply(&batch(0..1, "v", 5)).unwrap();
    assert_eq!(backend.durable_offset(&changelog()).unwrap(), Some(offset(5)));
}

/// What `durable_offset` says, against a copy of the file as it is.
#[test]
fn eventual_commits_are_durable_in_time() {
    let temporary = tempfile::tempdir().unwrap();
    let (directory, copy) = (temporary.path().join("store"), temporary.path().join("copy"));
    let options = RedbOptions::new().durability(Durability::Eventual).flush_every(4, 4000);
    let backend = RedbBackend::open(&directory, &options).unwrap();
    let mut seen = Vec::new();
    let mut observe = |backend: &RedbBackend| {
        std::fs::create_dir_all(&copy).unwrap();
        std::fs::copy(directory.join("store.redb"), copy.join("store.redb")).unwrap();
        let offsets = RedbBackends::new(RedbOptions::new()).read_offsets(&copy, &[changelog()]).unwrap();
        assert_eq!(backend.durable_offset(&changelog()).unwrap(), offsets.get(&changelog()));
        seen.push(offsets.get(&changelog()).map(Offset::get));
    };
    for n in 1..=5 {
        backend.apply(&batch(0..1, "small", n)).unwrap();
        assert_eq!(backend.committed_offset(&changelog()).unwrap(), Some(offset(n)));
        observe(&backend);
    }
    // The fourth was made durable by count; this one is by size.
    backend.apply(&batch(0..1, &"large".repeat(1000), 6)).unwrap();
    observe(&backend);
    backend.apply(&batch(0..1, "small", 7)).unwrap();
    observe(&backend);
    backend.flush().unwrap();
    observe(&backend);
    backend.apply(&batch(0..1, "small", 8)).unwrap();
    observe(&backend);
    let none = None;
    assert_eq!(seen, [none, none, none, Some(4), Some(4), Some(6), Some(6), Some(7), Some(7)]);
    backend.close().unwrap();
    let backend = RedbBackend::open(&directory, &options).unwrap();
    assert_eq!(backend.committed_offset(&changelog()).unwrap(), Some(offset(8)), "a close flushes");
    assert_eq!(backend.durable_offset(&changelog()).unwrap(), Some(offset(8)));
    backend.apply(&batch(0..1, "small", 9)).unwrap();
    backend.wipe().unwrap();
    assert_eq!(backend.durable_offset(&changelog()).unwrap(), None, "a wipe is durable");
    drop(backend);
    assert_eq!(RedbBackend::open(&directory, &options).unwrap().committed_offset(&changelog()).unwrap(), None);
}

#[test]
fn a_wipe_leaves_nothing_and_its_room_is_used_again() {
    let temporary = tempfile::tempdir().unwrap();
    let backend = open(temporary.path());
    let value = "v".repeat(1000);
    let mut full = batch(0..5000, &value, 1);
    full.set_position(TopicPartition::new("source", 0), offset(3));
    backend.apply(&full).unwrap();
    let full_len = file_len(temporary.path());
    let snapshot = backend.snapshot().unwrap();
    backend.wipe().unwrap();
    assert_eq!(backend.all().unwrap().entries().count(), 0);
    assert_eq!(backend.committed_offset(&changelog()).unwrap(), None);
    assert!(backend.position().unwrap().is_empty());
    assert_eq!(snapshot.all().unwrap().entries().count(), 5000, "a snapshot keeps its commit over a wipe");
    drop(snapshot);
    // What the snapshot held is free from the next commit on.
    backend.apply(&batch(0..1, "small", 2)).unwrap();
    for n in 0..5 {
        backend.apply(&full).unwrap();
        assert!(file_len(temporary.path()) <= full_len * 5 / 4, "round {n}");
        backend.wipe().unwrap();
    }
    backend.close().unwrap();
    assert!(file_len(temporary.path()) <= full_len, "a close trims the file");
    assert_eq!(open(temporary.path()).all().unwrap().entries().count(), 0);
}

/// A commit must find the pages of the one before free, although gets between them share a view.
#[test]
fn reads_between_commits_do_not_make_the_file_grow() {
    let len_after = |reads: bool| {
        let temporary = tempfile::tempdir().unwrap();
        let backend = open(temporary.path());
        for n in 0..20 {
            backend.apply(&batch(0..2000, &format!("{n:0500}"), n)).unwrap();
            if reads {
                assert_eq!(backend.get(&[0; 4]).unwrap().unwrap(), format!("{n:0500}"));
            }
        }
        file_len(temporary.path())
    };
    assert_eq!(len_after(true), len_after(false));
}

/// Views are shared by readers and replaced by commits: nobody may see half of one, or an old one after a newer one.
#[test]
fn readers_see_whole_commits_in_their_order() {
    let temporary = tempfile::tempdir().unwrap();
    let options = RedbOptions::new().durability(Durability::Eventual).flush_every(10, u64::MAX);
    let backend = Arc::new(RedbBackend::open(temporary.path(), &options).unwrap());
    backend.apply(&batch(0..100, "0", 0)).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let readers = [0, 1, 2].map(|_| {
        let (backend, done) = (Arc::clone(&backend), Arc::clone(&done));
        thread::spawn(move || {
            let (mut last, mut commits) = (0, 0);
            while !done.load(Ordering::Acquire) {
                let snapshot = backend.snapshot().unwrap();
                let committed = snapshot.committed_offset(&changelog()).unwrap().unwrap().get();
                let mut values: Vec<_> = snapshot.all().unwrap().entries().map(|row| row.unwrap().1).collect();
                values.dedup();
                assert_eq!(values, [committed.to_string()]);
                assert!(committed >= last, "{committed} after {last}");
                commits += i64::from(committed > last);
                last = committed;
                let seen = backend.get(&[0; 4]).unwrap().unwrap();
                assert!(std::str::from_utf8(&seen).unwrap().parse::<i64>().unwrap() >= last);
            }
            commits
        })
    });
    for n in 1..=100 {
        backend.apply(&batch(0..100, &n.to_string(), n)).unwrap();
        assert_eq!(backend.get(&[0; 4]).unwrap().unwrap(), n.to_string(), "the writer sees its commit");
    }
    done.store(true, Ordering::Release);
    let commits: Vec<_> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
    assert!(commits.iter().all(|commits| *commits > 0), "{commits:?}");
}

#[test]
fn a_budget_is_shared_out_and_given_back() {
    let temporary = tempfile::tempdir().unwrap();
    let budget = CacheBudget::new(8 << 20, 2);
    let backends = RedbBackends::new(RedbOptions::new().cache_budget(&budget));
    let (first, second) = (temporary.path().join("1"), temporary.path().join("2"));
    let stores = [backends.open(&first).unwrap(), backends.open(&second).unwrap()];
    assert_eq!(budget.granted_bytes(), 8 << 20);
    assert_eq!(backends.open(&first).unwrap_err().kind(), ErrorKind::Locked);
    backends.read_offsets(&second, &[]).unwrap_err();
    assert_eq!(budget.granted_bytes(), 8 << 20, "a failed open keeps nothing");
    stores[0].close().unwrap();
    assert_eq!(budget.granted_bytes(), 4 << 20);
    drop(stores);
    assert_eq!(budget.granted_bytes(), 0);
}

#[test]
fn the_raw_builder_has_the_last_word_but_not_on_ownership() {
    let temporary = tempfile::tempdir().unwrap();
    let asked = Arc::new(AtomicBool::new(false));
    let options = {
        let asked = Arc::clone(&asked);
        RedbOptions::new().configure(move |builder| {
            asked.store(true, Ordering::Release);
            builder.set_concurrency_mode(kstate_store_redb::redb::ConcurrencyMode::MultiWriter);
        })
    };
    let _owner = RedbBackend::open(temporary.path(), &options).unwrap();
    assert!(asked.load(Ordering::Acquire));
    assert_eq!(RedbBackend::open(temporary.path(), &options).unwrap_err().kind(), ErrorKind::Locked);
}

#[test]
fn positions_merge_and_offsets_are_forgotten_with_them() {
    let temporary = tempfile::tempdir().unwrap();
    let backend = open(temporary.path());
    let (source, other) = (TopicPartition::new("source", 0), TopicPartition::new("source", 1));
    let mut first = batch(0..1, "v", 1);
    first.set_position(source.clone(), offset(10));
    first.set_position(other.clone(), offset(20));
    backend.apply(&first).unwrap();
    let mut second = WriteBatch::new();
    second.set_position(source.clone(), offset(5));
    backend.apply(&second).unwrap();
    let position = backend.position().unwrap();
    assert_eq!((position.next(&source), position.next(&other)), (Some(offset(5)), Some(offset(20))));

    let mut invalid = batch(0..1, "never", 9);
    invalid.set_position(TopicPartition::new("no topic", 0), offset(1));
    assert_eq!(backend.apply(&invalid).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(backend.committed_offset(&changelog()).unwrap(), Some(offset(1)));

    let mut forget = WriteBatch::new();
    forget.forget_offsets();
    forget.set_offset(TopicPartition::new("new", 0), offset(3));
    forget.set_position(other.clone(), offset(1));
    backend.apply(&forget).unwrap();
    assert_eq!(backend.committed_offset(&changelog()).unwrap(), None);
    assert_eq!(backend.committed_offset(&TopicPartition::new("new", 0)).unwrap(), Some(offset(3)));
    let position = backend.position().unwrap();
    assert_eq!((position.next(&source), position.next(&other)), (None, Some(offset(1))));
    assert_eq!(backend.get(&[0; 4]).unwrap().unwrap(), "v");
}
