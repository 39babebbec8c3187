//! Writes that fail in the middle, at a byte of our choice: the system lets no file grow beyond a limit. What comes of
//! a write that would is the process's choice too: an error, or its death.
//!
//! The limit holds for a whole process, so each case runs in one of its own.
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use kstate_api::{Backend, CommitOutcome, Durability, Error, ErrorKind, ReadOnlyKeyValueStoreExt, WriteBatch};
use kstate_store_rocksdb::{RocksDbBackend, RocksDbOptions};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::common::{LEVELS, batch, changelog, crashed_in, offset, options, source};

/// So large that its record in the log, or its table, is larger than any other file that a commit writes to.
const VALUE: usize = 100 << 10;
/// Where a write is torn: in steps of this many bytes.
const STEP: usize = 13_007;

fn limit_files(bytes: Option<u64>) {
    setrlimit(Resource::Fsize, Rlimit { current: bytes, ..getrlimit(Resource::Fsize) }).unwrap();
}

fn quiet(durability: Durability) -> RocksDbOptions {
    // The engine's log for people is a file as well; none of what it would say is missed.
    options(durability).configure(|options| options.set_log_level(kstate_store_rocksdb::rocksdb::LogLevel::Fatal))
}

fn open(directory: &Path, durability: Durability) -> RocksDbBackend {
    RocksDbBackend::open(directory, &quiet(durability)).unwrap()
}

/// The `n`th commit: its number in two records, its offset and its position.
fn commit(n: i64) -> WriteBatch {
    let mut commit = batch(&[("a", &n.to_string()), ("z", &n.to_string())], n);
    commit.put("large", vec![b'0' + u8::try_from(n).unwrap(); VALUE]);
    commit.set_position(source(), offset(100 + n));
    commit
}

/// Which commit the store is at. Fails if records, offset and position are not of the same.
fn commit_seen(backend: &RocksDbBackend) -> i64 {
    let n = backend.committed_offset(&changelog()).unwrap().unwrap().get();
    for key in [b"a", b"z"] {
        assert_eq!(backend.get(key).unwrap().unwrap(), n.to_string(), "a record and the offset disagree");
    }
    assert_eq!(backend.get(b"large").unwrap().unwrap(), vec![b'0' + u8::try_from(n).unwrap(); VALUE]);
    assert_eq!(backend.position().unwrap().next(&source()), Some(offset(100 + n)), "position and offset disagree");
    n
}

/// How large files may get so that the next commit, or its flush, is torn after `bytes` bytes.
fn limit_after(directory: &Path, durability: Durability, bytes: usize) -> u64 {
    // What goes to a table goes to a new file.
    let written = if durability == Durability::Eventual { 0 } else { log_len(directory) };
    written + bytes as u64
}

fn log_len(directory: &Path) -> u64 {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let logs = files.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
    logs.map(|log| fs::metadata(log).unwrap().len()).max().unwrap()
}

/// The `n`th write fails in its middle, for every step of it: what the store answers then, and what a reopen finds.
#[test]
fn ho_20_a_commit_over_a_failing_disk_is_all_or_nothing() {
    for durability in LEVELS {
        let root = crashed_in(
            "torn_write::ho_20_a_commit_over_a_failing_disk_is_all_or_nothing",
            durability,
            || tempfile::tempdir().unwrap(),
            |root, durability| {
                // Instead of death, which is the default.
                signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default()).unwrap();
                let torn = (0..).map_while(|n| torn_commit(root, durability, n * STEP));
                let outcomes: Vec<_> = torn.map(|error| format!("{:?}", error.commit_outcome())).collect();
                fs::write(root.join("outcomes"), outcomes.join("\n")).unwrap();
            },
        );
        let outcomes = fs::read_to_string(root.path().join("outcomes")).unwrap();
        assert!(outcomes.lines().count() > VALUE / STEP, "{durability:?}: too few commits failed: {outcomes}");
        // An eventual commit writes nothing that it needs; its flush does, which has no outcome.
        let expected = if durability == Durability::Eventual { "None" } else { "Some(Unknown)" };
        assert!(outcomes.lines().any(|outcome| outcome == expected), "{durability:?}: {outcomes}");
    }
}

/// Tears the second commit of a store after `bytes` bytes. Its error if it failed.
fn torn_commit(root: &Path, durability: Durability, bytes: usize) -> Option<Error> {
    let directory = root.join(bytes.to_string());
    let backend = open(&directory, durability);
    backend.apply(&commit(1)).unwrap();
    backend.flush().unwrap();

    limit_files(Some(limit_after(&directory, durability, bytes)));
    let first = backend.apply(&commit(2)).and_then(|()| backend.flush());
    limit_files(None);
    let error = first.err()?;
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    let mut possible = match error.commit_outcome() {
        Some(CommitOutcome::NotApplied) => vec![1],
        Some(CommitOutcome::Unknown) => {
            for refused in [backend.apply(&commit(2)), backend.flush(), backend.wipe()] {
                assert_eq!(refused.unwrap_err().kind(), ErrorKind::Poisoned);
            }
            vec![1, 2]
        }
        // The flush failed, after a commit that said Ok for this process only.
        None => vec![1, 2],
    };
    // The disk is well again; the same handle may refuse, but not lie.
    if backend.apply(&commit(2)).and_then(|()| backend.flush()).is_ok() {
        possible = vec![2];
    }
    let _ = backend.close();
    drop(backend);
    let backend = open(&directory, durability);
    let seen = commit_seen(&backend);
    assert!(possible.contains(&seen), "{durability:?} at {bytes}: {seen} after {error:?}");
    backend.apply(&commit(3)).unwrap();
    backend.close().unwrap();
    assert_eq!(commit_seen(&open(&directory, durability)), 3);
    Some(error)
}

/// The process dies in the middle of the one write that has records, offset and position.
#[test]
fn ho_17_a_crash_in_a_commit_leaves_the_position_of_the_offset() {
    for durability in LEVELS {
        let mut old = 0;
        for bytes in (0..).step_by(STEP) {
            let root = crashed_in(
                "torn_write::ho_17_a_crash_in_a_commit_leaves_the_position_of_the_offset",
                durability,
                || {
                    let root = tempfile::tempdir().unwrap();
                    fs::write(plan(root.path()), bytes.to_string()).unwrap();
                    root
                },
                |root, durability| {
                    let directory = root.join("store");
                    let backend = open(&directory, durability);
                    backend.apply(&commit(1)).unwrap();
                    backend.flush().unwrap();
                    let bytes = fs::read_to_string(plan(root)).unwrap().parse().unwrap();
                    limit_files(Some(limit_after(&directory, durability, bytes)));
                    backend.apply(&commit(2)).and_then(|()| backend.flush()).unwrap();
                    limit_files(None);
                    std::mem::forget(backend);
                },
            );
            if commit_seen(&open(&root.path().join("store"), durability)) == 2 {
                break;
            }
            old += 1;
        }
        assert!(old > VALUE / STEP, "{durability:?}: only {old} commits were torn");
    }
}

/// Tells the child where to die.
fn plan(root: &Path) -> PathBuf {
    root.join("bytes")
}
