use std::{path::Path, sync::Arc};

use kstate_api::{
    BackendSupplier, ChangelogOffsets, CursorExt, KeyRange, KeyValueStore, KeyValueStoreSupplier, Offset, Order,
    ReadOnlyKeyValueStoreExt, StagedSupplier, TopicPartition,
};

use crate::{
    Result,
    data::{self, Key},
    digest::{Contents, Digest},
    store::{CHANGELOG, Store, decode_count, is_commit_due, last_offset},
};

/// A kstate store, behind the pointer that a supplier gives to its user.
pub(crate) struct KstateStore {
    store: Arc<dyn KeyValueStore>,
    changelog: TopicPartition,
}

impl KstateStore {
    pub(crate) fn open(backends: impl BackendSupplier, directory: &Path) -> Result<Self> {
        let changelog = TopicPartition::new(CHANGELOG, 0);
        let store = StagedSupplier::new("bench", backends)?.open(directory, std::slice::from_ref(&changelog))?;
        Ok(Self { store, changelog })
    }

    /// Stages records as they are already, so that reads go through an overlay and find the same.
    pub(crate) fn stage(&self, records: impl Iterator<Item = u64>) -> Result<()> {
        for index in records {
            self.store.put(&data::key(index), &data::value(index))?;
        }
        Ok(())
    }

    fn commit(&self, count: u64) -> Result<()> {
        let offset = Offset::new(i64::try_from(last_offset(count))?).ok_or("a negative offset")?;
        let offsets = ChangelogOffsets::new().with(self.changelog.clone(), offset);
        Ok(self.store.commit(&offsets)?)
    }
}

impl Store for KstateStore {
    fn load(&mut self, records: u64, commit_every: u64) -> Result<()> {
        for index in 0..records {
            self.store.put(&data::key(index), &data::value(index))?;
            if is_commit_due(index + 1, records, commit_every) {
                self.commit(index + 1)?;
            }
        }
        Ok(())
    }

    fn update(&mut self, keys: &[Key], commit_every: u64) -> Result<()> {
        for (count, key) in (1..).zip(keys) {
            let mut found = 0;
            self.store.get_with(key, &mut |value| found = decode_count(Some(value)))?;
            self.store.put(key, &(found + 1).to_be_bytes())?;
            if is_commit_due(count, keys.len() as u64, commit_every) {
                self.commit(count)?;
            }
        }
        Ok(())
    }

    fn get(&mut self, keys: &[Key]) -> Result<Digest> {
        let mut digest = Digest::default();
        for key in keys {
            self.store.get_with(key, &mut |value| digest.look_at_value(value))?;
        }
        Ok(digest)
    }

    fn range(&mut self, starts: &[Key], rows: usize) -> Result<Digest> {
        let mut digest = Digest::default();
        for start in starts {
            let mut cursor = self.store.scan(&KeyRange::from(start), Order::Ascending)?;
            for _ in 0..rows {
                let Some((key, value)) = cursor.next_row()? else { break };
                digest.look_at_row(key, value);
            }
        }
        Ok(digest)
    }

    fn contents(&mut self) -> Result<Contents> {
        let mut rows = Digest::default();
        let snapshot = self.store.snapshot()?;
        let mut cursor = snapshot.all()?;
        while let Some((key, value)) = cursor.next_row()? {
            rows.read_row(key, value);
        }
        let offset = self.store.committed_offset(&self.changelog)?;
        Ok(Contents { rows, offset: offset.map(|offset| offset.get().unsigned_abs()) })
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.store.close()?)
    }
}
