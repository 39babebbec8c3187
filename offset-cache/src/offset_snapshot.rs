use imbl::OrdMap;
use kstate_api::{TaskId, TopicPartition};

use crate::{CachedOffset, TaskOffsets, in_order::InOrder};

/// What an [`OffsetCache`](crate::OffsetCache) had at one moment, whole: what one rebalance is answered from.
///
/// Making one costs the same however many tasks there are, and it can be kept as long as wanted: nobody waits for it.
///
/// ```
/// use kstate_api::{TaskId, TopicPartition};
/// use kstate_offset_cache::OffsetCache;
///
/// let snapshot = OffsetCache::new().snapshot();
/// let changelog = TopicPartition::new("counts-changelog", 1);
/// assert_eq!(snapshot.get(TaskId::new(0, 1), &changelog), None);
/// assert_eq!(snapshot.iter().count(), 0);
/// ```
#[derive(Clone, Debug, Default)]
pub struct OffsetSnapshot(OrdMap<TaskId, TaskOffsets>);

impl OffsetSnapshot {
    pub(crate) const fn new(tasks: OrdMap<TaskId, TaskOffsets>) -> Self {
        Self(tasks)
    }

    /// What was known of `partition` of `task`; `None` if there was no copy here that could be resumed.
    ///
    /// ```
    /// # use kstate_api::{TaskId, TopicPartition};
    /// # use kstate_offset_cache::OffsetSnapshot;
    /// let changelog = TopicPartition::new("counts-changelog", 1);
    /// assert_eq!(OffsetSnapshot::default().get(TaskId::new(0, 1), &changelog), None);
    /// ```
    #[must_use]
    pub fn get(&self, task: TaskId, partition: &TopicPartition) -> Option<CachedOffset> {
        self.task(task)?.get(partition)
    }

    /// What was known of `task`; `None` if nothing was.
    ///
    /// ```
    /// # use kstate_api::TaskId;
    /// # use kstate_offset_cache::OffsetSnapshot;
    /// assert_eq!(OffsetSnapshot::default().task(TaskId::new(0, 1)), None);
    /// ```
    #[must_use]
    pub fn task(&self, task: TaskId) -> Option<&TaskOffsets> {
        self.0.get(&task)
    }

    /// For many tasks one after the other.
    pub(crate) fn in_order(&self) -> InOrder<'_, TaskId, &TaskOffsets> {
        InOrder::new(self.iter(), |from| self.0.range(from..).map(|(task, offsets)| (*task, offsets)))
    }

    /// The tasks of which anything was known, in order.
    ///
    /// ```
    /// # use kstate_offset_cache::OffsetSnapshot;
    /// assert_eq!(OffsetSnapshot::default().iter().count(), 0);
    /// ```
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (TaskId, &TaskOffsets)> {
        self.0.iter().map(|(task, offsets)| (*task, offsets))
    }
}
