//! Cases HO-18 and HO-19 on a file system that is really full: a small tmpfs in a mount namespace of its own.
//!
//! `failures.rs` has the same cases on a disk in memory, which runs everywhere. Where namespaces or mounts are not
//! allowed, these say on standard error that they were skipped; `KSTATE_REQUIRE_TMPFS=1` makes that a failure.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use common::{changelog, offset};
use kstate_api::{
    ChangelogOffsets, CommitOutcome, CursorExt, ErrorKind, KeyValueStore, Offset, ReadOnlyKeyValueStoreExt,
    StagedStore, StateStore,
};
use kstate_store_redb::{RedbBackend, RedbOptions};

const DIRECTORY: &str = "KSTATE_TEST_TMPFS";

/// Runs the ignored test `case` of this program where `KSTATE_TEST_TMPFS` names a tmpfs of 4 MiB.
fn run_on_small_tmpfs(case: &str) {
    let mount_point = tempfile::tempdir().unwrap();
    let in_namespace = |script: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).env(DIRECTORY, mount_point.path());
        unshare
    };
    let mount = format!("mount -t tmpfs -o size=4m tmpfs \"${DIRECTORY}\"");
    let allowed = in_namespace(&mount).output();
    if !allowed.as_ref().is_ok_and(|output| output.status.success()) {
        let why =
            allowed.map_or_else(|error| error.to_string(), |output| String::from_utf8_lossy(&output.stderr).into());
        assert!(env::var_os("KSTATE_REQUIRE_TMPFS").is_none(), "cannot mount a tmpfs: {why}");
        // Not by a macro, which the test harness would swallow.
        let mut stderr = std::io::stderr();
        writeln!(stderr, "SKIPPED: {case} on a full file system: cannot mount a tmpfs: {}", why.trim()).unwrap();
        return;
    }
    let program = env::current_exe().unwrap();
    let run = in_namespace(&format!("{mount} && exec \"$0\" --exact {case} --ignored --nocapture"))
        .arg(&program)
        .output()
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

fn tmpfs() -> PathBuf {
    env::var_os(DIRECTORY).unwrap().into()
}

fn open(directory: &Path) -> kstate_api::Result<StagedStore<RedbBackend>> {
    StagedStore::open("counts", RedbBackend::open(directory, &RedbOptions::new())?, &[changelog()])
}

fn commit(store: &impl StateStore, at: i64) -> kstate_api::Result<()> {
    store.commit(&ChangelogOffsets::new().with(changelog(), offset(at)))
}

fn committed(store: &impl StateStore) -> i64 {
    store.committed_offset(&changelog()).unwrap().map_or(-1, Offset::get)
}

/// Takes all the room there is.
fn fill() -> PathBuf {
    let path = tmpfs().join("filler");
    let mut filler = fs::File::create(&path).unwrap();
    let error = loop {
        if let Err(error) = filler.write_all(&[1; 4096]) {
            break error;
        }
    };
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    path
}

#[test]
fn ho_18_a_full_file_system_refuses_and_recovers() {
    run_on_small_tmpfs("child_ho_18");
}

#[test]
#[ignore = "run on a small tmpfs by another test"]
fn child_ho_18() {
    let directory = tmpfs().join("store");
    let store = open(&directory).unwrap();
    store.put(b"k8", &[8; 1000]).unwrap();
    commit(&store, 8).unwrap();
    let filler = fill();
    store.put(b"k9", &vec![9; 500_000]).unwrap();
    let error = commit(&store, 9).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DiskFull, "{error}");
    fs::remove_file(filler).unwrap();
    // The old handle may refuse, but not lie; the remedy is to reopen.
    let retried = commit(&store, 9);
    let _ = store.close();
    drop(store);
    let store = open(&directory).unwrap();
    let k9 = store.get(b"k9").unwrap();
    assert_eq!(k9.is_some(), committed(&store) == 9);
    if retried.is_ok() {
        assert_eq!(committed(&store), 9);
    } else if error.commit_outcome() == Some(CommitOutcome::NotApplied) {
        assert_eq!(committed(&store), 8);
    }
    store.put(b"k9", &vec![9; 500_000]).unwrap();
    commit(&store, 9).unwrap();
    store.close().unwrap();
    let store = open(&directory).unwrap();
    assert_eq!((committed(&store), store.get(b"k9").unwrap().unwrap().len()), (9, 500_000));
    assert_eq!(store.get(b"k8").unwrap().unwrap().len(), 1000);
}

#[test]
fn ho_19_a_store_that_filled_its_file_system_opens_again() {
    run_on_small_tmpfs("child_ho_19");
}

#[test]
#[ignore = "run on a small tmpfs by another test"]
fn child_ho_19() {
    let directory = tmpfs().join("store");
    let store = open(&directory).unwrap();
    let mut last = 0;
    let error = loop {
        store.put(last.to_string().as_bytes(), &vec![7; 50_000]).unwrap();
        match commit(&store, last + 1) {
            Ok(()) => last += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::DiskFull, "{error}");
    assert!(last > 10);
    drop(store);
    // While it is still full: opened, or a typed refusal.
    if let Err(error) = open(&directory) {
        assert_eq!(error.kind(), ErrorKind::DiskFull, "{error}");
    }
    let enlarged = Command::new("mount").args(["-o", "remount,size=16m"]).arg(tmpfs()).status().unwrap();
    assert!(enlarged.success());
    let store = open(&directory).unwrap();
    let seen = committed(&store);
    assert!(seen == last || error.commit_outcome() == Some(CommitOutcome::Unknown) && seen == last + 1);
    assert_eq!(i64::try_from(store.all().unwrap().entries().map(Result::unwrap).count()).unwrap(), seen);
    store.put(b"more", &vec![7; 500_000]).unwrap();
    commit(&store, 1000).unwrap();
}

/// A new store finds no room at all.
#[test]
fn a_new_store_on_a_full_file_system_is_refused_and_opens_later() {
    run_on_small_tmpfs("child_new_store");
}

#[test]
#[ignore = "run on a small tmpfs by another test"]
fn child_new_store() {
    let directory = tmpfs().join("store");
    let filler = fill();
    assert_eq!(open(&directory).unwrap_err().kind(), ErrorKind::DiskFull);
    // The directory's own entry may need a page; leave none for the file.
    fs::remove_file(filler).unwrap();
    fs::create_dir_all(&directory).unwrap();
    let filler = fill();
    for _ in 0..2 {
        assert_eq!(open(&directory).unwrap_err().kind(), ErrorKind::DiskFull);
    }
    fs::remove_file(filler).unwrap();
    let store = open(&directory).unwrap();
    assert_eq!(committed(&store), -1);
    commit(&store, 1).unwrap();
}
