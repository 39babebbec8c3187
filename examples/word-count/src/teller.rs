use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kstate_api::TaskId;
use kstate_checkpoint::{Committed, Restored, StandbyUpdate};
use kstate_kafka::{
    GroupOffsets,
    app::{AppState, Listener, TaskState},
};

use crate::{
    failure::Failure,
    job::Job,
    protocol::{Event, TaskRestored},
    tally::{Tally, partition_of},
};

/// Takes what the counting side tells.
pub(crate) type Emit = Arc<dyn Fn(Event) -> Result<(), Failure> + Send + Sync>;

/// Listens to the app, keeps the tally and tells what happens.
pub(crate) struct Teller {
    tally: Arc<Tally>,
    group: GroupOffsets,
    source: String,
    copies: Mutex<BTreeSet<TaskId>>,
    emit: Emit,
}

impl Teller {
    pub(crate) fn new(job: &Job, tally: Arc<Tally>, emit: Emit) -> Result<Self, Failure> {
        let group = GroupOffsets::new(&job.cluster(), &job.names.group)?;
        Ok(Self { tally, group, source: job.names.source.clone(), copies: Mutex::default(), emit })
    }

    fn tell(&self, event: Event) {
        // If nobody listens any more, the end is near, and not for this reason.
        let _ = (self.emit)(event);
    }

    /// Where `task` goes on: nobody commits anything of it before it runs.
    fn source_next(&self, task: TaskId) -> kstate_api::Result<i64> {
        let partition = partition_of(task, &self.source);
        let committed = self.group.committed(std::slice::from_ref(&partition))?;
        Ok(committed.position.next(&partition).map_or(0, i64::from))
    }

    /// The tasks of which this process has copies.
    fn copies(&self) -> MutexGuard<'_, BTreeSet<TaskId>> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Teller {
    fn app_changed(&self, from: AppState, to: AppState) {
        if from == AppState::Running || to == AppState::Running {
            self.tell(Event::Running(to == AppState::Running));
        }
    }

    fn task_changed(&self, task: TaskId, state: TaskState) {
        match state {
            TaskState::Assigned => self.tally.assigned(task),
            TaskState::Closed if self.tally.closed(task) => self.tell(Event::Closed(task.to_string())),
            _ => {}
        }
    }

    fn restored(&self, task: TaskId, _store: &str, restored: &Restored) {
        self.copies().remove(&task);
        let source_next = match self.source_next(task) {
            Ok(source_next) => source_next,
            Err(error) => return self.tell(Event::Failed(error.to_string())),
        };
        let end = restored.end.get();
        self.tally.restored(task, source_next, (end > 0).then_some(end - 1));
        self.tell(Event::Restored(TaskRestored {
            task: task.to_string(),
            held: restored.from.map(i64::from),
            applied: restored.applied,
            uncommitted: restored.uncommitted,
            end,
            source_next,
        }));
    }

    fn standby_updated(&self, task: TaskId, _store: &str, _update: &StandbyUpdate) {
        if self.copies().insert(task) {
            self.tell(Event::Copied(task.to_string()));
        }
    }

    fn checkpointed(&self, tasks: &[TaskId], committed: &Committed) {
        self.tell(Event::Checkpoint(self.tally.committed(tasks, committed)));
    }
}
