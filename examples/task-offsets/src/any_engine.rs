use std::{path::Path, sync::Arc};

use kstate_api::{
    BackendSupplier, ChangelogOffsets, Error, ErrorKind, KeyValueStore, KeyValueStoreSupplier, Result, StagedSupplier,
    TopicPartition,
};
use kstate_store_redb::{RedbBackends, RedbOptions};

/// Supplies stores of whichever engine made them, as their files tell.
#[derive(Debug)]
pub(crate) struct AnyEngine {
    name: String,
}

impl AnyEngine {
    pub(crate) const fn new(name: String) -> Self {
        Self { name }
    }

    /// What opens the stores that are like the one in `directory`, the likeliest first.
    fn suppliers(&self, directory: &Path) -> Result<Vec<Box<dyn KeyValueStoreSupplier>>> {
        if directory.join("store.redb").exists() {
            return Ok(vec![self.staged(RedbBackends::new(RedbOptions::new()))?]);
        }
        if directory.join("CURRENT").exists() {
            return self.rocksdb();
        }
        let message = format!("{} holds no store of an engine that is known here", directory.display());
        Err(Error::new(ErrorKind::Unsupported, message))
    }

    fn staged<S: BackendSupplier + 'static>(&self, backends: S) -> Result<Box<dyn KeyValueStoreSupplier>> {
        Ok(Box::new(StagedSupplier::new(&self.name, backends)?))
    }

    #[cfg(feature = "rocksdb")]
    fn rocksdb(&self) -> Result<Vec<Box<dyn KeyValueStoreSupplier>>> {
        use kstate_store_rocksdb::{RocksDbBackends, RocksDbOptions};

        let layout = |timestamped| self.staged(RocksDbBackends::new(RocksDbOptions::new().timestamped(timestamped)));
        Ok(vec![layout(false)?, layout(true)?])
    }

    #[cfg(not(feature = "rocksdb"))]
    #[expect(clippy::unused_self, reason = "it is used where RocksDB is built in")]
    fn rocksdb(&self) -> Result<Vec<Box<dyn KeyValueStoreSupplier>>> {
        let message = "it is a RocksDB store, and this program was built without: build it with `--features rocksdb`";
        Err(Error::new(ErrorKind::Unsupported, message))
    }

    /// Asks the suppliers one after the other, as long as they say that the store has another layout.
    fn ask<T>(&self, directory: &Path, ask: impl Fn(&dyn KeyValueStoreSupplier) -> Result<T>) -> Result<T> {
        let mut answer = Err(Error::new(ErrorKind::Unsupported, "there is no engine for it"));
        for supplier in self.suppliers(directory)? {
            answer = ask(&*supplier);
            if answer.as_ref().err().is_none_or(|error| error.kind() != ErrorKind::Config) {
                break;
            }
        }
        answer
    }
}

impl KeyValueStoreSupplier for AnyEngine {
    fn name(&self) -> &str {
        &self.name
    }

    fn persistent(&self) -> bool {
        true
    }

    fn open(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<Arc<dyn KeyValueStore>> {
        self.ask(directory, |supplier| supplier.open(directory, changelog_partitions))
    }

    fn read_offsets(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
        self.ask(directory, |supplier| supplier.read_offsets(directory, changelog_partitions))
    }
}
