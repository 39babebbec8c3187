//! A store that manages no offsets keeps the whole contract with a checkpoint file beside it, kills included.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "support/without_offsets.rs"]
mod without_offsets;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use kstate_api::{
    ChangelogOffsets, CommitOutcome, Durability, ErrorKind, KeyValueStore, Offset, ReadOnlyKeyValueStoreExt, Result,
    StagedStore, StateStore, TopicPartition,
};
use kstate_checkpoint::{FileCheckpoint, LoggedStore, read_checkpoint_file};
use kstate_conformance_tests::{Faults, Faulty, FaultyBackend, Harness, StepFault, conformance_tests};
use kstate_store_memory::MemoryBackend;
use kstate_store_redb::{RedbBackend, RedbOptions};
use without_offsets::WithoutOffsets;

fn redb(directory: &Path) -> Result<RedbBackend> {
    // The least durable: nothing but the file says that a commit is there.
    RedbBackend::open(directory, &RedbOptions::new().durability(Durability::Eventual))
}

fn legacy(directory: &Path, partitions: &[TopicPartition]) -> Result<WithoutOffsets<StagedStore<RedbBackend>>> {
    Ok(WithoutOffsets(StagedStore::open("legacy", redb(&directory.join("store"))?, partitions)?))
}

/// The file, beside the store's own directory.
fn file(directory: &Path) -> PathBuf {
    directory.join(".checkpoint_legacy")
}

struct Bare;

impl Harness for Bare {
    type Store = WithoutOffsets<StagedStore<RedbBackend>>;

    fn open(&self, directory: &Path, partitions: &[TopicPartition]) -> Result<Self::Store> {
        legacy(directory, partitions)
    }
}

/// What the store can do alone.
mod bare {
    use super::*;

    conformance_tests! {
        harness: Bare,
        persistent: true,
        manages_offsets: false,
        durable_commit: false,
        synced_commit: false,
        snapshots: true,
        reverse_scan: true,
        long_keys: true,
        multi_process_lock: true,
        closed_offsets: false,
        faults: false,
    }
}

struct WithFile;

impl Harness for WithFile {
    type Store = FileCheckpoint<WithoutOffsets<StagedStore<RedbBackend>>>;

    fn open(&self, directory: &Path, partitions: &[TopicPartition]) -> Result<Self::Store> {
        FileCheckpoint::open(legacy(directory, partitions)?, file(directory))
    }

    fn read_offsets(&self, directory: &Path, partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
        read_checkpoint_file(&file(directory), partitions)
    }

    fn open_faulty(
        &self,
        directory: &Path,
        partitions: &[TopicPartition],
        faults: &Faults,
    ) -> Result<Arc<dyn KeyValueStore>> {
        let backend = FaultyBackend::new(redb(&directory.join("store"))?, faults.clone());
        let store = WithoutOffsets(StagedStore::open("legacy", backend, partitions)?);
        Ok(Arc::new(FileCheckpoint::open(store, file(directory))?))
    }
}

/// With the file it can do everything, whatever its own durability.
mod with_a_file {
    use super::*;

    conformance_tests! {
        harness: WithFile,
        persistent: true,
        manages_offsets: true,
        durable_commit: true,
        synced_commit: true,
        snapshots: true,
        reverse_scan: true,
        long_keys: true,
        multi_process_lock: true,
        closed_offsets: true,
        faults: true,
    }
}

fn changelog() -> TopicPartition {
    TopicPartition::new("counts-changelog", 0)
}

fn at(value: i64) -> ChangelogOffsets {
    ChangelogOffsets::new().with(changelog(), Offset::new(value).unwrap())
}

/// A copy of the directory, as a crash would leave it just now.
fn crash(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(std::result::Result::unwrap) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() { crash(&from, &to) } else { fs::copy(from, to).map(drop).unwrap() }
    }
}

#[test]
fn a_crash_between_the_file_and_the_store_is_made_good() {
    let temporary = tempfile::tempdir().unwrap();
    let (task, crashed) = (temporary.path().join("task"), temporary.path().join("crashed"));
    let faults = Faults::new();
    let backend = FaultyBackend::new(redb(&task.join("store")).unwrap(), faults.clone());
    let store = WithoutOffsets(StagedStore::open("legacy", backend, &[changelog()]).unwrap());
    let store = FileCheckpoint::open(store, file(&task)).unwrap();
    store.put(b"a", b"1").unwrap();
    store.put(b"b", b"1").unwrap();
    store.commit(&at(1)).unwrap();
    store.put(b"a", b"2").unwrap();
    store.delete(b"b").unwrap();
    // The file has it, the store has not.
    faults.fail_next_step(StepFault::LostBefore);
    assert_eq!(store.commit(&at(2)).unwrap_err().commit_outcome(), Some(CommitOutcome::Unknown));
    assert_eq!(store.get(b"a").unwrap_err().kind(), ErrorKind::Poisoned);
    crash(&task, &crashed);
    assert_eq!(read_checkpoint_file(&file(&crashed), &[changelog()]).unwrap(), at(2));
    let bare = legacy(&crashed, &[changelog()]).unwrap();
    assert_eq!(bare.get(b"a").unwrap().unwrap(), "1", "the store alone is behind");
    let store = FileCheckpoint::open(bare, file(&crashed)).unwrap();
    assert_eq!((store.get(b"a").unwrap().unwrap(), store.get(b"b").unwrap()), ("2".into(), None));
    assert_eq!(store.committed_offset(&changelog()).unwrap(), at(2).get(&changelog()));
}

