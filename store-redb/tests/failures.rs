//! A disk that fails: cases HO-17 to HO-21 of the project's list, where they concern redb.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};

use common::{Disk, Fault, Random, changelog, offset, source};
use kstate_api::{
    Backend, ChangelogOffsets, CommitOutcome, CursorExt, Durability, ErrorKind, KeyValueStore, ReadOnlyKeyValueStore,
    ReadOnlyKeyValueStoreExt, StagedStore, StateStore,
};
use kstate_store_redb::{RedbBackend, RedbBackends, RedbOptions, redb};

type Store = StagedStore<RedbBackend>;

fn options(durability: Durability) -> RedbOptions {
    // Every third commit is durable, so that a few commits meet both kinds.
    RedbOptions::new().durability(durability).flush_every(3, u64::MAX).cache_size(1 << 20)
}

fn open(disk: &Disk, durability: Durability) -> kstate_api::Result<Store> {
    StagedStore::open("counts", RedbBackend::open_storage(disk.clone(), &options(durability))?, &[changelog()])
}

fn commit(store: &Store, at: i64) -> kstate_api::Result<()> {
    store.commit(&ChangelogOffsets::new().with(changelog(), offset(at)))
}

/// The number that the `n`th commit writes into each of its rows, and its offset.
fn write(store: &Store, n: i64) {
    write_wide(store, n, 300);
}

fn write_wide(store: &Store, n: i64, width: usize) {
    for row in 0..50_i64 {
        store.put(&row.to_be_bytes(), format!("{n:0width$}").as_bytes()).unwrap();
    }
}

/// Which commit the store is at; none is 0. Fails if rows and offset are not of the same.
fn commit_seen(store: &Store) -> i64 {
    let rows: Vec<_> = store.all().unwrap().entries().map(Result::unwrap).collect();
    let mut numbers: Vec<i64> =
        rows.iter().map(|(_, value)| std::str::from_utf8(value).unwrap().parse().unwrap()).collect();
    numbers.dedup();
    let committed = store.committed_offset(&changelog()).unwrap().map_or(0, kstate_api::Offset::get);
    match numbers.as_slice() {
        [] => assert_eq!(committed, 0),
        [number] => assert_eq!((rows.len(), *number), (50, committed), "rows and offset disagree"),
        _ => panic!("rows of several commits: {numbers:?}"),
    }
    committed
}

/// HO-20: the n-th write or sync of a commit fails, for every n.
#[test]
fn ho_20_a_commit_over_a_failing_disk_is_all_or_nothing() {
    let first_commit = {
        let disk = Disk::new();
        let store = open(&disk, Durability::Sync).unwrap();
        write(&store, 1);
        commit(&store, 1).unwrap();
        store.close().unwrap();
        disk.bytes()
    };
    for durability in [Durability::Eventual, Durability::Sync] {
        for fault in [Fault::Error, Fault::Torn, Fault::Dead] {
            let (mut not_applied, mut unknown) = (0, 0);
            for n in 1.. {
                let disk = Disk::with(first_commit.clone());
                let store = open(&disk, durability).unwrap();
                // So much that the file has to grow, which happens before the commit.
                write_wide(&store, 2, 3000);
                disk.fail_at(n, fault);
                let first = commit(&store, 2).and_then(|()| store.flush());
                if !disk.heal() {
                    first.unwrap();
                    assert!(n > 3, "a commit writes more than {n} times");
                    break;
                }
                let error = first.unwrap_err();
                let mut possible = match error.commit_outcome() {
                    Some(CommitOutcome::NotApplied) => {
                        not_applied += 1;
                        vec![1]
                    }
                    Some(CommitOutcome::Unknown) => {
                        unknown += 1;
                        for refused in [
                            store.get(b"").map(|_| ()),
                            store.backend().get(b"").map(|_| ()),
                            store.backend().snapshot().map(|_| ()),
                            store.backend().position().map(|_| ()),
                            store.backend().durable_offset(&changelog()).map(|_| ()),
                            store.backend().flush(),
                            commit(&store, 3),
                        ] {
                            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Poisoned);
                        }
                        vec![1, 2]
                    }
                    // The flush failed, after a commit that said Ok for this process only.
                    None => vec![1, 2],
                };
                // The disk is well again; the same handle may refuse, but not lie.
                if commit(&store, 2).and_then(|()| store.flush()).is_ok() {
                    possible = vec![2];
                }
                let _ = store.close();
                drop(store);
                let store = open(&disk, durability).unwrap();
                let seen = commit_seen(&store);
                assert!(possible.contains(&seen), "{durability:?} {fault:?} at {n}: {seen} after {error:?}");
                write(&store, 4);
                commit(&store, 4).unwrap();
                store.close().unwrap();
                assert_eq!(commit_seen(&open(&disk, durability).unwrap()), 4);
            }
            assert!(not_applied > 0, "{durability:?} {fault:?}");
            // An eventual commit writes nothing that it needs; its flush does, which has no outcome.
            assert!(unknown > 0 || durability == Durability::Eventual, "{durability:?} {fault:?}");
        }
    }
}

