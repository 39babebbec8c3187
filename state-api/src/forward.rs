//! Every trait of a store works through `Box<T>`, `Arc<T>` and `&T`, `T` may be a trait object.

use std::{path::Path, sync::Arc};

use bytes::Bytes;

use crate::{
    Backend, Capabilities, ChangelogOffsets, Cursor, KeyRange, KeyValueStore, KeyValueStoreSupplier, Offset, Order,
    PartitionPosition, Position, ReadOnlyKeyValueStore, Result, Snapshot, StateStore, TopicPartition, VisitChange,
    WriteBatch,
};

macro_rules! forward {
    ($pointer:ty) => {
        #[deny(clippy::missing_trait_methods)]
        impl<T: ReadOnlyKeyValueStore + ?Sized> ReadOnlyKeyValueStore for $pointer {
            fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
                (**self).get_with(key, read)
            }
            fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
                (**self).scan(range, order)
            }
            fn approximate_num_entries(&self) -> Result<u64> {
                (**self).approximate_num_entries()
            }
        }

        #[deny(clippy::missing_trait_methods)]
        impl<T: Snapshot + ?Sized> Snapshot for $pointer {
            fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
                (**self).committed_offset(partition)
            }
            fn position(&self) -> Result<Position> {
                (**self).position()
            }
        }

        #[deny(clippy::missing_trait_methods)]
        impl<T: Backend + ?Sized> Backend for $pointer {
            fn capabilities(&self) -> Capabilities {
                (**self).capabilities()
            }
            fn apply(&self, batch: &WriteBatch) -> Result<()> {
                (**self).apply(batch)
            }
            fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
                (**self).committed_offset(partition)
            }
            fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
                (**self).durable_offset(partition)
            }
            fn position(&self) -> Result<Position> {
                (**self).position()
            }
            fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
                (**self).snapshot()
            }
            fn flush(&self) -> Result<()> {
                (**self).flush()
            }
            fn wipe(&self) -> Result<()> {
                (**self).wipe()
            }
            fn close(&self) -> Result<()> {
                (**self).close()
            }
        }

        #[deny(clippy::missing_trait_methods)]
        impl<T: StateStore + ?Sized> StateStore for $pointer {
            fn name(&self) -> &str {
                (**self).name()
            }
            fn persistent(&self) -> bool {
                (**self).persistent()
            }
            fn manages_offsets(&self) -> bool {
                (**self).manages_offsets()
            }
            fn changelog_partitions(&self) -> &[TopicPartition] {
                (**self).changelog_partitions()
            }
            fn commit(&self, changelog_offsets: &ChangelogOffsets) -> Result<()> {
                (**self).commit(changelog_offsets)
            }
            fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
                (**self).committed_offset(partition)
            }
            fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
                (**self).durable_offset(partition)
            }
            fn forget_offsets(&self) -> Result<()> {
                (**self).forget_offsets()
            }
            fn stage_position(&self, partition: &TopicPartition, position: PartitionPosition) -> Result<()> {
                (**self).stage_position(partition, position)
            }
            fn position(&self) -> Result<Position> {
                (**self).position()
            }
            fn staged_changes(&self, visit: &mut VisitChange<'_>) -> Result<()> {
                (**self).staged_changes(visit)
            }
            fn committed_value(&self, key: &[u8]) -> Result<Option<Bytes>> {
                (**self).committed_value(key)
            }
            fn uncommitted_bytes(&self) -> u64 {
                (**self).uncommitted_bytes()
            }
            fn rollback(&self) -> Result<()> {
                (**self).rollback()
            }
            fn restore(&self, batch: &WriteBatch) -> Result<()> {
                (**self).restore(batch)
            }
            fn flush(&self) -> Result<()> {
                (**self).flush()
            }
            fn wipe(&self) -> Result<()> {
                (**self).wipe()
            }
            fn is_open(&self) -> bool {
                (**self).is_open()
            }
            fn close(&self) -> Result<()> {
                (**self).close()
            }
        }

        #[deny(clippy::missing_trait_methods)]
        impl<T: KeyValueStore + ?Sized> KeyValueStore for $pointer {
            fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
                (**self).put(key, value)
            }
            fn put_all(&self, entries: &[(&[u8], Option<&[u8]>)]) -> Result<()> {
                (**self).put_all(entries)
            }
            fn put_if_absent(&self, key: &[u8], value: &[u8]) -> Result<Option<Bytes>> {
                (**self).put_if_absent(key, value)
            }
            fn delete(&self, key: &[u8]) -> Result<()> {
                (**self).delete(key)
            }
            fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
                (**self).snapshot()
            }
        }

        #[deny(clippy::missing_trait_methods)]
        impl<T: KeyValueStoreSupplier + ?Sized> KeyValueStoreSupplier for $pointer {
            fn name(&self) -> &str {
                (**self).name()
            }
            fn persistent(&self) -> bool {
                (**self).persistent()
            }
            fn open(&self, directory: &Path, partitions: &[TopicPartition]) -> Result<Arc<dyn KeyValueStore>> {
                (**self).open(directory, partitions)
            }
            fn read_offsets(&self, directory: &Path, partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
                (**self).read_offsets(directory, partitions)
            }
        }
    };
}

forward!(Box<T>);
forward!(Arc<T>);
forward!(&T);
