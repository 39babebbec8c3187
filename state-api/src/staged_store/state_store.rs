use bytes::Bytes;

use super::StagedStore;
use crate::{
    Backend, ChangelogOffsets, CommitOutcome, Offset, PartitionPosition, Position, ReadOnlyKeyValueStoreExt, Result,
    StateStore, TopicPartition, VisitChange, WriteBatch,
};

impl<B: Backend> StateStore for StagedStore<B> {
    fn name(&self) -> &str {
        &self.name
    }

    fn persistent(&self) -> bool {
        self.backend.capabilities().persistent()
    }

    fn manages_offsets(&self) -> bool {
        true
    }

    fn changelog_partitions(&self) -> &[TopicPartition] {
        &self.changelog_partitions
    }

    fn commit(&self, changelog_offsets: &ChangelogOffsets) -> Result<()> {
        let _turn = self.writer();
        not_applied(self.check_open().and_then(|()| self.check_owned(changelog_offsets)))?;
        self.staged_mut().set_offsets(changelog_offsets);
        let committed = {
            let staged = self.staged();
            if staged.is_empty() { Ok(()) } else { self.step(|backend| backend.apply(&staged)) }
        };
        match committed {
            Ok(()) => {
                // Freed outside the lock: readers need not wait for it.
                let applied = self.staged_mut().take();
                tracing::trace!(store = &*self.name, records = applied.len(), "committed");
                Ok(())
            }
            Err(error) => {
                self.staged_mut().clear_offsets();
                tracing::warn!(store = &*self.name, %error, "commit failed");
                Err(error)
            }
        }
    }

    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.check_open()?;
        // An offset of another task's partition may lie in the store's files; it is nobody's business here.
        if self.owns(partition) { self.answer(self.backend.committed_offset(partition)) } else { Ok(None) }
    }

    fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.check_open()?;
        if self.owns(partition) { self.answer(self.backend.durable_offset(partition)) } else { Ok(None) }
    }

    fn forget_offsets(&self) -> Result<()> {
        let _turn = self.writer();
        not_applied(self.check_open())?;
        let mut batch = WriteBatch::new();
        batch.forget_offsets();
        self.step(|backend| backend.apply(&batch))
    }

    fn stage_position(&self, partition: &TopicPartition, position: PartitionPosition) -> Result<()> {
        self.check_open()?;
        self.answer(partition.validate())?;
        self.stage(|staged| staged.set_position(partition.clone(), position))
    }

    fn position(&self) -> Result<Position> {
        self.check_open()?;
        self.answer(self.backend.position())
    }

    fn staged_changes(&self, visit: &mut VisitChange<'_>) -> Result<()> {
        self.check_open()?;
        self.staged().records().try_for_each(|(key, value)| visit(key, value.map(Bytes::as_ref)))
    }

    fn committed_value(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.check_open()?;
        if key.len() > self.max_key_len {
            return Ok(None);
        }
        self.answer(self.backend.get(key))
    }

    fn uncommitted_bytes(&self) -> u64 {
        self.staged().byte_size() as u64
    }

    fn rollback(&self) -> Result<()> {
        self.stage(|staged| *staged = WriteBatch::new())
    }

    fn restore(&self, batch: &WriteBatch) -> Result<()> {
        let _turn = self.writer();
        not_applied(self.check_open().and_then(|()| self.check_owned(batch.offsets())))?;
        let possible = batch.position().iter().try_for_each(|(partition, _)| partition.validate());
        not_applied(self.answer(possible))?;
        let mut records = batch.records();
        not_applied(records.try_for_each(|(key, value)| self.check_len(key, value.map(Bytes::as_ref))))?;
        if !self.staged().is_empty() {
            let message = "cannot restore over staged writes; commit them or roll them back";
            return not_applied(self.refuse(message.into()));
        }
        self.step(|backend| backend.apply(batch))
    }

    fn flush(&self) -> Result<()> {
        let _turn = self.writer();
        self.check_open()?;
        self.answer(self.backend.flush())
    }

    fn wipe(&self) -> Result<()> {
        let _turn = self.writer();
        not_applied(self.check_open())?;
        self.step(B::wipe)?;
        *self.staged_mut() = WriteBatch::new();
        tracing::info!(store = &*self.name, "wiped");
        Ok(())
    }

    fn is_open(&self) -> bool {
        self.lifecycle.is_open()
    }

    fn close(&self) -> Result<()> {
        let _turn = self.writer();
        if !self.lifecycle.close() {
            return Ok(());
        }
        *self.staged_mut() = WriteBatch::new();
        tracing::debug!(store = &*self.name, "store closed");
        self.answer(self.backend.close())
    }
}

/// A refusal before anything was tried, as the answer of a call that commits.
fn not_applied<T>(result: Result<T>) -> Result<T> {
    result.map_err(|error| error.with_commit_outcome(CommitOutcome::NotApplied))
}