/// The n-th write or sync of *opening* fails, for every n: of a new store, of one that was closed and of one that was
/// not. What an open leaves behind can always be opened.
#[test]
fn ho_20_an_open_over_a_failing_disk_harms_nothing() {
    let closed = Disk::new();
    let store = open(&closed, Durability::Sync).unwrap();
    write(&store, 1);
    commit(&store, 1).unwrap();
    let crashed = Disk::with(closed.bytes());
    store.close().unwrap();
    for (before, seen) in [(Disk::new(), 0), (closed, 1), (crashed, 1)] {
        for fault in [Fault::Error, Fault::Torn, Fault::Dead] {
            for n in 1.. {
                let disk = Disk::with(before.bytes());
                disk.fail_at(n, fault);
                let opened = open(&disk, Durability::Sync);
                if !disk.heal() {
                    assert_eq!(commit_seen(&opened.unwrap()), seen);
                    break;
                }
                let error = opened.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                assert_eq!(commit_seen(&open(&disk, Durability::Sync).unwrap()), seen, "{fault:?} at {n}");
            }
        }
    }
}

/// HO-17: the process and the power die at the n-th write or sync of a commit, for every n.
#[test]
fn ho_17_a_crash_in_a_commit_leaves_the_position_of_the_offset() {
    let commit_with_position = |store: &Store, n: i64| {
        write(store, n);
        store.stage_position(&source(), offset(100 + n).into()).unwrap();
        commit(store, n).and_then(|()| store.flush())
    };
    let mut random = Random(17);
    for durability in [Durability::Eventual, Durability::Sync] {
        let mut old = 0;
        for n in 1.. {
            let disk = Disk::new();
            let store = open(&disk, durability).unwrap();
            commit_with_position(&store, 1).unwrap();
            disk.fail_at(n, Fault::Dead);
            let acknowledged = commit_with_position(&store, 2).is_ok();
            // Its end is the power's.
            std::mem::forget(store);
            let store = open(&disk.after_power_loss(&mut random), durability).unwrap();
            let seen = commit_seen(&store);
            assert_eq!(store.position().unwrap().next(&source()), Some(offset(100 + seen)), "{durability:?} at {n}");
            if acknowledged {
                assert_eq!(seen, 2, "{durability:?} at {n}");
                break;
            }
            old += u32::from(seen == 1);
        }
        assert!(old > 3, "{durability:?}: only {old} commits were torn");
    }
}

/// HO-18 on a disk that is full after so many pages more, for each number of them.
#[test]
fn ho_18_a_full_disk_refuses_and_recovers() {
    for durability in [Durability::Eventual, Durability::Sync] {
        let mut refused = 0;
        for free in 0.. {
            let disk = Disk::new();
            let store = open(&disk, durability).unwrap();
            write(&store, 8);
            commit(&store, 8).unwrap();
            store.flush().unwrap();

            disk.set_free_pages(Some(free));
            // Far more than the file has room for.
            write_wide(&store, 9, 3000);
            let Err(error) = commit(&store, 9).and_then(|()| store.flush()) else { break };
            refused += 1;
            assert_eq!(error.kind(), ErrorKind::DiskFull, "{error}");
            disk.set_free_pages(None);
            // The remedy is to make room and to reopen; the old handle may refuse, but not lie.
            let retried = commit(&store, 9).and_then(|()| store.flush());
            let _ = store.close();
            drop(store);
            let store = open(&disk, durability).unwrap();
            let seen = commit_seen(&store);
            match (&retried, error.commit_outcome()) {
                (Ok(()), _) => assert_eq!(seen, 9),
                (Err(_), Some(CommitOutcome::NotApplied)) => assert_eq!(seen, 8),
                _ => assert!(seen == 8 || seen == 9),
            }
            write(&store, 9);
            commit(&store, 9).unwrap();
            store.close().unwrap();
            assert_eq!(commit_seen(&open(&disk, durability).unwrap()), 9);
        }
        assert!(refused > 10, "{durability:?}: the disk was full {refused} times only");
    }
}

