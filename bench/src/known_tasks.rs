//! Tasks that a start-up scan has found.

use std::{fs, path::Path, sync::Arc};

use kstate_api::{
    ChangelogOffsets, Error, ErrorKind, KeyValueStore, KeyValueStoreSupplier, Offset, StagedSupplier, TaskId,
    TopicPartition,
};
use kstate_offset_cache::{OffsetCache, StartupScan, StateDirectory, TaskLock, TopologyStores};
use kstate_store_redb::{RedbBackends, RedbOptions};
use tempfile::TempDir;

use crate::Result;

const APPLICATION: &str = "bench";
const STORES: [&str; 2] = ["orders-joined", "orders-counted"];

/// Many tasks of two stores each, and the cache that knows them from a scan.
#[derive(Debug)]
pub(crate) struct KnownTasks {
    cache: OffsetCache,
    tasks: Vec<(TaskId, Vec<TopicPartition>)>,
    /// Of the task in the middle, which is changed.
    lock: TaskLock,
    store: Arc<dyn KeyValueStore>,
    /// Where the rest is; it goes last.
    _temporary: TempDir,
}

impl KnownTasks {
    /// What every store has committed.
    pub(crate) const OFFSET: i64 = 123;

    pub(crate) fn make(count: u32) -> Result<Self> {
        let temporary = TempDir::new()?;
        let directory = StateDirectory::open(temporary.path(), APPLICATION)?;
        let mut topology = TopologyStores::new(APPLICATION)?;
        for name in STORES {
            topology = topology.with_logged(0, Arc::new(Committed(name)))?;
        }
        let ids: Vec<_> = (0..count).map(|partition| TaskId::new(0, partition)).collect();
        for task in &ids {
            let lock = directory.lock(*task)?;
            for name in STORES {
                fs::write(lock.store_directory(name)?.join("store"), "")?;
            }
        }
        let cache = OffsetCache::new();
        StartupScan::new(&topology).run(&directory, &cache)?;
        let changed = TaskId::new(0, count / 2);
        let supplier = StagedSupplier::new("changed", RedbBackends::new(RedbOptions::new().cache_size(1 << 20)))?;
        let store = supplier.open(&temporary.path().join("changed"), &topology.changelogs(changed))?;
        let tasks = ids.into_iter().map(|task| (task, topology.changelogs(task))).collect();
        Ok(Self { cache, tasks, lock: directory.lock(changed)?, store, _temporary: temporary })
    }

    pub(crate) const fn cache(&self) -> &OffsetCache {
        &self.cache
    }

    /// The tasks, each with its changelogs.
    pub(crate) fn tasks(&self) -> &[(TaskId, Vec<TopicPartition>)] {
        &self.tasks
    }

    /// Changes the entry of one task.
    pub(crate) fn change(&self) {
        self.cache.restored(&self.lock, &*self.store);
    }
}

/// Stores of that name, of which nobody opens one: every one that is there has committed the same.
#[derive(Debug)]
struct Committed(&'static str);

impl KeyValueStoreSupplier for Committed {
    fn name(&self) -> &str {
        self.0
    }

    fn persistent(&self) -> bool {
        true
    }

    fn open(&self, _: &Path, _: &[TopicPartition]) -> kstate_api::Result<Arc<dyn KeyValueStore>> {
        Err(Error::new(ErrorKind::Unsupported, "there is no engine"))
    }

    fn read_offsets(&self, _: &Path, changelogs: &[TopicPartition]) -> kstate_api::Result<ChangelogOffsets> {
        let offset = Offset::try_from(KnownTasks::OFFSET)?;
        Ok(changelogs.iter().map(|changelog| (changelog.clone(), offset)).collect())
    }
}
