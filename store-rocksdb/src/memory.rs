use std::{fmt, sync::LazyLock};

use rocksdb::{Cache, WriteBufferManager};

const DEFAULT_TOTAL: usize = 128 << 20;
const DEFAULT_WRITE_BUFFERS: usize = 64 << 20;

static SHARED: LazyLock<RocksDbMemory> = LazyLock::new(|| RocksDbMemory::new(DEFAULT_TOTAL, DEFAULT_WRITE_BUFFERS));

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
pub struct RocksDbMemory {
    cache: Cache,
    write_buffers: WriteBufferManager,
}

impl RocksDbMemory {
    /// A memory of `total` bytes, of which write buffers may take `write_buffers` bytes before stores are flushed.
    ///
    /// Both are targets, not walls: a read or write is never refused for them. A store that is written to is flushed
    /// while the budget is exceeded, an idle one keeps its buffers: give every store that is busy at a time some MiB.
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
        Self { cache, write_buffers }
    }

    /// The block cache, for [`rocksdb::BlockBasedOptions`] of your own.
    ///
    /// ```
    /// # use kstate_store_rocksdb::RocksDbMemory;
    /// let pinned = RocksDbMemory::default().cache().get_pinned_usage();
    /// ```
    #[must_use]
    pub const fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The budget of write buffers.
    ///
    /// ```
    /// # use kstate_store_rocksdb::RocksDbMemory;
    /// RocksDbMemory::default().write_buffers().set_buffer_size(32 << 20);
    /// ```
    #[must_use]
    pub const fn write_buffers(&self) -> &WriteBufferManager {
        &self.write_buffers
    }

    /// How many bytes are in use: blocks and write buffers of all stores in this memory.
    ///
    /// ```
    /// # use kstate_store_rocksdb::RocksDbMemory;
    /// assert!(RocksDbMemory::new(8 << 20, 1 << 20).usage() < 1 << 20);
    /// ```
    #[must_use]
    pub fn usage(&self) -> usize {
        self.cache.get_usage()
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
            .field("write_buffer_usage", &self.write_buffers.get_usage())
            .field("write_buffer_budget", &self.write_buffers.get_buffer_size())
            .finish_non_exhaustive()
    }
}
