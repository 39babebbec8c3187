use std::sync::Arc;

use kstate_api::{
    Bytes, ChangelogOffsets, CommitOutcome, Cursor, Error, ErrorKind, KeyRange, KeyValueStore, Offset, Order,
    PartitionPosition, Position, ReadOnlyKeyValueStore, Result, Snapshot, StateStore, TopicPartition, VisitChange,
    WriteBatch,
};

/// A store that manages no offsets: it keeps records, and throws away what else it is given.
#[derive(Debug)]
pub(crate) struct WithoutOffsets<S>(pub(crate) S);

#[deny(clippy::missing_trait_methods)]
impl<S: StateStore> StateStore for WithoutOffsets<S> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn persistent(&self) -> bool {
        self.0.persistent()
    }

    fn manages_offsets(&self) -> bool {
        false
    }

    fn changelog_partitions(&self) -> &[TopicPartition] {
        self.0.changelog_partitions()
    }

    fn commit(&self, changelog_offsets: &ChangelogOffsets) -> Result<()> {
        for (partition, _) in changelog_offsets.iter() {
            if !self.changelog_partitions().contains(partition) {
                let foreign = Error::new(ErrorKind::InvalidArgument, format!("{partition} is not this store's"));
                return Err(foreign.with_commit_outcome(CommitOutcome::NotApplied));
            }
        }
        self.0.commit(&ChangelogOffsets::new())
    }

    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.0.committed_offset(partition).map(|_| None)
    }

    fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.0.durable_offset(partition).map(|_| None)
    }

    fn forget_offsets(&self) -> Result<()> {
        self.0.forget_offsets()
    }

    fn stage_position(&self, partition: &TopicPartition, position: PartitionPosition) -> Result<()> {
        self.0.stage_position(partition, position)
    }

    fn position(&self) -> Result<Position> {
        self.0.position().map(|_| Position::new())
    }

    fn staged_changes(&self, visit: &mut VisitChange<'_>) -> Result<()> {
        self.0.staged_changes(visit)
    }

    fn committed_value(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.0.committed_value(key)
    }

    fn uncommitted_bytes(&self) -> u64 {
        self.0.uncommitted_bytes()
    }

    fn rollback(&self) -> Result<()> {
        self.0.rollback()
    }

    fn restore(&self, batch: &WriteBatch) -> Result<()> {
        let mut records = WriteBatch::new();
        for (key, value) in batch.records() {
            let key = Bytes::copy_from_slice(key);
            match value {
                Some(value) => records.put(key, Bytes::copy_from_slice(value.as_ref())),
                None => records.delete(key),
            }
        }
        for (partition, position) in batch.position().iter() {
            records.set_position(partition.clone(), position.clone());
        }
        self.0.restore(&records)
    }

    fn flush(&self) -> Result<()> {
        self.0.flush()
    }

    fn wipe(&self) -> Result<()> {
        self.0.wipe()
    }

    fn is_open(&self) -> bool {
        self.0.is_open()
    }

    fn close(&self) -> Result<()> {
        self.0.close()
    }
}

#[deny(clippy::missing_trait_methods)]
impl<S: KeyValueStore> ReadOnlyKeyValueStore for WithoutOffsets<S> {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.0.get_with(key, read)
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        self.0.scan(range, order)
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        self.0.approximate_num_entries()
    }
}

#[deny(clippy::missing_trait_methods)]
impl<S: KeyValueStore> KeyValueStore for WithoutOffsets<S> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.put(key, value)
    }

    fn put_all(&self, entries: &[(&[u8], Option<&[u8]>)]) -> Result<()> {
        self.0.put_all(entries)
    }

    fn put_if_absent(&self, key: &[u8], value: &[u8]) -> Result<Option<Bytes>> {
        self.0.put_if_absent(key, value)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.0.delete(key)
    }

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        self.0.snapshot()
    }
}