/// HO-19: write until the disk is full, drop, open: while it is full, and when it is larger.
#[test]
fn ho_19_a_store_that_filled_its_disk_opens_again() {
    for durability in [Durability::Eventual, Durability::Sync] {
        for free in (40..200).step_by(7) {
            let disk = Disk::new();
            disk.set_free_pages(Some(free));
            let mut last = 0;
            let mut unknown = false;
            if let Ok(store) = open(&disk, durability) {
                let error = loop {
                    for row in 0..10 {
                        store.put(format!("{last}-{row}").as_bytes(), &[7; 3000]).unwrap();
                    }
                    match commit(&store, last + 1).and_then(|()| store.flush()) {
                        Ok(()) => last += 1,
                        Err(error) => break error,
                    }
                };
                assert_eq!(error.kind(), ErrorKind::DiskFull, "{error}");
                unknown = error.commit_outcome() != Some(CommitOutcome::NotApplied);
            }
            if let Err(error) = open(&disk, durability) {
                assert_eq!(error.kind(), ErrorKind::DiskFull, "{error}");
            }
            disk.set_free_pages(None);
            let store = open(&disk, durability).unwrap();
            let seen = store.committed_offset(&changelog()).unwrap().map_or(0, kstate_api::Offset::get);
            assert!(seen == last || unknown && seen == last + 1, "{seen} after {last}");
            let rows = i64::try_from(store.all().unwrap().entries().map(Result::unwrap).count()).unwrap();
            assert_eq!(rows, 10 * seen);
        }
    }
}

/// HO-21: a panic of the store's user, which drops the store while it unwinds.
#[test]
fn ho_21_a_store_dropped_by_a_panic_is_not_marked_clean() {
    for durability in [Durability::Eventual, Durability::Sync] {
        let temporary = tempfile::tempdir().unwrap();
        let open = || {
            let backend = RedbBackend::open(temporary.path(), &options(durability)).unwrap();
            StagedStore::open("counts", backend, &[changelog()]).unwrap()
        };
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let store = open();
            write(&store, 1);
            commit(&store, 1).unwrap();
            store.flush().unwrap();
            write(&store, 2);
            let reading = store.backend().get_with(&0_i64.to_be_bytes(), &mut |_| panic!("of the user, while reading"));
            panic!("not reached: {reading:?}");
        }));
        assert!(panicked.is_err());
        let file = temporary.path().join("store.redb");
        let clean = redb::ReadOnlyDatabase::open(&file);
        assert!(matches!(clean, Err(redb::DatabaseError::RepairAborted)), "it is marked clean");
        let store = open();
        assert_eq!(commit_seen(&store), 1);
        write(&store, 3);
        commit(&store, 3).unwrap();
        store.close().unwrap();
        assert!(redb::ReadOnlyDatabase::open(&file).is_ok(), "a close marks it clean");
        assert_eq!(commit_seen(&open()), 3);
    }
}

/// The power fails at a random moment, and the disk keeps any part of what was not synced (clause O6).
#[test]
fn a_power_loss_leaves_a_whole_commit() {
    let mut random = Random(0x5EED);
    for trial in 0..150 {
        let durability = if random.coin() { Durability::Sync } else { Durability::Eventual };
        let disk = Disk::new();
        let mut acknowledged = 0;
        let mut durable = 0;
        disk.fail_at(1 + random.next() % 60, Fault::Dead);
        if let Ok(store) = open(&disk, durability) {
            for n in 1..20 {
                write(&store, n);
                if commit(&store, n).is_err() {
                    break;
                }
                acknowledged = n;
                let claimed = store.durable_offset(&changelog());
                durable = claimed.unwrap().map_or(0, kstate_api::Offset::get);
            }
            // Its end is the power's.
            std::mem::forget(store);
        }
        let disk = disk.after_power_loss(&mut random);
        let store = open(&disk, durability).unwrap();
        let seen = commit_seen(&store);
        assert!((durable..=acknowledged + 1).contains(&seen), "trial {trial}: {seen} of {durable}..={acknowledged}");
        if durability == Durability::Sync {
            assert!(seen >= acknowledged, "trial {trial}: {seen} of {acknowledged}");
        }
    }
}

#[test]
fn a_supplier_reports_what_it_meets() {
    use kstate_api::BackendSupplier;
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("file");
    std::fs::write(&file, "no directory").unwrap();
    let backends = RedbBackends::new(RedbOptions::new());
    assert_eq!(backends.open(&file).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(backends.read_offsets(&file, &[changelog()]).unwrap_err().kind(), ErrorKind::Io);
}
