//! When and how a session takes checkpoints, and what becomes of those that fail.

use std::time::{Duration, Instant};

use kstate_api::{CommitOutcome, Error, ErrorKind, Position};
use kstate_checkpoint::Task;

use super::{End, Session, Urgency};
use crate::{
    app::{
        Guarantee, TaskContext, active_task::ActiveTask, task_processing::TaskProcessing, task_workers::TaskWorkers,
    },
    deliveries::OutputSource,
};

/// How long to wait before a checkpoint that failed is tried again, at first; each time it is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// How long at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Checkpoints that fail, one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failing {
    since: Instant,
    pause: Duration,
    /// When to try again.
    pub(super) again: Instant,
}

impl Failing {
    fn next(before: Option<Self>, now: Instant) -> Self {
        let since = before.map_or(now, |before| before.since);
        let pause = before.map_or(FIRST_PAUSE, |before| (before.pause * 2).min(LONGEST_PAUSE));
        Self { since, pause, again: now + pause }
    }
}

/// What became of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Everything is committed.
    Committed,
    /// Everything since the last one was taken back, and comes again.
    RolledBack,
    /// Everything is staged still; it has to be tried again.
    Postponed,
    /// The same, and the group takes nothing before this member has followed it.
    Refused,
}

impl Session<'_> {
    pub(super) fn is_checkpoint_due(&self) -> bool {
        let now = Instant::now();
        if let Some(failing) = self.failing {
            return now >= failing.again;
        }
        let requested = self.control.checkpoint_requests() > self.answered;
        self.urgency != Urgency::None || requested || self.trigger.is_due(now, self.staged)
    }

    /// Takes a checkpoint of every task that runs.
    pub(super) fn checkpoint(&mut self) -> Result<Outcome, End> {
        if self.source.assignment_lost() {
            // The group has gone on without this member, which hears of it with the next poll.
            return Ok(Outcome::Refused);
        }
        let doubtful = self.failing.is_some() || self.absence.is_suspicious(Instant::now());
        if doubtful && self.definition.guarantee == Guarantee::AtLeastOnce {
            // Nothing but the group's word tells whether the changelogs are still this member's to write to. A
            // transaction asks for it by itself.
            if let Err(error) = self.source.confirm_membership() {
                return self.checkpoint_failed(error);
            }
        }
        self.absence.clear(Instant::now());
        let requests = self.control.checkpoint_requests();
        self.before_checkpoint()?;
        let tasks: Vec<Task> = self.running().map(|open| open.task.clone()).collect();
        let Some(position) = self.position()? else {
            self.urgency = Urgency::Draining;
            return Ok(Outcome::Postponed);
        };
        match self.outputs.checkpoint(&tasks, &position, &mut self.source) {
            Ok(committed) => {
                self.tasks.values_mut().filter_map(ActiveTask::running_mut).for_each(|open| {
                    open.workers_mut().into_iter().for_each(TaskWorkers::committed);
                });
                self.progressed |= !committed.position.is_empty();
                self.answered = requests;
                self.settled();
                if committed.changelog_records > 0 || !committed.position.is_empty() {
                    let ids: Vec<_> = tasks.iter().map(Task::id).collect();
                    self.stats.checkpointed(&committed);
                    #[cfg(feature = "metrics")]
                    self.control.checkpointed(self.thread, committed.elapsed);
                    self.definition.listener.checkpointed(&ids, &committed);
                }
                Ok(Outcome::Committed)
            }
            Err(error) => self.checkpoint_failed(error),
        }
    }

    /// What is to be committed; `None` if the workers have to end what they have first.
    fn position(&mut self) -> Result<Option<Position>, End> {
        let read = self.source.position().map_err(End::of)?;
        let mut all = Position::new();
        for open in self.tasks.values_mut().filter_map(ActiveTask::running_mut) {
            let own = open.task.position_in(&read);
            let position = match open.workers_mut() {
                None => Some(own),
                Some(workers) => workers.position(&own).map_err(End::Rejoin)?,
            };
            match position {
                Some(position) => all.merge(&position),
                None => return Ok(None),
            }
        }
        Ok(Some(all))
    }

    /// Takes a checkpoint of what is about to be given up, and tries again for a while if the brokers do not answer.
    pub(super) fn checkpoint_revoked(&mut self) -> Result<Outcome, End> {
        let deadline = Instant::now() + self.definition.timeouts.stop;
        self.drain_workers(deadline)?;
        loop {
            let outcome = self.checkpoint()?;
            // A group that refuses it goes on refusing it, until what is revoked was given up.
            if outcome != Outcome::Postponed || Instant::now() >= deadline {
                return Ok(outcome);
            }
            std::thread::sleep(FIRST_PAUSE);
        }
    }

    /// Takes back what every task has done since the last checkpoint. Its records come again.
    pub(super) fn take_back(&mut self) -> Result<Outcome, End> {
        let mut sources = Vec::new();
        for open in self.tasks.values_mut().filter_map(ActiveTask::running_mut) {
            let position = self.source.resumed_at(open.task.sources());
            open.roll_back(self.definition, &position).map_err(End::of)?;
            sources.extend_from_slice(open.task.sources());
        }
        if !sources.is_empty() {
            // A partition that is not being read yet cannot be: the session is begun anew then.
            self.source.rewind(&sources).map_err(End::Rejoin)?;
        }
        self.settled();
        Ok(Outcome::RolledBack)
    }

    fn before_checkpoint(&mut self) -> Result<(), End> {
        for (id, task) in &mut self.tasks {
            let Some(open) = task.running_mut() else { continue };
            let TaskProcessing::InOrder(processor) = &mut open.processing else { continue };
            let context = TaskContext { task: *id, stores: open.stores.by_name(), outputs: &self.outputs };
            let prepared = processor.before_checkpoint(&context);
            let sent = self.outputs.end_of(|| OutputSource::Checkpoint);
            if let Err(error) = prepared.and(sent.map_err(Into::into)) {
                let message = format!("task {id} failed before its checkpoint: {error}");
                let kind = self.outputs.take_failure().unwrap_or(ErrorKind::Config);
                let sound = open.stores.is_sound();
                let error = Error::new(kind, message).with_source(error);
                return Err(if sound { End::of(error) } else { End::Rejoin(error) });
            }
        }
        Ok(())
    }

    fn checkpoint_failed(&mut self, error: Error) -> Result<Outcome, End> {
        self.stats.failed_checkpoints += 1;
        let end = match End::of(error) {
            fail @ (End::Fail(_) | End::Halt(_)) => return Err(fail),
            End::Rejoin(error) => error,
        };
        let unrecoverable = match end.kind() {
            ErrorKind::Poisoned | ErrorKind::Closed => true,
            // A consumer that is refused learns by itself whether its partitions are lost, or whether the group was just
            // about to deal them out: then it is a matter of moments.
            ErrorKind::Fenced => self.definition.guarantee == Guarantee::ExactlyOnce,
            _ => false,
        };
        // The group has gone on, and the store has not: it has to be restored. Or outputs were lost: their records have
        // to come again.
        if unrecoverable || end.store().is_some() || self.outputs.are_lost() {
            return Err(End::Rejoin(end));
        }
        tracing::warn!(thread = self.thread, error = %end, "a checkpoint failed");
        match self.definition.guarantee {
            Guarantee::AtLeastOnce => {
                let now = Instant::now();
                let failing = Failing::next(self.failing, now);
                if now.saturating_duration_since(failing.since) > self.definition.timeouts.retry {
                    return Err(End::Fail(end));
                }
                self.failing = Some(failing);
                let refused = matches!(end.kind(), ErrorKind::Fenced | ErrorKind::Busy);
                Ok(if refused { Outcome::Refused } else { Outcome::Postponed })
            }
            // Nobody knows whether the transaction was committed: the group's positions tell, to a new session.
            Guarantee::ExactlyOnce if end.commit_outcome() == Some(CommitOutcome::Unknown) => Err(End::Rejoin(end)),
            Guarantee::ExactlyOnce => {
                self.outputs.abort().map_err(End::Rejoin)?;
                self.take_back()
            }
        }
    }

    /// Nothing is staged any more.
    fn settled(&mut self) {
        for open in self.tasks.values_mut().filter_map(ActiveTask::running_mut) {
            open.staged = 0;
        }
        self.staged = 0;
        self.failing = None;
        let unsettled = self.running().any(|open| open.stores.unsettled_keys() > 0);
        self.urgency = if unsettled { Urgency::Due } else { Urgency::None };
        self.trigger.reset(Instant::now());
    }
}
