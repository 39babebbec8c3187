use std::{fmt, path::Path, sync::Arc, thread};

use kstate_api::{
    Backend, Capabilities, CommitOutcome, Cursor, Durability, Error, KeyRange, Offset, Order, Position,
    ReadOnlyKeyValueStore, Result, Snapshot, TopicPartition, WriteBatch,
};
use parking_lot::{Mutex, RwLock};
use redb::{Database, StorageBackend, WriteTransaction};

use crate::{
    RedbOptions,
    cache::CacheGrant,
    commit::{self, Committed},
    current::Current,
    error::{caught, engine},
    layout::{self, Offsets},
    open,
    snapshot::RedbSnapshot,
    status::{self, Status},
    view::View,
};

/// A [`Backend`] on a file of redb.
///
/// The store is the file `store.redb` in the directory; nothing else is in there.
///
/// ```
/// use kstate_api::{Backend, ReadOnlyKeyValueStoreExt, WriteBatch};
/// use kstate_store_redb::{RedbBackend, RedbOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let temporary = tempfile::tempdir()?;
/// # let directory = temporary.path();
/// let backend = RedbBackend::open(directory, &RedbOptions::new())?;
/// let mut batch = WriteBatch::new();
/// batch.put("key", "value");
/// backend.apply(&batch)?;
/// backend.close()?;
///
/// let backend = RedbBackend::open(directory, &RedbOptions::new())?;
/// assert_eq!(backend.get(b"key")?.unwrap(), "value");
/// # Ok(())
/// # }
/// ```
pub struct RedbBackend {
    /// `None` once it is closed.
    database: RwLock<Option<Open>>,
    status: Arc<Status>,
    current: Current,
    writer: Mutex<Writer>,
    options: RedbOptions,
    /// The offsets that a power loss would leave. Empty, and not asked, where each commit is durable.
    durable_offsets: Mutex<Offsets>,
}

struct Open {
    database: Database,
    _cache: CacheGrant,
}

/// What was committed since the last durable commit.
#[derive(Debug, Default)]
struct Writer {
    commits: u32,
    bytes: u64,
}

impl RedbBackend {
    /// Opens the store in `directory`, which is made, as is the store, if it is not there.
    ///
    /// # Errors
    /// - `Locked`, at once, if it is open already, here or in another process;
    /// - `NewerFormat` if a newer version wrote it, which leaves every byte as it was;
    /// - `Corrupted` if it is damaged or no store of kstate;
    /// - `DiskFull`, `Io`.
    ///
    /// ```
    /// # use kstate_store_redb::{RedbBackend, RedbOptions};
    /// use kstate_api::ErrorKind;
    /// # let temporary = tempfile::tempdir().unwrap();
    /// # let directory = temporary.path();
    /// let owner = RedbBackend::open(directory, &RedbOptions::new()).unwrap();
    /// let refused = RedbBackend::open(directory, &RedbOptions::new()).unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::Locked);
    /// ```
    pub fn open(directory: &Path, options: &RedbOptions) -> Result<Self> {
        Self::open_storage(open::file(directory)?, options)
    }

    /// Opens the store in a storage of your own: encrypted, in memory, one that fails when you say so.
    ///
    /// Locking is the storage's: one that has no locks has no `Locked` either.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    ///
    /// ```
    /// use kstate_store_redb::{RedbBackend, RedbOptions, redb::backends::InMemoryBackend};
    ///
    /// assert!(RedbBackend::open_storage(InMemoryBackend::new(), &RedbOptions::new()).is_ok());
    /// ```
    pub fn open_storage(storage: impl StorageBackend, options: &RedbOptions) -> Result<Self> {
        let cache = options.grant_cache();
        let (database, durable_offsets) = open::store(storage, options, &cache)?;
        Ok(Self {
            database: RwLock::new(Some(Open { database, _cache: cache })),
            status: Arc::default(),
            current: Current::default(),
            writer: Mutex::default(),
            options: options.clone(),
            durable_offsets: Mutex::new(durable_offsets),
        })
    }

    fn view(&self) -> Result<Arc<View>> {
        self.status.check()?;
        self.current.view(|| match &*self.database.read() {
            Some(open) => View::begin(&open.database),
            None => Err(status::closed()),
        })
    }

