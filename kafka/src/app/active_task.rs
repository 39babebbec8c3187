use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use kstate_api::{Result, TaskId, TopicPartition};
use kstate_checkpoint::Task;

use super::{
    Processor, TaskContext, TaskState, definition::Definition, outputs::Outputs, restorer::Job, task_stores::TaskStores,
};

/// A task that the group has assigned to this thread.
#[derive(Debug)]
pub(crate) struct ActiveTask {
    pub(crate) id: TaskId,
    pub(crate) sources: Vec<TopicPartition>,
    pub(crate) state: TaskState,
    /// What it has once its directory is its own.
    pub(crate) open: Option<OpenTask>,
    /// Its restore, while it is under way.
    pub(crate) job: Option<Arc<Job>>,
    /// Since when it waits: for its directory, or for a restore to succeed.
    since: Option<Instant>,
}

impl ActiveTask {
    pub(crate) fn new(id: TaskId, sources: Vec<TopicPartition>) -> Self {
        Self { id, sources, state: TaskState::Assigned, open: None, job: None, since: None }
    }

    /// Whether it may go on waiting, if it may wait for `limit` in all.
    pub(crate) fn waits_within(&mut self, limit: Duration) -> bool {
        self.since.get_or_insert_with(Instant::now).elapsed() < limit
    }

    /// What it has, if it processes records.
    pub(crate) fn running(&self) -> Option<&OpenTask> {
        self.open.as_ref().filter(|_| self.state == TaskState::Running)
    }

    /// The same, to work with.
    pub(crate) fn running_mut(&mut self) -> Option<&mut OpenTask> {
        self.open.as_mut().filter(|_| self.state == TaskState::Running)
    }
}

/// The stores and the processor of a task.
pub(crate) struct OpenTask {
    pub(crate) task: Task,
    pub(crate) stores: TaskStores,
    pub(crate) processor: Box<dyn Processor>,
    /// The bytes that its stores had staged after the last record.
    pub(crate) staged: u64,
}

impl OpenTask {
    /// A task that reads `sources` and has `stores`.
    pub(crate) fn new(definition: &Definition, stores: TaskStores, sources: Vec<TopicPartition>) -> Self {
        let processor = definition.processors.processor(stores.task());
        let task = Task::new(stores.task(), sources, stores.logged().to_vec());
        Self { task, stores, processor, staged: 0 }
    }

    /// Its processor, and what that works with.
    pub(crate) fn parts<'t>(&'t mut self, outputs: &'t Outputs) -> (&'t mut dyn Processor, TaskContext<'t>) {
        let context = TaskContext { task: self.task.id(), stores: self.stores.by_name(), outputs };
        (&mut *self.processor, context)
    }

    /// Takes back everything since the last checkpoint.
    pub(crate) fn roll_back(&mut self, definition: &Definition) -> Result<()> {
        self.processor = definition.processors.processor(self.task.id());
        self.staged = 0;
        self.stores.roll_back()
    }
}

impl fmt::Debug for OpenTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenTask").field("task", &self.task).field("staged", &self.staged).finish_non_exhaustive()
    }
}
