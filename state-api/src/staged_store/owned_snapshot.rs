use std::sync::Arc;

use crate::{
    Cursor, KeyRange, Offset, Order, Position, ReadOnlyKeyValueStore, Result, Snapshot, TopicPartition,
    lifecycle::Lifecycle,
};

/// A backend's snapshot, which shows the offsets of the store's own partitions only (clause O5), and is not asked for
/// keys that are too long for the backend.
#[derive(Debug)]
pub(super) struct OwnedSnapshot {
    pub(super) committed: Arc<dyn Snapshot>,
    pub(super) changelog_partitions: Arc<[TopicPartition]>,
    pub(super) max_key_len: usize,
    pub(super) lifecycle: Arc<Lifecycle>,
}

#[deny(clippy::missing_trait_methods)]
impl ReadOnlyKeyValueStore for OwnedSnapshot {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        if key.len() > self.max_key_len {
            return self.lifecycle.check_not_closed().map(|()| false);
        }
        self.committed.get_with(key, read)
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        self.committed.scan(&range.within(self.max_key_len), order)
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        self.committed.approximate_num_entries()
    }
}

#[deny(clippy::missing_trait_methods)]
impl Snapshot for OwnedSnapshot {
    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        let offset = self.committed.committed_offset(partition)?;
        // Asked all the same: a closed store says so.
        Ok(offset.filter(|_| self.changelog_partitions.contains(partition)))
    }

    fn position(&self) -> Result<Position> {
        self.committed.position()
    }
}
