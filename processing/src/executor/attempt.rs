use std::{error, sync::Arc, time::Instant};

use kstate_api::{Error, ErrorKind, Result};

use super::{Executor, Halted};
use crate::{
    Apply, Epoch, Finish, OnExhausted, Outcome, ProcessError, Processor, RecordFailure, Sink, Source,
    assigned::{Assigned, Ended, EndedJob},
    job::{Job, Processed},
    process_error::Action,
};

/// From an attempt to the end of its record.
impl<P: Processor> Executor<P> {
    /// What follows from one attempt.
    pub(super) fn take_attempt(
        &mut self,
        job: Job<P::Record>,
        processed: Processed<P::Output>,
        now: Instant,
        sink: &mut dyn Sink<P::Record, P::Output>,
    ) -> Result<()> {
        let epoch = job.epoch();
        if !self.assigned.contains_key(&epoch) {
            self.stats.late += 1;
            return Ok(());
        }
        let ProcessError { action, cause } = match processed {
            Ok(effects) => return self.end(epoch, (job, Ended::Processed(effects)), sink),
            Err(error) => error,
        };
        let is_exhausted = job.attempts >= self.settings.retry.max_attempts;
        match action {
            Action::Retry if !is_exhausted => {
                self.stats.retries += 1;
                let due = now.checked_add(self.settings.retry.backoff(job.attempts)).unwrap_or(now);
                self.lanes.park(job, due);
                Ok(())
            }
            Action::Retry if self.settings.on_exhausted == OnExhausted::DeadLetter => {
                self.fail(epoch, job, cause, sink)
            }
            Action::Skip => self.fail(epoch, job, cause, sink),
            Action::Retry | Action::Halt => {
                let (offset, attempts) = (job.offset, job.attempts);
                let assigned = self.assigned.get_mut(&epoch);
                let partition = assigned.map(|assigned| {
                    assigned.notices.tell(offset, Outcome::Abandoned);
                    assigned.partition.to_string()
                });
                let partition = partition.unwrap_or_default();
                let message = format!("halted by record {partition}@{offset}, which failed {attempts} times: {cause}");
                self.halted = Some(Halted::ByRecord(message.as_str().into()));
                Err(Error::new(ErrorKind::Poisoned, message).with_source(cause))
            }
        }
    }

    fn fail(
        &mut self,
        epoch: Epoch,
        job: Job<P::Record>,
        cause: Box<dyn error::Error + Send + Sync>,
        sink: &mut dyn Sink<P::Record, P::Output>,
    ) -> Result<()> {
        let failure = Arc::new(RecordFailure { attempts: job.attempts, cause });
        self.end(epoch, (job, Ended::Failed(failure)), sink)
    }

    /// Applies what a record came to, and those that waited for it; or lets it wait for its turn.
    fn end(&mut self, epoch: Epoch, ended: EndedJob<P>, sink: &mut dyn Sink<P::Record, P::Output>) -> Result<()> {
        let Some(assigned) = self.assigned.get_mut(&epoch) else {
            return Ok(());
        };
        if self.settings.apply == Apply::InInputOrder && !assigned.is_turn_of(ended.0.offset) {
            assigned.waiting.insert(ended.0.offset, ended);
            return Ok(());
        }
        self.apply(epoch, ended, sink)?;
        while let Some(next) = self.assigned.get_mut(&epoch).and_then(Assigned::next_in_turn) {
            self.apply(epoch, next, sink)?;
        }
        Ok(())
    }

    /// Applies the effects, finishes the record, frees its lane: in this order, and nothing comes between.
    fn apply(
        &mut self,
        epoch: Epoch,
        (job, ended): EndedJob<P>,
        sink: &mut dyn Sink<P::Record, P::Output>,
    ) -> Result<()> {
        let Some(assigned) = self.assigned.get_mut(&epoch) else {
            return Ok(());
        };
        let source = Source { partition: &assigned.partition, offset: job.offset, record: &job.record };
        let (applied, outcome) = match ended {
            Ended::Processed(effects) => (sink.apply(&source, effects), Outcome::Done),
            Ended::Failed(failure) => (sink.dead_letter(&source, &failure), Outcome::DeadLettered(failure)),
        };
        if let Err(error) = applied {
            let message = format!("halted since a sink failed at {}@{}: {error}", source.partition, source.offset);
            assigned.notices.tell(job.offset, Outcome::Abandoned);
            self.halted = Some(Halted::BySink(message.as_str().into()));
            return Err(Error::new(ErrorKind::Poisoned, message).with_source(error));
        }
        let Job { offset, ticket, lane, .. } = job;
        if assigned.tracker.finish(ticket) != Finish::Late {
            self.in_flight -= 1;
        }
        match outcome {
            Outcome::Done => self.stats.done += 1,
            _ => self.stats.dead_letters += 1,
        }
        if let Some(lane) = lane {
            self.lanes.release(&lane);
        }
        assigned.notices.tell(offset, outcome);
        Ok(())
    }
}
