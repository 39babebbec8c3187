use std::{
    fmt,
    num::NonZero,
    sync::{Arc, LazyLock},
    thread,
};

use kstate_api::Durability;
use rocksdb::{BlockBasedOptions, DBCompactionStyle, DBCompressionType, DBRecoveryMode, LogLevel, Options};

use crate::{RocksDbMemory, layout::Layout};

const BLOCK_SIZE: usize = 4 << 10;
/// A store with little in its write buffer takes at least that much; the engine's default would be 1 MiB.
const ARENA_BLOCK_SIZE: usize = 256 << 10;
const WRITE_BUFFERS_OF_A_STORE: i32 = 3;
const OFFSETS_WRITE_BUFFER_SIZE: usize = 1 << 20;
/// The newest table format that the engine of Kafka Streams 4.x (10.1.3) can read.
const TABLE_FORMAT_VERSION: i32 = 6;
/// How many threads flush and compact. Asked once: it takes a dozen calls of the system.
static PROCESSORS: LazyLock<i32> = LazyLock::new(|| {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    i32::try_from(processors).unwrap_or(i32::MAX).max(2)
});

/// How records are compressed on disk.
///
/// ```
/// use kstate_store_rocksdb::{Compression, RocksDbOptions};
///
/// let options = RocksDbOptions::new().compression(Compression::Lz4);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all, as Kafka Streams does.
    #[default]
    None,
    /// Fast; worth it for most values that are not compressed already.
    Lz4,
    /// Smaller, at more processor time.
    Zstd,
}

type Configure = dyn Fn(&mut Options) + Send + Sync;

/// How stores are opened. The defaults are near those of Kafka Streams, except for the durability, and for the memory,
/// which all stores of the process share.
///
/// ```
/// use kstate_api::Durability;
/// use kstate_store_rocksdb::{Compression, RocksDbBackends, RocksDbMemory, RocksDbOptions};
///
/// let options = RocksDbOptions::new()
///     .durability(Durability::Eventual)
///     .memory(RocksDbMemory::new(512 << 20, 256 << 20))
///     .compression(Compression::Lz4)
///     .configure(|options| options.set_max_background_jobs(4));
/// let backends = RocksDbBackends::new(options);
/// ```
#[derive(Clone)]
pub struct RocksDbOptions {
    durability: Durability,
    layout: Layout,
    memory: RocksDbMemory,
    compression: Compression,
    bloom_filter: Option<f64>,
    write_buffer_size: usize,
    configure: Option<Arc<Configure>>,
}