    /// Writes and commits, durably or not, and poisons the store if nobody can tell what became of it.
    fn commit(&self, durable: bool, write: impl FnOnce(&WriteTransaction) -> Result<()>) -> Committed<()> {
        let not_applied = |error| (error, CommitOutcome::NotApplied);
        // Nobody closes it meanwhile: that, too, is the writer's.
        let database = self.database.read();
        let open = database.as_ref().ok_or_else(|| not_applied(status::closed()))?;
        let staged = commit::stage(&open.database, durable, write).map_err(not_applied)?;
        let committing = self.current.committing();
        let committed = staged.commit();
        if matches!(committed, Err((_, CommitOutcome::Unknown))) {
            self.status.poison();
        }
        drop(committing);
        let durable_offsets = committed?;
        if let Some(offsets) = durable_offsets.filter(|_| self.options.durability == Durability::Eventual) {
            *self.durable_offsets.lock() = offsets;
        }
        Ok(())
    }

    fn commit_durably(
        &self,
        writer: &mut Writer,
        write: impl FnOnce(&WriteTransaction) -> Result<()>,
    ) -> Committed<()> {
        self.commit(true, write)?;
        *writer = Writer::default();
        Ok(())
    }
}

fn with_outcome((error, outcome): (Error, CommitOutcome)) -> Error {
    error.with_commit_outcome(outcome)
}

fn not_applied(error: Error) -> Error {
    error.with_commit_outcome(CommitOutcome::NotApplied)
}

impl ReadOnlyKeyValueStore for RedbBackend {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.view()?.get_with(key, read)
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        self.view()?.scan(&self.status, range, order)
    }

    /// Exact here.
    fn approximate_num_entries(&self) -> Result<u64> {
        self.view()?.len()
    }
}

impl Backend for RedbBackend {
    fn capabilities(&self) -> Capabilities {
        Capabilities::persisting(self.options.durability)
    }

    fn apply(&self, batch: &WriteBatch) -> Result<()> {
        let mut writer = self.writer.lock();
        self.status.check().map_err(not_applied)?;
        let write = |transaction: &WriteTransaction| commit::write_batch(transaction, batch);
        let commits = writer.commits + 1;
        let bytes = writer.bytes.saturating_add(batch.byte_size() as u64);
        let due = commits >= self.options.flush_commits || bytes >= self.options.flush_bytes;
        if due || self.options.durability > Durability::Eventual {
            return self.commit_durably(&mut writer, write).map_err(with_outcome);
        }
        self.commit(false, write).map_err(with_outcome)?;
        *writer = Writer { commits, bytes };
        Ok(())
    }

    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.view()?.offset(partition)
    }

    fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        if self.options.durability > Durability::Eventual {
            return self.committed_offset(partition);
        }
        self.status.check()?;
        Ok(self.durable_offsets.lock().get(&layout::offset_key(partition)).copied())
    }

    fn position(&self) -> Result<Position> {
        self.view()?.position()
    }

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        Ok(Arc::new(RedbSnapshot::new(Arc::clone(&self.status), self.view()?)))
    }

    fn flush(&self) -> Result<()> {
        let mut writer = self.writer.lock();
        self.status.check()?;
        // A durable commit takes the ones before it along.
        if writer.commits == 0 {
            return Ok(());
        }
        self.commit_durably(&mut writer, |_| Ok(())).map_err(|(error, _)| error)
    }

    fn wipe(&self) -> Result<()> {
        let mut writer = self.writer.lock();
        self.status.check().map_err(not_applied)?;
        self.commit_durably(&mut writer, layout::wipe).map_err(with_outcome)
    }

    fn close(&self) -> Result<()> {
        // A commit that runs is let to its end.
        let _turn = self.writer.lock();
        if !self.status.close() {
            return Ok(());
        }
        self.current.clear();
        let Some(open) = self.database.write().take() else { return Ok(()) };
        // Commits that were not durable are made so here; readers that are left get errors from the engine.
        caught("cannot close the store", || {
            open.database.close().map_err(|error| engine("cannot close the store", error))
        })
    }
}

impl Drop for RedbBackend {
    fn drop(&mut self) {
        // While a panic unwinds, redb closes as a crash would: it writes nothing, and recovers at the next open.
        if let Err(error) = self.close()
            && !thread::panicking()
        {
            tracing::warn!(%error, "closing a dropped store failed");
        }
    }
}

impl fmt::Debug for RedbBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbBackend")
            .field("open", &self.status.check().is_ok())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
