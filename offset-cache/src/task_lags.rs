use std::collections::BTreeMap;

use kstate_api::{TaskId, TopicPartition};

use crate::{AllLogEnds, CachedOffset, Lag, PartitionLag, TaskLag};

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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskLags(BTreeMap<TaskId, TaskLag>);

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
        let lags = tasks.iter().map(|(task, partitions)| {
            let partitions = partitions.as_ref().iter();
            let lags = partitions.map(|partition| {
                (partition, PartitionLag::new(partition, cached(*task, partition), ends.get(partition)))
            });
            (*task, TaskLag::new(lags))
        });
        Self(lags.collect())
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
        self.0.get(&task)
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