impl RocksDbOptions {
    /// [`Durability::Process`], the plain layout, the process's [memory](RocksDbMemory::default), no compression, a
    /// bloom filter of 10 bits for each key, write buffers of 16 MiB.
    ///
    /// ```
    /// # use kstate_store_rocksdb::RocksDbOptions;
    /// let options = RocksDbOptions::new();
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self {
            durability: Durability::Process,
            layout: Layout::Plain,
            memory: RocksDbMemory::default(),
            compression: Compression::None,
            bloom_filter: Some(10.0),
            write_buffer_size: 16 << 20,
            configure: None,
        }
    }

    /// What each commit survives; the crate's documentation says what each level costs.
    ///
    /// ```
    /// # use kstate_api::Durability;
    /// # use kstate_store_rocksdb::RocksDbOptions;
    /// let options = RocksDbOptions::new().durability(Durability::Sync);
    /// ```
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Whether the records are those of a Kafka Streams store with timestamps, which lie in another column family than
    /// those of a plain one. The values themselves are not looked at.
    ///
    /// ```
    /// # use kstate_store_rocksdb::RocksDbOptions;
    /// let options = RocksDbOptions::new().timestamped(true);
    /// ```
    #[must_use]
    pub fn timestamped(mut self, timestamped: bool) -> Self {
        self.layout = if timestamped { Layout::Timestamped } else { Layout::Plain };
        self
    }

    /// The memory that the stores share with all others in it.
    ///
    /// ```
    /// # use kstate_store_rocksdb::{RocksDbMemory, RocksDbOptions};
    /// let options = RocksDbOptions::new().memory(RocksDbMemory::new(64 << 20, 32 << 20));
    /// ```
    #[must_use]
    pub fn memory(mut self, memory: RocksDbMemory) -> Self {
        self.memory = memory;
        self
    }

    /// How records are compressed.
    ///
    /// ```
    /// # use kstate_store_rocksdb::{Compression, RocksDbOptions};
    /// let options = RocksDbOptions::new().compression(Compression::Zstd);
    /// ```
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// How many bits for each key the bloom filters have, which spare most reads of keys that are not there; `None`
    /// for no filters. 10 bits let about one in a hundred such reads through.
    ///
    /// ```
    /// # use kstate_store_rocksdb::RocksDbOptions;
    /// let options = RocksDbOptions::new().bloom_filter(None);
    /// ```
    #[must_use]
    pub fn bloom_filter(mut self, bits_per_key: Option<f64>) -> Self {
        self.bloom_filter = bits_per_key;
        self
    }

    /// How many bytes of records are gathered in memory before they are flushed to a file. A store has up to three such
    /// buffers.
    ///
    /// ```
    /// # use kstate_store_rocksdb::RocksDbOptions;
    /// let options = RocksDbOptions::new().write_buffer_size(4 << 20);
    /// ```
    #[must_use]
    pub fn write_buffer_size(mut self, bytes: usize) -> Self {
        self.write_buffer_size = bytes;
        self
    }

    /// Changes the engine's own options, after everything above: the way to all that has no name here.
    ///
    /// `configure` runs at each open, on the options of the database and of its records. What it sets against the
    /// contract is set back after it: atomic flushes, the creation of what is missing, ordered writes, no updates in
    /// place, a log that is not kept in the process, recovery up to the first gap, a stop after errors. A table factory
    /// of its own should use the [memory](RocksDbMemory::cache).
    ///
    /// It must leave alone what changes the meaning of records: comparators, merge operators, compaction filters, time
    /// to live, FIFO compaction; also other environments than the default, and row caches, which a wipe does not work
    /// with.
    ///
    /// ```
    /// # use kstate_store_rocksdb::RocksDbOptions;
    /// let options = RocksDbOptions::new().configure(|options| options.set_bytes_per_sync(1 << 20));
    /// ```
    #[must_use]
    pub fn configure(mut self, configure: impl Fn(&mut Options) + Send + Sync + 'static) -> Self {
        self.configure = Some(Arc::new(configure));
        self
    }

    /// The engine's options as a store is opened with: those of the database and of its records.
    ///
    /// ```
    /// # use kstate_store_rocksdb::RocksDbOptions;
    /// let options = RocksDbOptions::new().engine_options();
    /// ```
    #[must_use]
    pub fn engine_options(&self) -> Options {
        let mut options = Options::default();
        options.increase_parallelism(*PROCESSORS);
        options.set_write_buffer_manager(self.memory.write_buffers());
        options.set_write_buffer_size(self.write_buffer_size);
        options.set_max_write_buffer_number(WRITE_BUFFERS_OF_A_STORE);
        options.set_arena_block_size(ARENA_BLOCK_SIZE);
        options.set_compaction_style(DBCompactionStyle::Universal);
        options.set_compression_type(match self.compression {
            Compression::None => DBCompressionType::None,
            Compression::Lz4 => DBCompressionType::Lz4,
            Compression::Zstd => DBCompressionType::Zstd,
        });
        options.set_block_based_table_factory(&self.tables());
        // A store has few files, and the engine starts all these threads at each open.
        options.set_max_file_opening_threads(1);
        // The engine's log is for people who look for its troubles; by default it would fill the directory.
        options.set_log_level(LogLevel::Warn);
        options.set_keep_log_file_num(2);
        options.set_stats_dump_period_sec(0);
        options.set_stats_persist_period_sec(0);
        if let Some(configure) = &self.configure {
            configure(&mut options);
        }
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        options.set_error_if_exists(false);
        // Without it a crash can leave records without their offset, and the other way round.
        options.set_atomic_flush(true);
        options.set_enable_pipelined_write(false);
        // Snapshots and cursors would change under their readers.
        options.set_unordered_write(false);
        options.set_inplace_update_support(false);
        // The engine would go on after a failed write as if nothing had happened.
        options.set_paranoid_checks(true);
        // A commit that survives the process must not wait in it.
        options.set_manual_wal_flush(false);
        options.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
        options
    }

    /// The options of families that hold a few small rows.
    pub(crate) fn small_family(&self) -> Options {
        let mut options = Options::default();
        options.set_write_buffer_size(OFFSETS_WRITE_BUFFER_SIZE);
        options.set_block_based_table_factory(&self.tables());
        options
    }

    /// The options of a look into a store that another may own.
    pub(crate) fn read_only(&self) -> Options {
        // Those of an open, for they may say where files are.
        let mut options = self.engine_options();
        options.set_max_file_opening_threads(1);
        // They are for compactions, and are in each table.
        options.set_skip_stats_update_on_db_open(true);
        options.set_log_level(LogLevel::Fatal);
        options
    }

    fn tables(&self) -> BlockBasedOptions {
        let mut tables = BlockBasedOptions::default();
        tables.set_block_size(BLOCK_SIZE);
        tables.set_format_version(TABLE_FORMAT_VERSION);
        tables.set_block_cache(self.memory.cache());
        tables.set_cache_index_and_filter_blocks(true);
        tables.set_pin_l0_filter_and_index_blocks_in_cache(true);
        if let Some(bits_per_key) = self.bloom_filter {
            tables.set_bloom_filter(bits_per_key, false);
        }
        tables
    }

    pub(crate) const fn shared_memory(&self) -> &RocksDbMemory {
        &self.memory
    }

    pub(crate) const fn level(&self) -> Durability {
        self.durability
    }

    pub(crate) const fn layout(&self) -> Layout {
        self.layout
    }
}

impl Default for RocksDbOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for RocksDbOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RocksDbOptions")
            .field("durability", &self.durability)
            .field("layout", &self.layout)
            .field("memory", &self.memory)
            .field("compression", &self.compression)
            .field("bloom_filter", &self.bloom_filter)
            .field("write_buffer_size", &self.write_buffer_size)
            .field("configured", &self.configure.is_some())
            .finish()
    }
}
