use std::sync::Arc;

use bytes::Bytes;

use super::{StagedStore, owned_snapshot::OwnedSnapshot};
use crate::{
    Backend, Cursor, EmptyCursor, KeyRange, KeyValueStore, Order, ReadOnlyKeyValueStore, ReadOnlyKeyValueStoreExt,
    Result, Snapshot, merge_cursor::MergeCursor, staged_rows::StagedRows,
};

impl<B: Backend> ReadOnlyKeyValueStore for StagedStore<B> {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.check_open()?;
        // Taken out of the lock first, for `read` may take its time.
        let staged = self.staged().get(key).map(Option::<&Bytes>::cloned);
        match staged {
            Some(Some(value)) => {
                read(&value);
                Ok(true)
            }
            Some(None) => Ok(false),
            None if key.len() > self.max_key_len => Ok(false),
            None => self.answer(self.backend.get_with(key, read)),
        }
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        self.check_open()?;
        let cursor = |staged, committed| {
            Box::new(MergeCursor::new(staged, committed, order, Arc::clone(&self.lifecycle))) as Box<dyn Cursor>
        };
        if range.is_inverted() {
            tracing::warn!(
                store = &*self.name,
                ?range,
                "the range's start lies after its end, so it is empty; signed numbers do not sort as bytes"
            );
            return Ok(cursor(StagedRows::default(), Box::new(EmptyCursor)));
        }
        // Both views are taken under the lock: a commit empties the overlay only after the engine shows its rows.
        let staged = self.staged();
        let rows = StagedRows::of(staged.shared_records(), range, order);
        Ok(cursor(rows, self.answer(self.backend.scan(&range.within(self.max_key_len), order))?))
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        self.check_open()?;
        let staged = self.staged();
        let puts = staged.records().filter(|(_, value)| value.is_some()).count();
        let deletes = staged.len() - puts;
        let committed = self.answer(self.backend.approximate_num_entries())?;
        Ok(committed.saturating_add(puts as u64).saturating_sub(deletes as u64))
    }
}

impl<B: Backend> KeyValueStore for StagedStore<B> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_open()?;
        self.check_len(key, Some(value))?;
        let value = Bytes::copy_from_slice(value);
        self.stage(|staged| staged.put(key, value))
    }

    fn put_all(&self, entries: &[(&[u8], Option<&[u8]>)]) -> Result<()> {
        self.check_open()?;
        entries.iter().try_for_each(|(key, value)| self.check_len(key, *value))?;
        self.stage(|staged| {
            for (key, value) in entries {
                match value {
                    Some(value) => staged.put(key, Bytes::copy_from_slice(value)),
                    None => staged.delete(key),
                }
            }
        })
    }

    fn put_if_absent(&self, key: &[u8], value: &[u8]) -> Result<Option<Bytes>> {
        self.check_open()?;
        self.check_len(key, Some(value))?;
        let _turn = self.writer();
        let present = self.get(key)?;
        if present.is_none() {
            self.staged_mut().put(key, Bytes::copy_from_slice(value));
        }
        Ok(present)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.check_open()?;
        self.check_len(key, None)?;
        self.stage(|staged| staged.delete(key))
    }

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        self.check_open()?;
        let committed = self.answer(self.backend.snapshot())?;
        Ok(Arc::new(OwnedSnapshot {
            committed,
            changelog_partitions: Arc::clone(&self.changelog_partitions),
            max_key_len: self.max_key_len,
            lifecycle: Arc::clone(&self.lifecycle),
        }))
    }
}
