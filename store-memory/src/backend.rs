use std::{fmt, sync::Arc};

use kstate_api::{
    Backend, Capabilities, CommitOutcome, Cursor, Error, KeyRange, Offset, Order, Position, ReadOnlyKeyValueStore,
    Result, Snapshot, TopicPartition, WriteBatch,
};

use crate::{snapshot::MemorySnapshot, state::Shared};

/// A [`Backend`] that lives in memory and ends with it.
///
/// ```
/// use kstate_api::{Backend, ReadOnlyKeyValueStoreExt, WriteBatch};
/// use kstate_store_memory::MemoryBackend;
///
/// # fn main() -> kstate_api::Result<()> {
/// let backend = MemoryBackend::new();
/// let mut batch = WriteBatch::new();
/// batch.put("key", "value");
/// backend.apply(&batch)?;
/// assert_eq!(backend.get(b"key")?.unwrap(), "value");
/// assert!(!backend.capabilities().persistent());
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct MemoryBackend {
    shared: Arc<Shared>,
}

impl MemoryBackend {
    /// An empty backend, open.
    ///
    /// ```
    /// # use kstate_store_memory::MemoryBackend;
    /// use kstate_api::ReadOnlyKeyValueStore;
    /// assert_eq!(MemoryBackend::new().approximate_num_entries().unwrap(), 0);
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

/// Only `Closed` can fail a step here, and that was noticed before it.
fn not_applied(error: Error) -> Error {
    error.with_commit_outcome(CommitOutcome::NotApplied)
}

impl ReadOnlyKeyValueStore for MemoryBackend {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        // A handle of its own: `read` runs without a lock.
        Ok(self.shared.current()?.rows.get(key).map(|row| read(row.value())).is_some())
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        MemorySnapshot::new(&self.shared)?.scan(range, order)
    }

    /// Exact here.
    fn approximate_num_entries(&self) -> Result<u64> {
        Ok(self.shared.current()?.rows.len() as u64)
    }
}

impl Backend for MemoryBackend {
    fn capabilities(&self) -> Capabilities {
        Capabilities::volatile()
    }

    fn apply(&self, batch: &WriteBatch) -> Result<()> {
        self.shared.apply(batch).map_err(not_applied)
    }

    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        Ok(self.shared.current()?.offsets.get(partition))
    }

    fn durable_offset(&self, _partition: &TopicPartition) -> Result<Option<Offset>> {
        self.shared.check_open()?;
        Ok(None)
    }

    fn position(&self) -> Result<Position> {
        Ok(self.shared.current()?.position.clone())
    }

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        Ok(Arc::new(MemorySnapshot::new(&self.shared)?))
    }

    fn flush(&self) -> Result<()> {
        self.shared.check_open()
    }

    fn wipe(&self) -> Result<()> {
        self.shared.wipe().map_err(not_applied)
    }

    fn close(&self) -> Result<()> {
        self.shared.close();
        Ok(())
    }
}

impl Drop for MemoryBackend {
    fn drop(&mut self) {
        // Cursors and snapshots live on and must say that it is closed.
        self.shared.close();
    }
}

impl fmt::Debug for MemoryBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.shared.current().map(|state| state.rows.len());
        f.debug_struct("MemoryBackend").field("open", &entries.is_ok()).field("entries", &entries.ok()).finish()
    }
}
