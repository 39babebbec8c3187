use std::{fmt, path::Path, sync::Arc, thread};

use kstate_api::{
    Backend, Capabilities, CommitOutcome, Cursor, Durability, Error, ErrorKind, KeyRange, Offset, Order, Position,
    ReadOnlyKeyValueStore, Result, Snapshot, TopicPartition, WriteBatch,
};
use parking_lot::{Mutex, RwLock};
use rocksdb::WriteOptions;

use crate::{
    RocksDbMemory, RocksDbOptions,
    bookkeeping::{Bookkeeping, Changes},
    cursor::RocksDbCursor,
    directory,
    durable::DurableOffsets,
    engine::Engine,
    error,
    memory::EngineSlot,
    registry::Registry,
    snapshot::RocksDbSnapshot,
    stall,
    view::Source,
};

/// A [`Backend`] that keeps a store in a `RocksDB` database of its own.
///
/// The crate's documentation tells its durability, layout, memory and locks.
///
/// ```
/// use kstate_api::{Backend, Offset, ReadOnlyKeyValueStoreExt, TopicPartition, WriteBatch};
/// use kstate_store_rocksdb::{RocksDbBackend, RocksDbOptions};
///
/// # fn main() -> kstate_api::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let directory = directory.path();
/// let changelog = TopicPartition::new("counts-changelog", 0);
/// let backend = RocksDbBackend::open(directory, &RocksDbOptions::new())?;
/// let mut batch = WriteBatch::new();
/// batch.put("word", "1");
/// batch.set_offset(changelog.clone(), Offset::ZERO);
/// backend.apply(&batch)?;
/// backend.close()?;
///
/// let backend = RocksDbBackend::open(directory, &RocksDbOptions::new())?;
/// assert_eq!(backend.get(b"word")?.unwrap(), "1");
/// assert_eq!(backend.committed_offset(&changelog)?, Some(Offset::ZERO));
/// # Ok(())
/// # }
/// ```
pub struct RocksDbBackend {
    /// Taken by `close`. Readers share the lock, and hold it only while they use the engine.
    engine: Arc<EngineSlot>,
    registry: Arc<Registry>,
    /// Locked before `engine`.
    writer: Mutex<Writer>,
    durable: Mutex<DurableOffsets>,
    durability: Durability,
    write_options: WriteOptions,
    memory: RocksDbMemory,
}

/// What only whoever applies batches may change.
struct Writer {
    /// As the last batch left it.
    bookkeeping: Bookkeeping,
    /// Whether a write failed, so that nobody knows what a reopen will show.
    poisoned: bool,
}

impl Writer {
    fn check(&self) -> Result<()> {
        if self.poisoned {
            let message = "an earlier write may or may not have happened; close the store and open it again";
            return Err(Error::new(ErrorKind::Poisoned, message));
        }
        Ok(())
    }
}