#[test]
fn a_commit_that_the_store_refuses_is_taken_back() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("task");
    let faults = Faults::new();
    let backend = FaultyBackend::new(redb(&directory.join("store")).unwrap(), faults.clone());
    let store = WithoutOffsets(StagedStore::open("legacy", backend, &[changelog()]).unwrap());
    let store = FileCheckpoint::open(store, file(&directory)).unwrap();
    store.put(b"a", b"1").unwrap();
    store.commit(&at(1)).unwrap();
    store.put(b"a", b"2").unwrap();
    faults.fail_next_step(StepFault::Refused);
    assert_eq!(store.commit(&at(2)).unwrap_err().commit_outcome(), Some(CommitOutcome::NotApplied));
    assert_eq!(read_checkpoint_file(&file(&directory), &[changelog()]).unwrap(), at(1));
    drop(store);
    let store = FileCheckpoint::open(legacy(&directory, &[changelog()]).unwrap(), file(&directory)).unwrap();
    assert_eq!(store.get(b"a").unwrap().unwrap(), "1");
}

#[test]
fn a_file_that_cannot_be_written_leaves_everything_staged() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("task");
    let path = temporary.path().join("not/there");
    let store = FileCheckpoint::open(legacy(&directory, &[changelog()]).unwrap(), &path).unwrap();
    store.put(b"a", b"1").unwrap();
    let error = store.commit(&at(1)).unwrap_err();
    assert_eq!((error.kind(), error.commit_outcome()), (ErrorKind::Io, Some(CommitOutcome::NotApplied)));
    fs::create_dir(path.parent().unwrap()).unwrap();
    store.commit(&at(1)).unwrap();
    assert_eq!(store.committed_offset(&changelog()).unwrap(), at(1).get(&changelog()));
}

#[test]
fn a_damaged_file_is_refused_before_the_store_is_touched() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("task");
    let store = FileCheckpoint::open(legacy(&directory, &[changelog()]).unwrap(), file(&directory)).unwrap();
    store.put(b"a", b"1").unwrap();
    store.commit(&at(1)).unwrap();
    drop(store);
    let good = fs::read(file(&directory)).unwrap();
    for damaged in [&good[..good.len() - 1], &[], b"0\n1\ncounts-changelog 0 41\n"] {
        fs::write(file(&directory), damaged).unwrap();
        let error = FileCheckpoint::open(legacy(&directory, &[changelog()]).unwrap(), file(&directory)).unwrap_err();
        assert_eq!((error.kind(), error.store()), (ErrorKind::Corrupted, Some("legacy")));
        assert_eq!(read_checkpoint_file(&file(&directory), &[]).unwrap_err().kind(), ErrorKind::Corrupted);
    }
    fs::write(file(&directory), good).unwrap();
    let store = FileCheckpoint::open(legacy(&directory, &[changelog()]).unwrap(), file(&directory)).unwrap();
    assert_eq!(store.get(b"a").unwrap().unwrap(), "1");
}

#[test]
fn only_a_store_that_needs_the_file_gets_one() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("file");
    let memory = || StagedStore::open("counts", MemoryBackend::new(), &[]).unwrap();
    for error in [
        FileCheckpoint::open(memory(), &path).unwrap_err(),
        FileCheckpoint::open(WithoutOffsets(memory()), &path).unwrap_err(),
        FileCheckpoint::open(Faulty::new(memory(), Faults::new()), &path).unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.store()), (ErrorKind::Config, Some("counts")), "{error}");
    }
    assert!(!path.exists());
}

/// Unwrapped it could only be wiped at each start, and would be wrong if it were not.
#[test]
fn a_persistent_store_without_offsets_is_refused_until_it_is_wrapped() {
    let temporary = tempfile::tempdir().unwrap();
    let changelog = TopicPartition::new("changelog", 0);
    let store = Arc::new(legacy(temporary.path(), std::slice::from_ref(&changelog)).unwrap());
    let error = LoggedStore::new(store.clone(), changelog.clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("FileCheckpoint"), "{error}");
    drop(store);

    let store = legacy(temporary.path(), std::slice::from_ref(&changelog)).unwrap();
    let wrapped = FileCheckpoint::open(store, file(temporary.path())).unwrap();
    LoggedStore::new(Arc::new(wrapped), changelog).unwrap();
}
