use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::Path,
    sync::Arc,
};

use fjall::{PersistMode, Readable};
use kstate_api::{
    Backend, BackendSupplier, Bytes, Capabilities, ChangelogOffsets, CommitOutcome, Cursor, CursorExt, Durability,
    Error, KeyRange, Offset, Order, Position, ReadOnlyKeyValueStore, ReadOnlyKeyValueStoreExt, Result, Snapshot,
    TopicPartition, WriteBatch, codec,
};

use crate::{
    engine::{Engine, Open, failed},
    place,
    view::{OFFSET, POSITION, View, offset_key},
};

/// A [`Backend`] on fjall. Each commit is synced: it survives a power loss.
#[derive(Debug)]
pub struct FjallBackend(Arc<Engine>);

impl FjallBackend {
    fn view(&self) -> Result<View> {
        View::new(&self.0)
    }

    /// The engine's batch for `batch`. It names no key twice, for that would have no order within it.
    fn stage(&self, open: &Open, batch: &WriteBatch) -> Result<fjall::OwnedWriteBatch> {
        let mut writes = open.database.batch().durability(Some(PersistMode::SyncAll));
        let view = self.view()?;
        let mut places = BTreeMap::<_, place::Rows>::new();
        for (key, value) in batch.records() {
            let rows = match places.entry(place::of(key.as_ref())) {
                Entry::Vacant(new) if place::is_shared(new.key()) => new.insert(view.rows_beside(key.as_ref())?),
                entry => entry.or_default(),
            };
            let key = Bytes::copy_from_slice(key.as_ref());
            match value {
                Some(value) => rows.insert(key, Bytes::copy_from_slice(value.as_ref())),
                None => rows.remove(&key),
            };
        }
        for (place, rows) in places {
            match place::encode(&place, &rows) {
                _ if rows.is_empty() => writes.remove(&open.rows, place),
                value => writes.insert(&open.rows, place, value),
            }
        }
        let mut position = Position::new();
        if batch.forgets_offsets() {
            for entry in view.snapshot.0.prefix(&open.meta, OFFSET) {
                let key = entry.key().map_err(failed)?;
                if !batch.offsets().iter().any(|(partition, _)| offset_key(partition) == *key) {
                    writes.remove(&open.meta, key);
                }
            }
        } else {
            position = view.position()?;
        }
        position.merge(batch.position());
        writes.insert(&open.meta, POSITION, codec::encode_position(&position)?);
        for (partition, offset) in batch.offsets().iter() {
            writes.insert(&open.meta, offset_key(partition), codec::encode_offset(offset));
        }
        Ok(writes)
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
        let writes = self.0.with(|open| self.stage(open, batch)).map_err(not_applied)?;
        // An error from here on has no outcome: nobody can tell.
        writes.commit().map_err(failed)
    }

    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.view()?.committed_offset(partition)
    }

    /// Each commit is synced.
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
        Ok(FjallBackend(Arc::new(Engine::open(directory)?)))
    }

    fn read_offsets(&self, directory: &Path, partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
        if !Engine::exists(directory) {
            return Ok(ChangelogOffsets::new());
        }
        let backend = self.open(directory)?;
        let offset =
            |partition: &TopicPartition| Ok(backend.committed_offset(partition)?.map(|at| (partition.clone(), at)));
        partitions.iter().filter_map(|partition| offset(partition).transpose()).collect()
    }
}
