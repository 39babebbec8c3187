use std::collections::BTreeMap;

use imbl::OrdMap;
use kstate_api::{TaskId, TopicPartition};

use crate::{
    CachedOffset, TaskOffsets,
    sync::{Mutex, lock},
};

/// What a cache knows of all tasks. The locks of tasks that run have it too, and end that when they go.
#[derive(Debug, Default)]
pub(crate) struct KnownOffsets {
    /// A persistent map: a copy of it shares all that does not change.
    tasks: Mutex<OrdMap<TaskId, TaskOffsets>>,
}

impl KnownOffsets {
    /// What is known now. Later changes do not show in it.
    pub(crate) fn snapshot(&self) -> OrdMap<TaskId, TaskOffsets> {
        lock(&self.tasks).clone()
    }

    pub(crate) fn get(&self, task: TaskId, partition: &TopicPartition) -> Option<CachedOffset> {
        lock(&self.tasks).get(&task)?.get(partition)
    }

    /// Whether each of `partitions` of `task` is live.
    pub(crate) fn are_running(&self, task: TaskId, partitions: &[TopicPartition]) -> bool {
        let tasks = lock(&self.tasks);
        let known = |partition| tasks.get(&task)?.get(partition);
        partitions.iter().all(|partition| known(partition) == Some(CachedOffset::Running))
    }

    pub(crate) fn change(&self, task: TaskId, change: impl FnOnce(&mut BTreeMap<TopicPartition, CachedOffset>)) {
        let mut tasks = lock(&self.tasks);
        let mut offsets = tasks.get(&task).map(TaskOffsets::to_map).unwrap_or_default();
        change(&mut offsets);
        if offsets.is_empty() {
            tasks.remove(&task);
        } else {
            tasks.insert(task, offsets.into());
        }
    }

    /// The owner of `task` is gone. What it did not close runs no more, and nobody knows what it left.
    pub(crate) fn end_running(&self, task: TaskId) {
        self.change(task, |offsets| {
            for offset in offsets.values_mut().filter(|offset| **offset == CachedOffset::Running) {
                *offset = CachedOffset::Unknown;
            }
        });
    }
}
