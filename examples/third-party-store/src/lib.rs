//! A backend of kstate on [fjall](https://docs.rs/fjall), an engine that kstate does not ship: all that a third party
//! writes. `tests/conformance.rs` is the proof that it is right.

#[cfg(doctest)]
#[doc = include_str!("../../../docs/implement-a-store.md")]
mod guide {}
mod long_keys;

use std::{
    any::type_name,
    fmt,
    fs::{self, File, TryLockError},
    iter,
    path::Path,
    sync::Arc,
};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, LsmError, OwnedWriteBatch, PersistMode, Readable};
use kstate_api::{
    Backend, BackendSupplier, Bytes, Capabilities, ChangelogOffsets, CommitOutcome, Cursor, CursorExt, Durability,
    Error, ErrorKind, KeyRange, Offset, Order, Position, ReadOnlyKeyValueStore, ReadOnlyKeyValueStoreExt, Result, Row,
    Snapshot, TopicPartition, WriteBatch, codec, sync_path,
};
use parking_lot::RwLock;

/// What of others has no `Debug`.
struct Opaque<T>(T);

impl<T> fmt::Debug for Opaque<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(type_name::<T>())
    }
}

/// fjall, open.
struct Engine {
    database: Database,
    rows: Keyspace,
    /// The header, the changelog offsets and the source position.
    meta: Keyspace,
}

impl Engine {
    fn open(path: &Path) -> Result<Self> {
        let database = Database::builder(path).open().map_err(failed)?;
        let keyspace = |name| database.keyspace(name, KeyspaceCreateOptions::default).map_err(failed);
        Ok(Self { rows: keyspace("rows")?, meta: keyspace("meta")?, database })
    }
}

/// The engine and the directory's lock until it is closed. Cursors and snapshots that live on find out here.
#[derive(Debug)]
struct Shared(Opaque<RwLock<Option<(Engine, File)>>>);

impl Shared {
    fn open(directory: &Path) -> Result<Self> {
        let io = |error| Error::io(format!("cannot open {}", directory.display()), error);
        let lock = fs::create_dir_all(directory).and_then(|()| File::create(directory.join("lock"))).map_err(io)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => Error::new(ErrorKind::Locked, "the directory has another owner"),
            TryLockError::Error(error) => io(error),
        })?;
        let (path, unfinished) = (directory.join("fjall"), directory.join("unfinished"));
        if !path.exists() {
            // Made aside: fjall cannot go on from a database that a crash left half made.
            fs::create_dir_all(&unfinished).and_then(|()| fs::remove_dir_all(&unfinished)).map_err(io)?;
            let new = Engine::open(&unfinished)?;
            new.meta.insert("header", codec::encode_header("fjall")).map_err(failed)?;
            new.database.persist(PersistMode::SyncAll).map_err(failed)?;
            drop(new);
            fs::rename(&unfinished, &path).map_err(io)?;
            sync_path(&path)?;
        }
        let engine = Engine::open(&path)?;
        codec::check_header(&engine.meta.get("header").map_err(failed)?.unwrap_or_default(), "fjall")?;
        Ok(Self(Opaque(RwLock::new(Some((engine, lock))))))
    }

    fn with<T>(&self, work: impl FnOnce(&Engine) -> Result<T>) -> Result<T> {
        let closed = || Error::new(ErrorKind::Closed, "the store is closed");
        self.0.0.read().as_ref().ok_or_else(closed).and_then(|(engine, _)| work(engine))
    }
}

/// fjall's error, by what a caller can do about it.
fn failed(error: fjall::Error) -> Error {
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(LsmError::Io(error)) => Error::io("fjall failed", error),
        fjall::Error::Locked => Error::new(ErrorKind::Locked, "the directory has another owner"),
        fjall::Error::Poisoned => Error::new(ErrorKind::Poisoned, "fjall has failed before"),
        fjall::Error::InvalidVersion(_) => Error::new(ErrorKind::NewerFormat, error.to_string()),
        _ => Error::new(ErrorKind::Corrupted, error.to_string()).with_source(error),
    }
}

fn not_applied(error: Error) -> Error {
    error.with_commit_outcome(CommitOutcome::NotApplied)
}

/// One commit, kept. All reads go through one, so that none sees half of another.
#[derive(Debug)]
struct View {
    shared: Arc<Shared>,
    snapshot: Opaque<fjall::Snapshot>,
}

impl View {
    fn read<T>(&self, read: impl FnOnce(&Engine, &fjall::Snapshot) -> fjall::Result<T>) -> Result<T> {
        self.shared.with(|engine| read(engine, &self.snapshot.0).map_err(failed))
    }

    /// The `offsets` or the `position`: both are a map from partitions to numbers.
    fn partitions(&self, name: &str) -> Result<Position> {
        let bytes = self.read(|engine, snapshot| snapshot.get(&engine.meta, name))?;
        bytes.map_or(Ok(Position::new()), |bytes| codec::decode_position(&bytes))
    }
}

impl ReadOnlyKeyValueStore for View {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let stored = self.read(|engine, snapshot| snapshot.get(&engine.rows, long_keys::place(key)))?;
        Ok(stored.and_then(|stored| long_keys::find(key, stored)).map(|value| read(&value)).is_some())
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        let places = self.read(|engine, snapshot| Ok(snapshot.range(&engine.rows, long_keys::places(range))))?;
        let rows = long_keys::rows(places, range, order);
        Ok(Box::new(FjallCursor { shared: Arc::clone(&self.shared), rows: Opaque(rows), row: None }))
    }

    /// Exact, and as dear as a scan: fjall's own estimate counts deletes.
    fn approximate_num_entries(&self) -> Result<u64> {
        Ok(self.read(|engine, snapshot| snapshot.len(&engine.rows))? as u64)
    }
}

