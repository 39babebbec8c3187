use std::path::Path;

use kstate_api::Durability;
use kstate_store_rocksdb::{RocksDbBackends, RocksDbMemory, RocksDbOptions};
use rocksdb::WriteOptions;

use crate::{Result, arguments::Workload, engine::Engine, kstate::KstateStore, raw_rocksdb::RawRocksDb, store::Store};

/// `RocksDB` with the options that kstate's stores have by default, each store with a memory of its own.
pub(crate) struct RocksDbEngine {
    cache_bytes: usize,
    durability: Durability,
}

impl RocksDbEngine {
    pub(crate) fn levels(cache_bytes: usize) -> impl Iterator<Item = Self> {
        let levels = [Durability::Eventual, Durability::Process, Durability::Sync];
        levels.into_iter().map(move |durability| Self { cache_bytes, durability })
    }

    fn options(&self) -> (RocksDbOptions, RocksDbMemory) {
        let memory = RocksDbMemory::new(self.cache_bytes, self.cache_bytes / 4);
        (RocksDbOptions::new().durability(self.durability).memory(memory.clone()), memory)
    }

    fn open(&self, directory: &Path) -> Result<RawRocksDb> {
        let (options, memory) = self.options();
        let mut write = WriteOptions::default();
        write.disable_wal(self.durability == Durability::Eventual);
        write.set_sync(self.durability == Durability::Sync);
        RawRocksDb::open(directory, &options, &memory, write)
    }
}

impl Engine for RocksDbEngine {
    fn name(&self) -> String {
        format!("RocksDB, {:?}", self.durability)
    }

    fn has(&self, workload: Workload) -> bool {
        match workload {
            Workload::Load => true,
            // What is read is the same at each level.
            Workload::Get | Workload::Range => self.durability == Durability::Process,
            // Nobody would sync after each update.
            Workload::Zipf => self.durability < Durability::Sync,
        }
    }

    fn load_aim(&self) -> Option<f64> {
        Some(0.85)
    }

    fn open_raw(&self, directory: &Path) -> Result<Box<dyn Store>> {
        Ok(Box::new(self.open(directory)?))
    }

    fn open_kstate(&self, directory: &Path) -> Result<KstateStore> {
        KstateStore::open(RocksDbBackends::new(self.options().0), directory)
    }

    fn settle(&self, directory: &Path) -> Result<()> {
        self.open(directory)?.compact()
    }
}
