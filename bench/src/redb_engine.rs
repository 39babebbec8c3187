use std::path::Path;

use kstate_api::Durability;
use kstate_store_redb::{RedbBackends, RedbOptions};

use crate::{Result, arguments::Workload, engine::Engine, kstate::KstateStore, raw_redb::RawRedb, store::Store};

/// Where nothing asks for each: every how many commits one is durable.
const DURABLE_EVERY: u32 = 50;

/// redb, with quick repair in each durable commit.
pub(crate) struct RedbEngine {
    cache_bytes: usize,
    durability: Durability,
}

impl RedbEngine {
    pub(crate) fn levels(cache_bytes: usize) -> impl Iterator<Item = Self> {
        [Durability::Eventual, Durability::Sync].into_iter().map(move |durability| Self { cache_bytes, durability })
    }
}

impl Engine for RedbEngine {
    fn name(&self) -> String {
        format!("redb, {:?}", self.durability)
    }

    fn has(&self, workload: Workload) -> bool {
        // What is read is the same at each level.
        self.durability == Durability::Sync || matches!(workload, Workload::Load | Workload::Zipf)
    }

    fn load_rounds(&self, rounds: u64) -> u64 {
        rounds.div_ceil(2)
    }

    fn load_aim(&self) -> Option<f64> {
        Some(1.1)
    }

    fn open_raw(&self, directory: &Path) -> Result<Box<dyn Store>> {
        let durable_every = if self.durability == Durability::Sync { 1 } else { DURABLE_EVERY.into() };
        Ok(Box::new(RawRedb::open(&directory.join("store.redb"), self.cache_bytes, durable_every)?))
    }

    fn open_kstate(&self, directory: &Path) -> Result<KstateStore> {
        let options = RedbOptions::new().durability(self.durability).cache_size(self.cache_bytes);
        KstateStore::open(RedbBackends::new(options.flush_every(DURABLE_EVERY, u64::MAX)), directory)
    }
}
