use std::{collections::BTreeMap, sync::Arc};

use kstate_api::TopicPartition;

use crate::CachedOffset;

/// What is known of one task's changelog partitions.
///
/// ```
/// use kstate_api::{Offset, TopicPartition};
/// use kstate_offset_cache::{CachedOffset, TaskOffsets};
///
/// let changelog = TopicPartition::new("counts-changelog", 1);
/// let offsets = TaskOffsets::from_iter([(changelog.clone(), CachedOffset::At(Offset::ZERO))]);
/// assert_eq!(offsets.get(&changelog), Some(CachedOffset::At(Offset::ZERO)));
/// ```
// Shared between the cache and its snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskOffsets(Arc<BTreeMap<TopicPartition, CachedOffset>>);

impl TaskOffsets {
    /// What is known of `partition`; `None` if there is no copy of it here that could be resumed.
    ///
    /// ```
    /// # use kstate_api::TopicPartition;
    /// # use kstate_offset_cache::TaskOffsets;
    /// assert_eq!(TaskOffsets::default().get(&TopicPartition::new("counts-changelog", 1)), None);
    /// ```
    #[must_use]
    pub fn get(&self, partition: &TopicPartition) -> Option<CachedOffset> {
        self.0.get(partition).copied()
    }

    /// The partitions, in order, and what is known of them.
    ///
    /// ```
    /// # use kstate_offset_cache::TaskOffsets;
    /// assert_eq!(TaskOffsets::default().iter().count(), 0);
    /// ```
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&TopicPartition, CachedOffset)> {
        self.0.iter().map(|(partition, offset)| (partition, *offset))
    }

    /// Whether nothing is known of any partition.
    ///
    /// ```
    /// # use kstate_offset_cache::TaskOffsets;
    /// assert!(TaskOffsets::default().is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The map to change, copied if a snapshot has it too.
    pub(crate) fn change(&mut self) -> &mut BTreeMap<TopicPartition, CachedOffset> {
        Arc::make_mut(&mut self.0)
    }
}

impl FromIterator<(TopicPartition, CachedOffset)> for TaskOffsets {
    fn from_iter<I: IntoIterator<Item = (TopicPartition, CachedOffset)>>(entries: I) -> Self {
        Self(Arc::new(entries.into_iter().collect()))
    }
}
