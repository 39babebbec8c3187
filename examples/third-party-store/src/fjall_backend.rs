use std::{path::Path, sync::Arc};

use fjall::{OwnedWriteBatch, PersistMode, Readable};
use kstate_api::{
    Backend, BackendSupplier, Bytes, Capabilities, ChangelogOffsets, CommitOutcome, Cursor, CursorExt, Durability,
    Error, KeyRange, Offset, Order, Position, ReadOnlyKeyValueStore, ReadOnlyKeyValueStoreExt, Result, Snapshot,
    TopicPartition, WriteBatch, codec,
};

mod engine;
mod long_keys;
mod view;

use engine::{Opaque, Shared, failed};
use view::View;

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

fn not_applied(error: Error) -> Error {
    error.with_commit_outcome(CommitOutcome::NotApplied)
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
        self.0.close();
        Ok(())
    }
}

impl Drop for FjallBackend {
    fn drop(&mut self) {
        self.0.close();
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
