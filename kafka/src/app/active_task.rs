use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use kstate_api::{Position, Result, TaskId, TopicPartition};
use kstate_checkpoint::Task;

use super::{
    TaskState, definition::Definition, restorer::Job, task_processing::TaskProcessing, task_stores::TaskStores,
    task_workers::TaskWorkers,
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
    pub(crate) processing: TaskProcessing,
    /// The bytes that its stores had staged after the last record.
    pub(crate) staged: u64,
}

impl OpenTask {
    /// A task that reads `sources` and has `stores`.
    ///
    /// # Errors
    /// What starting its workers met. Its stores are closed then.
    pub(crate) fn new(definition: &Definition, stores: TaskStores, sources: Vec<TopicPartition>) -> Result<Self> {
        match TaskProcessing::new(definition, &stores) {
            Ok(processing) => {
                let task = Task::new(stores.task(), sources, stores.logged().to_vec());
                Ok(Self { task, stores, processing, staged: 0 })
            }
            Err(error) => {
                stores.close(definition);
                Err(error)
            }
        }
    }

    /// Its workers, if it has any.
    pub(crate) fn workers(&self) -> Option<&TaskWorkers> {
        match &self.processing {
            TaskProcessing::Workers(workers) => Some(workers),
            TaskProcessing::InOrder(_) => None,
        }
    }

    /// The same, to work with.
    pub(crate) fn workers_mut(&mut self) -> Option<&mut TaskWorkers> {
        match &mut self.processing {
            TaskProcessing::Workers(workers) => Some(workers),
            TaskProcessing::InOrder(_) => None,
        }
    }

    /// Whether its workers have no room for another record.
    pub(crate) fn is_full(&self) -> bool {
        self.workers().is_some_and(TaskWorkers::is_full)
    }

    /// Begins to process records from `position` on.
    pub(crate) fn begin(&mut self, definition: &Definition, position: &Position) {
        self.processing.begin_anew(definition, self.task.id(), position);
    }

    /// Takes back everything since the last checkpoint, which was at `position`.
    pub(crate) fn roll_back(&mut self, definition: &Definition, position: &Position) -> Result<()> {
        self.begin(definition, position);
        self.staged = 0;
        self.stores.roll_back()
    }
}

impl fmt::Debug for OpenTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenTask").field("task", &self.task).field("staged", &self.staged).finish_non_exhaustive()
    }
}