impl RocksDbBackend {
    /// Opens the store in `directory`, and makes both if they are not there.
    ///
    /// # Errors
    /// - `Locked`: the store is open, here or in another process.
    /// - `NewerFormat`: a newer version of this crate, of Kafka Streams or of `RocksDB` wrote it; nothing was changed.
    /// - `Config`: the store has records of the other [layout](RocksDbOptions::timestamped), or the engine refuses what
    ///   was [configured](RocksDbOptions::configure).
    /// - `Corrupted`, `DiskFull`, `Io`: what the engine or the operating system met.
    ///
    /// ```
    /// # use kstate_store_rocksdb::{RocksDbBackend, RocksDbOptions};
    /// # fn main() -> kstate_api::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// let backend = RocksDbBackend::open(directory.path(), &RocksDbOptions::new())?;
    /// let error = RocksDbBackend::open(directory.path(), &RocksDbOptions::new()).unwrap_err();
    /// assert_eq!(error.kind(), kstate_api::ErrorKind::Locked);
    /// # Ok(())
    /// # }
    /// ```
    pub fn open(directory: &Path, options: &RocksDbOptions) -> Result<Self> {
        let directory = directory::prepare(directory)?;
        let durability = options.level();
        let write_options = write_options(durability);
        let engine = Engine::open(&directory, options)?;
        let mut bookkeeping = engine.bookkeeping()?;
        if bookkeeping.may_be_ahead() {
            tracing::warn!(
                directory = %directory.display(),
                "Kafka Streams died with this store open: its records may be ahead of its offsets until it is wiped"
            );
        }
        if bookkeeping.position_is_stale() {
            tracing::warn!(
                directory = %directory.display(),
                "another program has changed this store since its source position was written; the position is dropped"
            );
        }
        let changes = bookkeeping.opening();
        if !changes.is_empty() {
            let rows = || engine.batch(std::iter::empty(), &changes, 0);
            let written = stall::write(&engine, &write_options, rows)?;
            written.map_err(|error| error::engine("cannot open the store", error))?;
            bookkeeping.take(changes);
        }
        tracing::debug!(directory = %directory.display(), ?durability, "opened");
        let engine = Arc::new(RwLock::new(Some(Arc::new(engine))));
        options.shared_memory().admit(&engine);
        Ok(Self {
            engine,
            memory: options.shared_memory().clone(),
            registry: Arc::default(),
            // Whatever the log had is in tables now, and they are synchronised.
            durable: Mutex::new(DurableOffsets::flushed(bookkeeping.offsets())),
            writer: Mutex::new(Writer { bookkeeping, poisoned: false }),
            durability,
            write_options,
        })
    }

    /// What the engine tells of itself under the name `name`, such as `rocksdb.stats`; `None` if it does not know that.
    ///
    /// # Errors
    /// `Closed`, or whatever the engine met.
    ///
    /// ```
    /// # use kstate_store_rocksdb::{RocksDbBackend, RocksDbOptions};
    /// # fn main() -> kstate_api::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let backend = RocksDbBackend::open(directory.path(), &RocksDbOptions::new())?;
    /// assert_eq!(backend.property("rocksdb.num-running-flushes")?.as_deref(), Some("0"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn property(&self, name: &str) -> Result<Option<String>> {
        self.with_engine(|engine| engine.property(name))
    }

    fn with_engine<R>(&self, call: impl FnOnce(&Arc<Engine>) -> Result<R>) -> Result<R> {
        self.engine.read().as_ref().map_or_else(|| Err(error::closed()), call)
    }

    /// Writes `rows`, which make `changes`, as one step: that of `batch`, or what equals it.
    fn write(
        &self,
        writer: &mut Writer,
        batch: &WriteBatch,
        changes: impl FnOnce(&Bookkeeping) -> Result<Changes>,
        rows: impl Fn(&Engine, &Changes) -> Result<rocksdb::WriteBatch>,
    ) -> Result<()> {
        self.with_engine(|engine| {
            let not_applied = |error: Error| error.with_commit_outcome(CommitOutcome::NotApplied);
            writer.check().map_err(not_applied)?;
            let changes = changes(&writer.bookkeeping).map_err(not_applied)?;
            self.durable.lock().before_apply(batch, &writer.bookkeeping.offsets());
            match stall::write(engine, &self.write_options, || rows(engine, &changes)).map_err(not_applied)? {
                Ok(()) => {
                    writer.bookkeeping.take(changes);
                    Ok(())
                }
                Err(error) => {
                    // The log may have it all the same, and the engine may refuse or accept what comes next.
                    writer.poisoned = true;
                    let error = error::engine("cannot write a batch", error);
                    Err(error.with_commit_outcome(CommitOutcome::Unknown))
                }
            }
        })
    }

    fn make_durable(&self, writer: &mut Writer) -> Result<()> {
        self.with_engine(|engine| {
            writer.check()?;
            match self.durability {
                Durability::Eventual => engine.flush_tables()?,
                // After a failed synchronisation the system may take lost pages for written ones: only a reopen tells.
                Durability::Process | Durability::Sync => {
                    engine.sync_log().inspect_err(|_| writer.poisoned = true)?;
                }
            }
            *self.durable.lock() = DurableOffsets::flushed(writer.bookkeeping.offsets());
            Ok(())
        })
    }

    /// Closes the database, whoever still has a cursor or a snapshot.
    fn release(&self) {
        let engine = self.engine.write().take();
        self.registry.close();
        debug_assert!(engine.as_ref().is_none_or(|engine| Arc::strong_count(engine) == 1), "the lock is still held");
    }
}

