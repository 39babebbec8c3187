use std::{fmt, sync::Arc};

use kstate_api::{Cursor, KeyRange, Offset, Order, Position, ReadOnlyKeyValueStore, Result, Snapshot, TopicPartition};

use crate::{
    cursor::MemoryCursor,
    state::{Shared, State},
};

/// One commit of a store, kept.
pub(crate) struct MemorySnapshot {
    shared: Arc<Shared>,
    state: Arc<State>,
}

impl MemorySnapshot {
    pub(crate) fn new(shared: &Arc<Shared>) -> Result<Self> {
        Ok(Self { shared: Arc::clone(shared), state: shared.current()? })
    }

    fn state(&self) -> Result<&State> {
        self.shared.check_open()?;
        Ok(&self.state)
    }
}

impl ReadOnlyKeyValueStore for MemorySnapshot {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.state()?.rows.get(key).map(|row| read(row.value())).is_some())
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        let rows = self.state()?.rows.clone();
        Ok(Box::new(MemoryCursor::new(Arc::clone(&self.shared), rows, range, order)))
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        Ok(self.state()?.rows.len() as u64)
    }
}

impl Snapshot for MemorySnapshot {
    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        Ok(self.state()?.offsets.get(partition))
    }

    fn position(&self) -> Result<Position> {
        Ok(self.state()?.position.clone())
    }
}

impl fmt::Debug for MemorySnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let State { rows, offsets, position } = &*self.state;
        f.debug_struct("MemorySnapshot")
            .field("entries", &rows.len())
            .field("offsets", offsets)
            .field("position", position)
            .finish_non_exhaustive()
    }
}
