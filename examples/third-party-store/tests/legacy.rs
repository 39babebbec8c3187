//! The suite on a store that keeps no offsets: alone, and with the file beside it that does.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use kstate_api::{ChangelogOffsets, ErrorKind, KeyValueStore, Result, StateStore, TopicPartition};
use kstate_checkpoint::{FileCheckpoint, read_checkpoint_file};
use kstate_conformance_tests::{Faults, Faulty, Harness, conformance_tests};
use third_party_store::LegacyStore;

fn legacy(directory: &Path, partitions: &[TopicPartition]) -> Result<LegacyStore> {
    LegacyStore::open("legacy", &directory.join("store"), partitions)
}

/// Beside the store's own directory: what is in there is the store's.
fn file(directory: &Path) -> PathBuf {
    directory.join(".checkpoint_legacy")
}

struct Bare;

impl Harness for Bare {
    type Store = LegacyStore;

    fn open(&self, directory: &Path, partitions: &[TopicPartition]) -> Result<LegacyStore> {
        legacy(directory, partitions)
    }
}

/// Cases about offsets are ignored.
mod bare {
    use super::*;

    conformance_tests! {
        harness: Bare,
        persistent: true,
        manages_offsets: false,
        durable_commit: true,
        synced_commit: true,
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
    type Store = FileCheckpoint<LegacyStore>;

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
        let store = Faulty::new(legacy(directory, partitions)?, faults.clone());
        Ok(Arc::new(FileCheckpoint::open(store, file(directory))?))
    }
}

/// All cases run.
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

#[test]
fn a_damaged_file_of_rows_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let store = legacy(temporary.path(), &[]).unwrap();
    store.put(b"word", b"1").unwrap();
    store.commit(&ChangelogOffsets::new()).unwrap();
    drop(store);
    let path = temporary.path().join("store/rows");
    let good = fs::read(&path).unwrap();
    let flipped = (0..good.len()).map(|place| {
        let mut damaged = good.clone();
        damaged[place] ^= 1;
        damaged
    });
    let cut = (0..good.len()).map(|len| good[..len].to_vec());
    for damaged in flipped.chain(cut) {
        fs::write(&path, damaged).unwrap();
        assert_eq!(legacy(temporary.path(), &[]).unwrap_err().kind(), ErrorKind::Corrupted);
    }
}
