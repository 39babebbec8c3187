use std::{fmt, fs::File, iter::Fuse, path::Path, sync::Arc};

use fjall::{
    Database, Guard, Iter, Keyspace, KeyspaceCreateOptions, KvPair, LsmError, OwnedWriteBatch, PersistMode, Readable,
};
use kstate_api::{
    Backend, BackendSupplier, Bytes, Capabilities, ChangelogOffsets, CommitOutcome, Cursor, CursorExt, Durability,
    Error, ErrorKind, KeyRange, Offset, Order, Position, ReadOnlyKeyValueStore, ReadOnlyKeyValueStoreExt, Result, Row,
    Snapshot, TopicPartition, WriteBatch, codec,
};
use parking_lot::RwLock;

use crate::directory;

/// A [`Backend`] on fjall. Each commit is synced: it survives a power loss.
pub struct FjallBackend {
    /// `None` once it is closed: snapshots and cursors that live on find out here.
    engine: Arc<RwLock<Option<Engine>>>,
    /// The commit that this shows, if it is a snapshot of the backend or the view of a cursor.
    kept: Option<fjall::Snapshot>,
}

impl FjallBackend {
    /// All that one call reads is of one commit.
    fn read<T>(&self, read: impl FnOnce(&Engine, &fjall::Snapshot) -> Result<T>) -> Result<T> {
        let engine = self.engine.read();
        let engine = engine.as_ref().ok_or_else(|| Error::new(ErrorKind::Closed, "the store is closed"))?;
        match &self.kept {
            Some(kept) => read(engine, kept),
            None => read(engine, &engine.database.snapshot()),
        }
    }

    /// A view of what `read` would show.
    fn keep(&self) -> Result<Self> {
        let kept = self.read(|_, snapshot| Ok(snapshot.clone()))?;
        Ok(Self { engine: Arc::clone(&self.engine), kept: Some(kept) })
    }

    /// The batch of fjall's: records, offsets and position are one write.
    fn stage(&self, batch: &WriteBatch) -> Result<OwnedWriteBatch> {
        self.read(|engine, snapshot| {
            let mut writes = engine.database.batch().durability(Some(PersistMode::SyncAll));
            for (key, value) in batch.records() {
                match value {
                    Some(value) => writes.insert(&engine.rows, place(key), &**value),
                    None => writes.remove(&engine.rows, place(key)),
                }
            }
            let offsets = batch.offsets().iter().map(|(partition, offset)| (partition.clone(), offset)).collect();
            for (name, new) in [("offsets", &offsets), ("position", batch.position())] {
                let mut marks = if batch.forgets_offsets() { Position::new() } else { engine.marks(snapshot, name)? };
                marks.merge(new);
                writes.insert(&engine.meta, name, codec::encode_position(&marks)?);
            }
            Ok(writes)
        })
    }
}

impl ReadOnlyKeyValueStore for FjallBackend {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.read(|engine, snapshot| snapshot.get(&engine.rows, place(key)).map_err(failed))?;
        Ok(value.map(|value| read(&value)).is_some())
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        let places = (range.start().map(place), range.end().map(place));
        let view = self.keep()?;
        let rows = view.read(|engine, snapshot| Ok(snapshot.range(&engine.rows, places).fuse()))?;
        Ok(Box::new(FjallCursor { view, rows: Some(rows), order, row: None }))
    }

    /// Exact, and as dear as a scan: fjall's own estimate counts deletes.
    fn approximate_num_entries(&self) -> Result<u64> {
        self.read(|engine, snapshot| Ok(snapshot.len(&engine.rows).map_err(failed)? as u64))
    }
}

impl Snapshot for FjallBackend {
    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.read(|engine, snapshot| Ok(engine.marks(snapshot, "offsets")?.next(partition)))
    }

    fn position(&self) -> Result<Position> {
        self.read(|engine, snapshot| engine.marks(snapshot, "position"))
    }
}

fn not_applied(error: Error) -> Error {
    error.with_commit_outcome(CommitOutcome::NotApplied)
}

impl Backend for FjallBackend {
    fn capabilities(&self) -> Capabilities {
        // fjall's keys have 1 to 65 535 bytes, one of which is ours.
        Capabilities::persisting(Durability::Sync).with_max_key_len(65_534)
    }

