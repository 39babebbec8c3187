//! How a session keeps the workers of its tasks going.

use std::time::Instant;

use kstate_api::{Error, ErrorKind, TaskId};

use super::{End, Session, WORKER_WAIT};
use crate::app::{
    active_task::ActiveTask, effects::Effects, task_processing::TaskProcessing, task_workers::TaskWorkers,
};

impl Session<'_> {
    /// Workers that have something to do, of any task.
    pub(super) fn busy_workers(&self) -> Option<&TaskWorkers> {
        // Asked for each record: an app without workers is not to look at all its tasks.
        if !self.definition.processing.has_workers() {
            return None;
        }
        self.running().filter_map(|open| open.workers()).find(|workers| !workers.is_idle())
    }

    /// Applies what workers have brought, and gives them more to do.
    pub(super) fn drive_workers(&mut self) -> Result<(), End> {
        if !self.definition.processing.has_workers() {
            return Ok(());
        }
        let flowing = self.flowing;
        let driven = self.each_workers(|workers, effects| {
            let was_full = workers.is_full();
            workers.drive(flowing, effects)?;
            Ok(was_full && !workers.is_full())
        })?;
        for (id, has_room) in driven {
            let sources = self.tasks.get(&id).map(|task| task.sources.clone()).unwrap_or_default();
            if has_room && flowing {
                self.source.resume(&sources).map_err(End::of)?;
            }
        }
        Ok(())
    }

    /// A record was given to the workers of `task`.
    pub(super) fn submitted(&mut self, task: TaskId, submitted: kstate_api::Result<()>) -> Result<(), End> {
        if let Err(error) = submitted {
            return Err(self.workers_failed(task, error));
        }
        let Some(open) = self.tasks.get(&task).and_then(ActiveTask::running) else { return Ok(()) };
        if open.is_full() {
            self.source.pause(open.task.sources()).map_err(End::of)?;
        }
        Ok(())
    }

    /// Lets the workers end what they have, up to `deadline`; nothing new is given to them.
    pub(super) fn drain_workers(&mut self, deadline: Instant) -> Result<(), End> {
        while let Some(workers) = self.busy_workers()
            && Instant::now() < deadline
        {
            workers.wait(WORKER_WAIT);
            self.each_workers(|workers, effects| workers.drive(false, effects))?;
        }
        Ok(())
    }

    /// Calls `work` with the workers of each task that runs.
    fn each_workers<T>(
        &mut self,
        mut work: impl FnMut(&mut TaskWorkers, &mut Effects<'_>) -> kstate_api::Result<T>,
    ) -> Result<Vec<(TaskId, T)>, End> {
        let mut all = Vec::new();
        let mut failed = None;
        for (id, task) in &mut self.tasks {
            let Some(open) = task.running_mut() else { continue };
            let TaskProcessing::Workers(workers) = &mut open.processing else { continue };
            let mut effects = Effects::new(self.definition, &open.stores, &self.outputs);
            match work(workers, &mut effects) {
                Ok(done) => all.push((*id, done)),
                Err(error) => {
                    failed = Some((*id, error));
                    break;
                }
            }
            let staged = open.task.uncommitted_bytes();
            self.staged = self.staged.saturating_sub(open.staged).saturating_add(staged);
            open.staged = staged;
        }
        match failed {
            None => Ok(all),
            Some((id, error)) => Err(self.workers_failed(id, error)),
        }
    }

    /// What it comes to that the workers of `task` have halted.
    fn workers_failed(&mut self, task: TaskId, error: Error) -> End {
        let Some(open) = self.tasks.get_mut(&task).and_then(ActiveTask::running_mut) else { return End::Fail(error) };
        let message = format!("task {task} halted: {error}");
        if let Some(kind) = self.outputs.take_failure() {
            return End::of(Error::new(kind, message).with_source(error));
        }
        if !open.stores.is_sound() {
            return End::Rejoin(Error::new(ErrorKind::Poisoned, message).with_source(error));
        }
        End::Halt(Error::new(ErrorKind::Io, message).with_source(error))
    }
}
