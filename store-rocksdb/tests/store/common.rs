//! What the tests of this crate share.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use kstate_api::{
    Cursor, CursorExt, Durability, KeyRange, Offset, Order, ReadOnlyKeyValueStore, TopicPartition, WriteBatch,
};
use kstate_store_rocksdb::{RocksDbBackend, RocksDbOptions};
use tempfile::TempDir;

pub(crate) const LEVELS: [Durability; 3] = [Durability::Eventual, Durability::Process, Durability::Sync];

/// What a child process works on.
const CHILD_DIRECTORY: &str = "KSTATE_ROCKSDB_CHILD_DIRECTORY";
const CHILD_LEVEL: &str = "KSTATE_ROCKSDB_CHILD_LEVEL";

pub(crate) type Rows = Vec<(Vec<u8>, Vec<u8>)>;

pub(crate) fn changelog() -> TopicPartition {
    TopicPartition::new("counts-changelog", 0)
}

pub(crate) fn source() -> TopicPartition {
    TopicPartition::new("lines", 0)
}

pub(crate) fn offset(value: i64) -> Offset {
    Offset::new(value).unwrap()
}

pub(crate) fn options(durability: Durability) -> RocksDbOptions {
    RocksDbOptions::new().durability(durability)
}

pub(crate) fn open(directory: &Path, durability: Durability) -> RocksDbBackend {
    RocksDbBackend::open(directory, &options(durability)).unwrap()
}

/// Records, and the changelog offset of the last one.
pub(crate) fn batch(records: &[(&str, &str)], last: i64) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for (key, value) in records {
        batch.put(key, (*value).to_owned());
    }
    batch.set_offset(changelog(), offset(last));
    batch
}

pub(crate) fn drain(mut cursor: Box<dyn Cursor>) -> Rows {
    let mut rows = Rows::new();
    while let Some((key, value)) = cursor.next_row().unwrap() {
        rows.push((key.to_vec(), value.to_vec()));
    }
    assert!(!cursor.advance().unwrap(), "the end stays the end");
    assert_eq!(cursor.row(), None);
    rows
}

pub(crate) fn all(store: &dyn ReadOnlyKeyValueStore) -> Rows {
    drain(store.scan(&KeyRange::all(), Order::Ascending).unwrap())
}

pub(crate) fn rows(records: &[(&str, &str)]) -> Rows {
    records.iter().map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

/// The files of a store, but for the engine's lock and its log for people.
pub(crate) fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let named = |path: &Path, start: &str| path.file_name().unwrap().to_str().unwrap().starts_with(start);
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| !named(path, "LOG") && !named(path, "LOCK"))
        .map(|path| (path.clone(), fs::read(&path).unwrap()))
        .collect()
}

pub(crate) fn tables(directory: &Path) -> Vec<PathBuf> {
    let is_table = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "sst");
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).filter(is_table).collect()
}

/// Runs `work` in a process of its own, which dies of it: a crash without any clean-up. Returns the directory it worked
/// in. `test` is the full name of the calling test, which the child runs up to here.
pub(crate) fn crashed(test: &str, durability: Durability, work: impl FnOnce(&Path, Durability)) -> TempDir {
    crashed_in(test, durability, || tempfile::tempdir().unwrap(), work)
}

/// As [`crashed`], in a directory that this process prepares.
pub(crate) fn crashed_in(
    test: &str,
    durability: Durability,
    prepare: impl FnOnce() -> TempDir,
    work: impl FnOnce(&Path, Durability),
) -> TempDir {
    if let (Some(directory), Ok(level)) = (std::env::var_os(CHILD_DIRECTORY), std::env::var(CHILD_LEVEL)) {
        let durability = LEVELS.into_iter().find(|durability| format!("{durability:?}") == level).unwrap();
        work(Path::new(&directory), durability);
        // Not a panic: nothing may be dropped.
        std::process::abort();
    }
    let directory = prepare();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]);
    child.env(CHILD_DIRECTORY, directory.path()).env(CHILD_LEVEL, format!("{durability:?}"));
    let output = child.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code().is_none() && !message.contains("panicked"),
        "the child was to abort: {output:?}\n{message}"
    );
    directory
}
