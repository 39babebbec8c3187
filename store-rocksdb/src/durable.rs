use kstate_api::{ChangelogOffsets, Offset, Result, TopicPartition, WriteBatch};

/// What is known of the offsets that a power loss would leave.
///
/// It would leave the store at the last flush or at any commit since. So the offset that is left *at least* is the
/// lowest of those commits', and none if one of them had none.
#[derive(Debug)]
pub(crate) struct DurableOffsets {
    lowest: ChangelogOffsets,
    /// Whether offsets only rose since the last flush, so that any later commit has a higher one.
    rising: bool,
}

impl DurableOffsets {
    /// Just after everything was made durable.
    pub(crate) const fn flushed(offsets: ChangelogOffsets) -> Self {
        Self { lowest: offsets, rising: true }
    }

    /// Takes note of a batch that is about to be applied to a store with the offsets `before`.
    pub(crate) fn before_apply(&mut self, batch: &WriteBatch, before: &ChangelogOffsets) {
        if batch.forgets_offsets() {
            *self = Self { lowest: ChangelogOffsets::new(), rising: false };
            return;
        }
        for (partition, offset) in batch.offsets().iter() {
            if before.get(partition).is_some_and(|before| before > offset) {
                self.rising = false;
            }
            if self.lowest.get(partition).is_some_and(|lowest| lowest > offset) {
                self.lowest.insert(partition.clone(), offset);
            }
        }
    }

    /// The offset of `partition` that is left at least. `flushed` asks the engine for the one that is on disk now,
    /// which may be later than the last flush that was asked for.
    pub(crate) fn at_least(
        &self,
        partition: &TopicPartition,
        flushed: impl FnOnce() -> Result<Option<Offset>>,
    ) -> Result<Option<Offset>> {
        if self.rising { flushed() } else { Ok(self.lowest.get(partition)) }
    }

    /// The offset of `partition` that is left at least, if the engine cannot tell more.
    pub(crate) fn lowest(&self, partition: &TopicPartition) -> Option<Offset> {
        self.lowest.get(partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition() -> TopicPartition {
        TopicPartition::new("counts-changelog", 0)
    }

    fn offsets(value: i64) -> ChangelogOffsets {
        ChangelogOffsets::new().with(partition(), Offset::new(value).unwrap())
    }

    fn apply(durable: &mut DurableOffsets, before: i64, after: i64) {
        let mut batch = WriteBatch::new();
        batch.set_offsets(&offsets(after));
        durable.before_apply(&batch, &offsets(before));
    }

    fn known(durable: &DurableOffsets, on_disk: i64) -> Option<i64> {
        durable.at_least(&partition(), || Ok(Offset::new(on_disk))).unwrap().map(Offset::get)
    }

    #[test]
    fn what_is_on_disk_counts_while_offsets_rise() {
        let mut durable = DurableOffsets::flushed(offsets(10));
        apply(&mut durable, 10, 20);
        assert_eq!(known(&durable, 15), Some(15));
        assert_eq!(durable.lowest(&partition()), Offset::new(10));
    }

    #[test]
    fn a_lower_offset_may_be_the_one_that_is_left() {
        let mut durable = DurableOffsets::flushed(offsets(10));
        apply(&mut durable, 10, 20);
        apply(&mut durable, 20, 8);
        apply(&mut durable, 8, 30);
        assert_eq!(known(&durable, 20), Some(8));
        // Not below the last flush, but below what may be on disk.
        let mut durable = DurableOffsets::flushed(offsets(10));
        apply(&mut durable, 10, 20);
        apply(&mut durable, 20, 15);
        assert_eq!(known(&durable, 20), Some(10));
    }

    #[test]
    fn after_forgetting_none_may_be_left() {
        let mut durable = DurableOffsets::flushed(offsets(10));
        let mut forget = WriteBatch::new();
        forget.forget_offsets();
        durable.before_apply(&forget, &offsets(10));
        apply(&mut durable, 0, 20);
        assert_eq!(known(&durable, 10), None);
        assert_eq!(durable.lowest(&partition()), None);
    }
}
