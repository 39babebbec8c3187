//! A store in whose commit a process dies when it is told to.

use std::sync::Arc;

use kstate_api::{
    Bytes, ChangelogOffsets, KeyValueStore, Offset, PartitionPosition, Position, Result, StateStore, TopicPartition,
    VisitChange, WriteBatch,
};

use crate::{death::Death, job::Step};

/// The second store of the task. Whoever commits it has committed the first.
#[derive(Debug)]
pub(crate) struct DyingStore {
    pub(crate) below: Arc<dyn KeyValueStore>,
    pub(crate) death: Arc<Death>,
}

#[deny(clippy::missing_trait_methods)]
impl StateStore for DyingStore {
    fn name(&self) -> &str {
        self.below.name()
    }

    fn persistent(&self) -> bool {
        self.below.persistent()
    }

    fn manages_offsets(&self) -> bool {
        self.below.manages_offsets()
    }

    fn changelog_partitions(&self) -> &[TopicPartition] {
        self.below.changelog_partitions()
    }

    fn commit(&self, changelog_offsets: &ChangelogOffsets) -> Result<()> {
        self.death.comes_at(Step::SecondStoreCommit);
        self.below.commit(changelog_offsets)
    }

    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.below.committed_offset(partition)
    }

    fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.below.durable_offset(partition)
    }

    fn forget_offsets(&self) -> Result<()> {
        self.below.forget_offsets()
    }

    fn stage_position(&self, partition: &TopicPartition, position: PartitionPosition) -> Result<()> {
        self.below.stage_position(partition, position)
    }

    fn position(&self) -> Result<Position> {
        self.below.position()
    }

    fn staged_changes(&self, visit: &mut VisitChange<'_>) -> Result<()> {
        self.below.staged_changes(visit)
    }

    fn committed_value(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.below.committed_value(key)
    }

    fn uncommitted_bytes(&self) -> u64 {
        self.below.uncommitted_bytes()
    }

    fn rollback(&self) -> Result<()> {
        self.below.rollback()
    }

    fn restore(&self, batch: &WriteBatch) -> Result<()> {
        self.below.restore(batch)
    }

    fn flush(&self) -> Result<()> {
        self.below.flush()
    }

    fn wipe(&self) -> Result<()> {
        self.below.wipe()
    }

    fn is_open(&self) -> bool {
        self.below.is_open()
    }

    fn close(&self) -> Result<()> {
        self.below.close()
    }
}