fn write_options(durability: Durability) -> WriteOptions {
    let mut options = WriteOptions::default();
    // Where the engine would wait for room, we do, for it would wait for ever on a full disk.
    options.set_no_slowdown(true);
    match durability {
        Durability::Eventual => options.disable_wal(true),
        Durability::Process => {}
        Durability::Sync => options.set_sync(true),
    }
    options
}

impl Backend for RocksDbBackend {
    fn capabilities(&self) -> Capabilities {
        Capabilities::persisting(self.durability)
    }

    fn apply(&self, batch: &WriteBatch) -> Result<()> {
        let changes = |bookkeeping: &Bookkeeping| bookkeeping.applying(batch);
        self.write(&mut self.writer.lock(), batch, changes, |engine, changes| {
            let records = batch.records().map(|(key, value)| (key, value.map(AsRef::as_ref)));
            engine.batch(records, changes, batch.byte_size())
        })?;
        self.memory.relieve();
        Ok(())
    }

    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.with_engine(|engine| engine.offset(partition, engine.latest()))
    }

    fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.with_engine(|engine| match self.durability {
            Durability::Sync => engine.offset(partition, engine.latest()),
            Durability::Process => Ok(self.durable.lock().lowest(partition)),
            Durability::Eventual => {
                self.durable.lock().at_least(partition, || engine.offset(partition, engine.persisted()))
            }
        })
    }

    fn position(&self) -> Result<Position> {
        self.with_engine(|engine| engine.position(engine.latest()))
    }

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        self.with_engine(|engine| Ok(Arc::new(RocksDbSnapshot::new(&self.registry, Arc::clone(engine))?) as _))
    }

    fn flush(&self) -> Result<()> {
        self.make_durable(&mut self.writer.lock())
    }

    fn wipe(&self) -> Result<()> {
        let mut writer = self.writer.lock();
        let mut forget = WriteBatch::new();
        forget.forget_offsets();
        let changes = |bookkeeping: &Bookkeeping| Ok(bookkeeping.wiping());
        self.write(&mut writer, &forget, changes, Engine::wiping_batch)?;
        self.make_durable(&mut writer).map_err(|error| {
            writer.poisoned = true;
            error.with_commit_outcome(CommitOutcome::Unknown)
        })?;
        self.with_engine(|engine| engine.compact())
    }

    fn close(&self) -> Result<()> {
        let _turn = self.writer.lock();
        let Some(engine) = self.engine.read().clone() else { return Ok(()) };
        // Into tables, whatever the durability: the next open has no log to replay then.
        let flushed = engine.flush_tables();
        drop(engine);
        self.release();
        tracing::debug!("closed");
        flushed
    }
}

impl ReadOnlyKeyValueStore for RocksDbBackend {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.with_engine(|engine| engine.get_with(key, engine.latest(), read))
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        self.with_engine(|engine| RocksDbCursor::over(&self.registry, Source::Latest(Arc::clone(engine)), range, order))
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        self.with_engine(|engine| engine.approximate_num_entries())
    }
}

impl Drop for RocksDbBackend {
    fn drop(&mut self) {
        if thread::panicking() {
            // As in a crash: nothing is flushed, and the next open recovers.
            self.release();
        } else if let Err(error) = self.close() {
            tracing::warn!(%error, "closing a dropped store failed");
        }
    }
}

impl fmt::Debug for RocksDbBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RocksDbBackend")
            .field("engine", &*self.engine.read())
            .field("durability", &self.durability)
            .finish_non_exhaustive()
    }
}
