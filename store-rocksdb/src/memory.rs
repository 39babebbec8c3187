use std::{
    fmt,
    sync::{Arc, LazyLock, Weak},
    time::{Duration, Instant},
};

use parking_lot::{Mutex, RwLock};
use rocksdb::{Cache, WriteBufferManager};

use crate::engine::Engine;

const DEFAULT_TOTAL: usize = 128 << 20;
const DEFAULT_WRITE_BUFFERS: usize = 64 << 20;
/// How long the write buffers of all stores are not looked at again.
const RELIEF_INTERVAL: Duration = Duration::from_millis(5);

static SHARED: LazyLock<RocksDbMemory> = LazyLock::new(|| RocksDbMemory::new(DEFAULT_TOTAL, DEFAULT_WRITE_BUFFERS));

/// The engine of a store until the store is closed. Whoever uses it holds the lock meanwhile, so that closing is for
/// good.
pub(crate) type EngineSlot = RwLock<Option<Arc<Engine>>>;

/// The memory that stores share: one block cache, and one budget of write buffers that is charged to it.
///
/// Clones share it. Index and filter blocks are in the cache, too, so that the total bounds what the engine keeps of
/// all stores together, however many there are; the operating system's page cache comes on top.
///
/// [`default`](RocksDbMemory::default) is one memory for the whole process: 128 MiB, of which write buffers may take
/// 64 MiB. Every store that is opened without another memory is in it.
///
/// ```
/// use kstate_store_rocksdb::{RocksDbMemory, RocksDbOptions};
///
/// let memory = RocksDbMemory::new(512 << 20, 256 << 20);
/// let counts = RocksDbOptions::new().memory(memory.clone());
/// let sessions = RocksDbOptions::new().memory(memory);
/// ```
#[derive(Clone)]
pub struct RocksDbMemory(Arc<Shared>);

struct Shared {
    cache: Cache,
    write_buffers: WriteBufferManager,
    stores: Mutex<Vec<Weak<EngineSlot>>>,
    last_relief: Mutex<Instant>,
}

impl RocksDbMemory {
    /// A memory of `total` bytes, of which write buffers may take `write_buffers` bytes before stores are flushed.
    ///
    /// Both are targets, not walls: a read or write is never refused for them. When the budget becomes scarce, the stores
    /// with the largest buffers are flushed, whichever is written to; so give every store that is busy at a time some
    /// MiB, or its tables become small.
    ///
    /// ```
    /// # use kstate_store_rocksdb::RocksDbMemory;
    /// let memory = RocksDbMemory::new(64 << 20, 32 << 20);
    /// ```
    #[must_use]
    pub fn new(total: usize, write_buffers: usize) -> Self {
        let cache = Cache::new_lru_cache(total);
        let write_buffers =
            WriteBufferManager::new_write_buffer_manager_with_cache(write_buffers, false, cache.clone());
        Self(Arc::new(Shared {
            cache,
            write_buffers,
            stores: Mutex::default(),
            last_relief: Mutex::new(Instant::now()),
        }))
    }

    /// The block cache, for [`rocksdb::BlockBasedOptions`] of your own.
    ///
    /// ```
    /// # use kstate_store_rocksdb::RocksDbMemory;
    /// let pinned = RocksDbMemory::default().cache().get_pinned_usage();
    /// ```
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.0.cache
    }

    /// The budget of write buffers.
    ///
    /// ```
    /// # use kstate_store_rocksdb::RocksDbMemory;
    /// RocksDbMemory::default().write_buffers().set_buffer_size(32 << 20);
    /// ```
    #[must_use]
    pub fn write_buffers(&self) -> &WriteBufferManager {
        &self.0.write_buffers
    }

    /// How many bytes are in use: blocks and write buffers of all stores in this memory.
    ///
    /// ```
    /// # use kstate_store_rocksdb::RocksDbMemory;
    /// assert!(RocksDbMemory::new(8 << 20, 1 << 20).usage() < 1 << 20);
    /// ```
    #[must_use]
    pub fn usage(&self) -> usize {
        self.0.cache.get_usage()
    }

    /// Takes a store into the care of [`relieve`](Self::relieve).
    pub(crate) fn admit(&self, store: &Arc<EngineSlot>) {
        let mut stores = self.0.stores.lock();
        stores.retain(|store| store.strong_count() > 0);
        stores.push(Arc::downgrade(store));
    }

    /// Flushes the largest write buffers if the budget becomes scarce.
    ///
    /// The engine itself flushes only the store that is written to: many idle ones would keep the whole budget, and the
    /// busy one would write a table for each commit.
    pub(crate) fn relieve(&self) {
        let budget = self.write_buffers().get_buffer_size();
        // The engine begins at seven eighths.
        if self.write_buffers().get_usage() <= budget / 4 * 3 {
            return;
        }
        let Some(mut last) = self.0.last_relief.try_lock() else { return };
        if last.elapsed() < RELIEF_INTERVAL {
            return;
        }
        let stores: Vec<_> = self.0.stores.lock().iter().filter_map(Weak::upgrade).collect();
        let size = |store: &EngineSlot| store.try_read()?.as_ref()?.active_buffers().ok();
        let mut buffers: Vec<_> = stores.iter().filter_map(|store| Some((size(store)?, store))).collect();
        buffers.sort_unstable_by_key(|(size, _)| *size);
        // What is being flushed already is no longer active.
        let mut active: usize = buffers.iter().map(|(size, _)| size).sum();
        while active > budget / 2
            && let Some((size, store)) = buffers.pop()
        {
            active -= size;
            let flushing = store.try_read().and_then(|engine| Some(engine.as_ref()?.start_flush()));
            if let Some(Err(error)) = flushing {
                tracing::warn!(%error, "cannot flush a store to make room for others");
            }
        }
        *last = Instant::now();
    }
}

impl Default for RocksDbMemory {
    fn default() -> Self {
        SHARED.clone()
    }
}

impl fmt::Debug for RocksDbMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RocksDbMemory")
            .field("usage", &self.usage())
            .field("write_buffer_usage", &self.write_buffers().get_usage())
            .field("write_buffer_budget", &self.write_buffers().get_buffer_size())
            .finish_non_exhaustive()
    }
}
