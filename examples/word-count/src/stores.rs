use kstate_api::{BackendSupplier, Durability, KeyValueStoreSupplier, StagedSupplier};
use kstate_store_memory::MemoryBackends;
use kstate_store_redb::{CacheBudget, RedbBackends, RedbOptions};

use crate::{cli::StoreKind, failure::Failure, job::Job};

/// The name of the one store of each task.
pub(crate) const STORE: &str = "counts";

/// How many bytes of memory the engines of all stores may use to cache, together.
const CACHE_BYTES: usize = 64 << 20;

/// An error if this program was built without `kind`.
pub(crate) fn check_built(kind: StoreKind) -> Result<(), Failure> {
    if kind == StoreKind::RocksDb && cfg!(not(feature = "rocksdb")) { Err(Failure::StoreNotBuilt) } else { Ok(()) }
}

/// What opens the stores of the job's tasks. Each commit survives a kill -9.
pub(crate) fn supplier(job: &Job) -> Result<Box<dyn KeyValueStoreSupplier>, Failure> {
    match job.store {
        StoreKind::Memory => staged(MemoryBackends::new()),
        StoreKind::Redb => {
            let budget = CacheBudget::new(CACHE_BYTES, usize::try_from(job.partitions).unwrap_or(1));
            staged(RedbBackends::new(RedbOptions::new().durability(Durability::Process).cache_budget(&budget)))
        }
        StoreKind::RocksDb => rocksdb(),
    }
}

fn staged<S: BackendSupplier + 'static>(backends: S) -> Result<Box<dyn KeyValueStoreSupplier>, Failure> {
    Ok(Box::new(StagedSupplier::new(STORE, backends)?))
}

#[cfg(feature = "rocksdb")]
fn rocksdb() -> Result<Box<dyn KeyValueStoreSupplier>, Failure> {
    use kstate_store_rocksdb::{RocksDbBackends, RocksDbMemory, RocksDbOptions};

    let memory = RocksDbMemory::new(CACHE_BYTES, CACHE_BYTES / 2);
    staged(RocksDbBackends::new(RocksDbOptions::new().durability(Durability::Process).memory(memory)))
}

#[cfg(not(feature = "rocksdb"))]
fn rocksdb() -> Result<Box<dyn KeyValueStoreSupplier>, Failure> {
    Err(Failure::StoreNotBuilt)
}
