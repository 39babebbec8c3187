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
// Shared between the cache and its snapshots. In one piece, in the partitions' order: a rebalance looks up thousands of
// tasks, of which each has a few partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskOffsets(Arc<[(TopicPartition, CachedOffset)]>);

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
        self.0.iter().find(|(known, _)| known == partition).map(|(_, offset)| *offset)
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

    /// The same, to be changed.
    pub(crate) fn to_map(&self) -> BTreeMap<TopicPartition, CachedOffset> {
        self.0.iter().cloned().collect()
    }
}

impl From<BTreeMap<TopicPartition, CachedOffset>> for TaskOffsets {
    fn from(offsets: BTreeMap<TopicPartition, CachedOffset>) -> Self {
        Self(offsets.into_iter().collect())
    }
}

impl FromIterator<(TopicPartition, CachedOffset)> for TaskOffsets {
    fn from_iter<I: IntoIterator<Item = (TopicPartition, CachedOffset)>>(entries: I) -> Self {
        BTreeMap::from_iter(entries).into()
    }
}
