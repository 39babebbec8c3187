use std::{collections::BTreeMap, mem};

use kstate_api::{TaskId, TopicPartition};

use crate::{AllLogEnds, CachedOffset, Lag, OffsetSnapshot, PartitionLag, TaskLag};

/// The lag of every task, made once for a rebalance from what the cache knows and what the brokers say.
///
/// ```
/// use std::collections::HashMap;
///
/// use kstate_api::{Offset, TaskId, TopicPartition};
/// use kstate_offset_cache::{AllLogEnds, CachedOffset, Lag, LogEnds, TaskLags};
///
/// let (task, changelog) = (TaskId::new(0, 0), TopicPartition::new("counts-changelog", 0));
/// let cached = HashMap::from([(changelog.clone(), CachedOffset::At(Offset::new(41).unwrap()))]);
/// let ends = LogEnds { start: Offset::ZERO, end: Offset::new(50).unwrap() };
/// let ends = AllLogEnds::from_iter([(changelog.clone(), Ok(ends))]);
///
/// let tasks = [(task, vec![changelog])];
/// let lags = TaskLags::new(&tasks, |_, partition| cached.get(partition).copied(), &ends);
/// assert_eq!(lags.get(task).unwrap().total(), Lag::Behind(8));
/// ```
// In the tasks' order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskLags(Vec<(TaskId, TaskLag)>);

impl TaskLags {
    /// The lags of `tasks`, each with all the changelog partitions of its stores.
    ///
    /// `cached` tells what is known of a task's copy of a partition. The cache knows stores on disk only: for a task
    /// that is owned here, let `cached` answer for its stores in memory too, or they count as their whole logs, which is
    /// what they have to restore anywhere else.
    ///
    /// Only the partitions named here are counted, whatever else `cached` knows.
    ///
    /// ```
    /// use kstate_api::{TaskId, TopicPartition};
    /// use kstate_offset_cache::{AllLogEnds, Lag, TaskLags};
    ///
    /// // No end is known: that is no lag of 0.
    /// let tasks = [(TaskId::new(0, 0), [TopicPartition::new("counts-changelog", 0)])];
    /// let lags = TaskLags::new(&tasks, |_, _| None, &AllLogEnds::new());
    /// assert_eq!(lags.get(TaskId::new(0, 0)).unwrap().total(), Lag::Unknown);
    /// ```
    #[must_use]
    pub fn new<P: AsRef<[TopicPartition]>>(
        tasks: &[(TaskId, P)],
        mut cached: impl FnMut(TaskId, &TopicPartition) -> Option<CachedOffset>,
        ends: &AllLogEnds,
    ) -> Self {
        let mut ends = ends.in_order();
        let lags = tasks.iter().map(|(task, partitions)| {
            let partitions = partitions.as_ref().iter();
            let lags = partitions.map(|partition| {
                (partition, PartitionLag::new(partition, cached(*task, partition), ends.get(partition)))
            });
            (*task, TaskLag::new(lags))
        });
        Self::sorted(tasks, lags.collect())
    }

    /// The same, where a snapshot of the cache knows everything, as for a member's copies of tasks that it does not own.
    /// For thousands of tasks in order it is the fastest.
    ///
    /// ```
    /// use kstate_api::{TaskId, TopicPartition};
    /// use kstate_offset_cache::{AllLogEnds, Lag, OffsetCache, TaskLags};
    ///
    /// let tasks = [(TaskId::new(0, 0), [TopicPartition::new("counts-changelog", 0)])];
    /// let lags = TaskLags::of_snapshot(&tasks, &OffsetCache::new().snapshot(), &AllLogEnds::new());
    /// assert_eq!(lags.get(TaskId::new(0, 0)).unwrap().total(), Lag::Unknown);
    /// ```
    #[must_use]
    pub fn of_snapshot<P: AsRef<[TopicPartition]>>(
        tasks: &[(TaskId, P)],
        snapshot: &OffsetSnapshot,
        ends: &AllLogEnds,
    ) -> Self {
        let (mut known, mut ends) = (snapshot.in_order(), ends.in_order());
        let lags = tasks.iter().map(|(task, partitions)| {
            let known = known.get(*task);
            let lags = partitions.as_ref().iter().map(|partition| {
                let cached = known.and_then(|known| known.get(partition));
                (partition, PartitionLag::new(partition, cached, ends.get(partition)))
            });
            (*task, TaskLag::new(lags))
        });
        Self::sorted(tasks, lags.collect())
    }

    /// The `lags` of `tasks`, which had better come in order.
    fn sorted<P>(tasks: &[(TaskId, P)], mut lags: Vec<(TaskId, TaskLag)>) -> Self {
        if tasks.is_sorted_by(|(earlier, _), (later, _)| earlier < later) {
            return Self(lags);
        }
        lags.sort_by_key(|(task, _)| *task);
        // Of a task that is there twice the last one counts.
        lags.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                mem::swap(later, earlier);
            }
            same
        });
        Self(lags)
    }

    /// The lag of `task`, if it is one of the tasks that this was made for.
    ///
    /// ```
    /// use kstate_api::TaskId;
    ///
    /// assert_eq!(kstate_offset_cache::TaskLags::default().get(TaskId::new(0, 0)), None);
    /// ```
    #[must_use]
    pub fn get(&self, task: TaskId) -> Option<&TaskLag> {
        let index = self.0.binary_search_by_key(&task, |(task, _)| *task).ok()?;
        self.0.get(index).map(|(_, lag)| lag)
    }

    /// The tasks and their lags, in the tasks' order.
    ///
    /// ```
    /// assert_eq!(kstate_offset_cache::TaskLags::default().iter().count(), 0);
    /// ```
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (TaskId, &TaskLag)> {
        self.0.iter().map(|(task, lag)| (*task, lag))
    }

    /// The tasks' totals: what an assignment is made from.
    ///
    /// ```
    /// assert!(kstate_offset_cache::TaskLags::default().totals().is_empty());
    /// ```
    #[must_use]
    pub fn totals(&self) -> BTreeMap<TaskId, Lag> {
        self.0.iter().map(|(task, lag)| (*task, lag.total())).collect()
    }
}
