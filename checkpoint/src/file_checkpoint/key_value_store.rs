use std::sync::Arc;

use kstate_api::{
    Bytes, Cursor, KeyRange, KeyValueStore, Offset, Order, Position, ReadOnlyKeyValueStore, Result, Snapshot,
    TopicPartition,
};

use super::{FileCheckpoint, Marks};

#[deny(clippy::missing_trait_methods)]
impl<S: KeyValueStore> ReadOnlyKeyValueStore for FileCheckpoint<S> {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.check()?;
        self.store.get_with(key, read)
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        self.check()?;
        self.store.scan(range, order)
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        self.check()?;
        self.store.approximate_num_entries()
    }
}

#[deny(clippy::missing_trait_methods)]
impl<S: KeyValueStore> KeyValueStore for FileCheckpoint<S> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let _turn = self.turn();
        self.check()?;
        self.store.put(key, value)
    }

    fn put_all(&self, entries: &[(&[u8], Option<&[u8]>)]) -> Result<()> {
        let _turn = self.turn();
        self.check()?;
        self.store.put_all(entries)
    }

    fn put_if_absent(&self, key: &[u8], value: &[u8]) -> Result<Option<Bytes>> {
        let _turn = self.turn();
        self.check()?;
        self.store.put_if_absent(key, value)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        let _turn = self.turn();
        self.check()?;
        self.store.delete(key)
    }

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        self.check()?;
        let owned = self.store.changelog_partitions();
        // No commit comes between the two.
        let committed = self.committed();
        let snapshot = self.store.snapshot()?;
        let offsets = owned.iter().filter_map(|owned| Some((owned.clone(), committed.offsets.get(owned)?))).collect();
        let marks = Marks { offsets, position: committed.position.clone() };
        Ok(Arc::new(MarkedSnapshot { snapshot, marks }))
    }
}

/// A snapshot of the store, with the offsets and the position that belong to it.
#[derive(Debug)]
struct MarkedSnapshot {
    snapshot: Arc<dyn Snapshot>,
    marks: Marks,
}

#[deny(clippy::missing_trait_methods)]
impl ReadOnlyKeyValueStore for MarkedSnapshot {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.snapshot.get_with(key, read)
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        self.snapshot.scan(range, order)
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        self.snapshot.approximate_num_entries()
    }
}

#[deny(clippy::missing_trait_methods)]
impl Snapshot for MarkedSnapshot {
    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        // Asked for its errors: a snapshot of a closed store is closed.
        self.snapshot.committed_offset(partition)?;
        Ok(self.marks.offsets.get(partition))
    }

    fn position(&self) -> Result<Position> {
        self.snapshot.position()?;
        Ok(self.marks.position.clone())
    }
}
