//! How a session follows what the group decides (clause P5).

use std::{collections::BTreeMap, time::Instant};

use kstate_api::{Error, ErrorKind, TaskId, TopicPartition};

use super::{End, Session, checkpoints::Outcome, task_of};
use crate::{
    app::{active_task::ActiveTask, control::WorkerState},
    rebalance::AssignmentChange,
};

impl Session<'_> {
    pub(super) fn follow_assignment(&mut self) -> Result<(), End> {
        while let Some(change) = self.source.assignment_change() {
            match change {
                AssignmentChange::Assigned(partitions) => {
                    if !self.take_over(&partitions)? {
                        return Ok(());
                    }
                }
                AssignmentChange::Revoked(partitions) => {
                    // While they are still this member's. What cannot be committed in time is the next owner's to do
                    // again: its restore heals what is in the changelogs already.
                    if self.running().next().is_some() {
                        let outcome = self.checkpoint_revoked()?;
                        tracing::debug!(?outcome, "checkpoint of what is given up");
                        if matches!(outcome, Outcome::Postponed | Outcome::Refused) {
                            self.close_tasks(&partitions);
                            self.abort_transaction()?;
                        }
                    }
                    self.give_up(&partitions)?;
                }
                AssignmentChange::Lost(partitions) => {
                    tracing::warn!(thread = self.thread, ?partitions, "partitions were lost: nothing is committed");
                    self.close_tasks(&partitions);
                    self.abort_transaction()?;
                    self.give_up(&partitions)?;
                }
            }
            self.state = WorkerState::Restoring;
        }
        Ok(())
    }

    /// `false` if the brokers do not tell yet where to begin; it has to be tried again.
    fn take_over(&mut self, partitions: &[TopicPartition]) -> Result<bool, End> {
        match self.source.accept(partitions) {
            Ok(()) => self.waiting = None,
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                let since = *self.waiting.get_or_insert_with(Instant::now);
                if since.elapsed() > self.definition.timeouts.retry {
                    return Err(End::Fail(error));
                }
                tracing::warn!(thread = self.thread, %error, "an assignment has to wait");
                return Ok(false);
            }
            Err(error) => return Err(End::of(error)),
        }
        let mut sources: BTreeMap<TaskId, Vec<TopicPartition>> = BTreeMap::new();
        for partition in partitions {
            sources.entry(task_of(partition)).or_default().push(partition.clone());
        }
        for (id, sources) in sources {
            if sources.len() != self.definition.sources.len() {
                let message = format!("task {id} was assigned {sources:?} only; it has a partition of every source");
                return Err(End::Fail(Error::new(ErrorKind::Config, message)));
            }
            let task = ActiveTask::new(id, sources);
            self.definition.listener.task_changed(id, task.state);
            self.tasks.insert(id, task);
        }
        Ok(true)
    }

    /// Takes back what was done since the last checkpoint, if there is a transaction: it has the effects of all tasks, also
    /// of those that are this member's no more.
    fn abort_transaction(&mut self) -> Result<(), End> {
        if self.outputs.abort().map_err(End::Rejoin)? {
            self.take_back()?;
        }
        Ok(())
    }

    fn give_up(&mut self, partitions: &[TopicPartition]) -> Result<(), End> {
        self.close_tasks(partitions);
        self.source.give_up(partitions).map_err(End::Rejoin)
    }

    fn close_tasks(&mut self, partitions: &[TopicPartition]) {
        for id in partitions.iter().map(task_of) {
            if let Some(task) = self.tasks.remove(&id) {
                self.close_task(task);
            }
        }
    }
}