impl Snapshot for View {
    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        Ok(self.partitions("offsets")?.next(partition))
    }

    fn position(&self) -> Result<Position> {
        self.partitions("position")
    }
}

type Rows = Box<dyn Iterator<Item = Result<(Bytes, Bytes)>> + Send>;

#[derive(Debug)]
struct FjallCursor {
    shared: Arc<Shared>,
    rows: Opaque<Rows>,
    row: Option<(Bytes, Bytes)>,
}

impl Cursor for FjallCursor {
    fn advance(&mut self) -> Result<bool> {
        self.row = None;
        self.shared.with(|_| Ok(()))?;
        let row = self.rows.0.next().transpose();
        if row.is_err() {
            // It fails for good: rows after a gap would look complete.
            let again = || Err(Error::new(ErrorKind::Io, "the cursor has failed before"));
            self.rows.0 = Box::new(iter::repeat_with(again));
        }
        self.row = row?;
        Ok(self.row.is_some())
    }

    fn row(&self) -> Option<Row<'_>> {
        self.row.as_ref().map(|(key, value)| (&**key, &**value))
    }
}

/// A [`Backend`] on fjall. Each commit is synced: it survives a power loss.
#[derive(Debug)]
pub struct FjallBackend(Arc<Shared>);

impl FjallBackend {
    fn view(&self) -> Result<View> {
        let snapshot = self.0.with(|engine| Ok(Opaque(engine.database.snapshot())))?;
        Ok(View { shared: Arc::clone(&self.0), snapshot })
    }

    /// fjall's batch for `batch`. It names no key twice, for that would have no order within it.
    fn stage(&self, batch: &WriteBatch) -> Result<OwnedWriteBatch> {
        let view = self.view()?;
        let stored = |place: &[u8]| view.read(|engine, snapshot| snapshot.get(&engine.rows, place));
        let rows = long_keys::changes(batch, stored)?;
        let offsets = batch.offsets().iter().map(|(partition, offset)| (partition.clone(), offset)).collect();
        let mut meta = Vec::new();
        for (name, new) in [("offsets", &offsets), ("position", batch.position())] {
            let mut merged = if batch.forgets_offsets() { Position::new() } else { view.partitions(name)? };
            merged.merge(new);
            meta.push((name, codec::encode_position(&merged)?));
        }
        self.0.with(|engine| {
            let mut writes = engine.database.batch().durability(Some(PersistMode::SyncAll));
            for (place, value) in rows {
                match value {
                    Some(value) => writes.insert(&engine.rows, place, value),
                    None => writes.remove(&engine.rows, place),
                }
            }
            for (name, bytes) in meta {
                writes.insert(&engine.meta, name, bytes);
            }
            Ok(writes)
        })
    }
}

impl ReadOnlyKeyValueStore for FjallBackend {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.view()?.get_with(key, read)
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        self.view()?.scan(range, order)
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        self.view()?.approximate_num_entries()
    }
}

impl Backend for FjallBackend {
    fn capabilities(&self) -> Capabilities {
        Capabilities::persisting(Durability::Sync)
    }

    fn apply(&self, batch: &WriteBatch) -> Result<()> {
        let writes = self.stage(batch).map_err(not_applied)?;
        // An error from here on has no outcome: nobody can tell.
        writes.commit().map_err(failed)
    }

    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.view()?.committed_offset(partition)
    }

    fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.committed_offset(partition)
    }

    fn position(&self) -> Result<Position> {
        self.view()?.position()
    }

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        Ok(Arc::new(self.view()?))
    }

    fn flush(&self) -> Result<()> {
        self.view().map(drop)
    }

    fn wipe(&self) -> Result<()> {
        let mut everything = WriteBatch::new();
        everything.forget_offsets();
        let mut rows = self.all().map_err(not_applied)?;
        while let Some((key, _)) = rows.next_row().map_err(not_applied)? {
            everything.delete(Bytes::copy_from_slice(key));
        }
        self.apply(&everything)
    }

    fn close(&self) -> Result<()> {
        *self.0.0.0.write() = None;
        Ok(())
    }
}

impl Drop for FjallBackend {
    fn drop(&mut self) {
        *self.0.0.0.write() = None;
    }
}

/// Opens [`FjallBackend`]s.
///
/// ```
/// use kstate_api::{Backend, BackendSupplier, ReadOnlyKeyValueStoreExt, WriteBatch};
/// use third_party_store::FjallBackends;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let temporary = tempfile::tempdir()?;
/// # let directory = temporary.path();
/// let backend = FjallBackends.open(directory)?;
/// let mut batch = WriteBatch::new();
/// batch.put("word", "1");
/// backend.apply(&batch)?;
/// backend.close()?;
/// assert_eq!(FjallBackends.open(directory)?.get(b"word")?.unwrap(), "1");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct FjallBackends;

impl BackendSupplier for FjallBackends {
    type Backend = FjallBackend;

    fn persistent(&self) -> bool {
        true
    }

    fn open(&self, directory: &Path) -> Result<FjallBackend> {
        Ok(FjallBackend(Arc::new(Shared::open(directory)?)))
    }

    fn read_offsets(&self, directory: &Path, partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
        if !directory.join("fjall").exists() {
            return Ok(ChangelogOffsets::new());
        }
        let offsets = self.open(directory)?.view()?.partitions("offsets")?;
        Ok(partitions.iter().filter_map(|asked| Some((asked.clone(), offsets.next(asked)?))).collect())
    }
}