    fn apply(&self, batch: &WriteBatch) -> Result<()> {
        let writes = self.stage(batch).map_err(not_applied)?;
        // An error from here on has no outcome: nobody can tell.
        writes.commit().map_err(failed)
    }

    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        Snapshot::committed_offset(self, partition)
    }

    fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        Snapshot::committed_offset(self, partition)
    }

    fn position(&self) -> Result<Position> {
        Snapshot::position(self)
    }

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        Ok(Arc::new(self.keep()?))
    }

    fn flush(&self) -> Result<()> {
        self.read(|_, _| Ok(()))
    }

    fn wipe(&self) -> Result<()> {
        let mut everything = WriteBatch::new();
        everything.forget_offsets();
        let delete = |row: Result<(Bytes, Bytes)>| row.map(|(key, _)| everything.delete(key));
        self.all().and_then(|rows| rows.entries().try_for_each(delete)).map_err(not_applied)?;
        self.apply(&everything)
    }

    fn close(&self) -> Result<()> {
        *self.engine.write() = None;
        Ok(())
    }
}

impl Drop for FjallBackend {
    fn drop(&mut self) {
        if self.kept.is_none() {
            *self.engine.write() = None;
        }
    }
}

impl fmt::Debug for FjallBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FjallBackend").finish_non_exhaustive()
    }
}

/// Opens [`FjallBackend`]s.
#[derive(Clone, Copy, Debug, Default)]
pub struct FjallBackends;

impl BackendSupplier for FjallBackends {
    type Backend = FjallBackend;

    fn persistent(&self) -> bool {
        true
    }

    fn open(&self, directory: &Path) -> Result<FjallBackend> {
        Ok(FjallBackend { engine: Arc::new(Some(Engine::open(directory)?).into()), kept: None })
    }

    fn read_offsets(&self, directory: &Path, partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
        let read = || self.open(directory)?.read(|engine, snapshot| engine.marks(snapshot, "offsets"));
        let offsets = if directory.join("fjall").exists() { read()? } else { Position::new() };
        Ok(partitions.iter().filter_map(|asked| Some((asked.clone(), offsets.next(asked)?))).collect())
    }
}

/// What a key is stored as: with a byte before it, for fjall has no empty key.
fn place(key: &[u8]) -> Vec<u8> {
    [&[0], key].concat()
}

/// fjall, open, and the lock on its directory.
struct Engine {
    database: Database,
    rows: Keyspace,
    /// The header, the changelog offsets and the source position.
    meta: Keyspace,
    _lock: File,
}

impl Engine {
    fn open(directory: &Path) -> Result<Self> {
        let (path, lock) = (directory.join("fjall"), directory::lock(directory)?);
        if !path.exists() {
            // fjall cannot go on from a database that a crash left half made.
            directory::make_whole(&path, |path| {
                let new = Database::builder(path).open().map_err(failed)?;
                let meta = new.keyspace("meta", KeyspaceCreateOptions::default).map_err(failed)?;
                meta.insert("header", codec::encode_header("fjall")).map_err(failed)?;
                new.persist(PersistMode::SyncAll).map_err(failed)
            })?;
        }
        let database = Database::builder(&path).open().map_err(failed)?;
        let keyspace = |name| database.keyspace(name, KeyspaceCreateOptions::default).map_err(failed);
        let (rows, meta) = (keyspace("rows")?, keyspace("meta")?);
        codec::check_header(&meta.get("header").map_err(failed)?.unwrap_or_default(), "fjall")?;
        Ok(Self { database, rows, meta, _lock: lock })
    }

    /// The `offsets` or the `position`: both are a map from partitions to numbers.
    fn marks(&self, snapshot: &fjall::Snapshot, name: &str) -> Result<Position> {
        let bytes = snapshot.get(&self.meta, name).map_err(failed)?;
        bytes.map_or(Ok(Position::new()), |bytes| codec::decode_position(&bytes))
    }
}

struct FjallCursor {
    view: FjallBackend,
    /// `None` once it has failed: rows after a gap would look complete.
    rows: Option<Fuse<Iter>>,
    order: Order,
    row: Option<KvPair>,
}

impl Cursor for FjallCursor {
    fn advance(&mut self) -> Result<bool> {
        self.row = None;
        self.view.read(|_, _| Ok(()))?;
        let rows = self.rows.as_mut().ok_or_else(|| Error::new(ErrorKind::Io, "the cursor has failed before"))?;
        let row = if self.order == Order::Ascending { rows.next() } else { rows.next_back() };
        self.row = row.map(Guard::into_inner).transpose().map_err(failed).inspect_err(|_| self.rows = None)?;
        Ok(self.row.is_some())
    }

    fn row(&self) -> Option<Row<'_>> {
        self.row.as_ref().and_then(|(key, value)| Some((key.get(1..)?, &**value)))
    }
}

impl fmt::Debug for FjallCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FjallCursor").finish_non_exhaustive()
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
