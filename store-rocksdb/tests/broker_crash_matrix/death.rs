//! Adapters around the traits of the checkpoint in which a process dies when it is told to.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use kstate_api::{ChangelogOffsets, Offset, Position, Result, TopicPartition};
use kstate_checkpoint::{ChangelogReader, ChangelogRecord, ChangelogWriter, LogBounds, SourceCommitter};
use kstate_kafka::ChangelogConsumer;
use rustix::process::{Signal, getpid, kill_process};

use crate::job::{Job, Step};

/// Kills its process when it is told the step for the n-th time.
#[derive(Debug)]
pub(crate) struct Death {
    step: Option<Step>,
    left: AtomicU32,
}

impl Death {
    pub(crate) fn of(job: &Job) -> Self {
        Self { step: job.death.map(|(step, _)| step), left: AtomicU32::new(job.death.map_or(0, |(_, count)| count)) }
    }

    pub(crate) fn comes_at(&self, step: Step) {
        if self.step == Some(step) && self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
    }
}

/// A changelog whose writer may die.
pub(crate) struct Writer<'w> {
    pub(crate) below: &'w mut dyn ChangelogWriter,
    pub(crate) death: &'w Death,
}

impl ChangelogWriter for Writer<'_> {
    fn check(&self, record: ChangelogRecord<'_>) -> Result<()> {
        self.below.check(record)
    }

    fn append(&mut self, partition: &TopicPartition, record: ChangelogRecord<'_>) -> Result<()> {
        self.below.append(partition, record)?;
        self.death.comes_at(Step::Append);
        Ok(())
    }

    fn flush(&mut self) -> Result<ChangelogOffsets> {
        self.death.comes_at(Step::Flush);
        let acknowledged = self.below.flush()?;
        self.death.comes_at(Step::SourceCommit);
        Ok(acknowledged)
    }
}

/// A source commit after which its process may die.
pub(crate) struct Committer<'c> {
    pub(crate) below: &'c mut dyn SourceCommitter,
    pub(crate) death: &'c Death,
}

impl SourceCommitter for Committer<'_> {
    fn commit(&mut self, position: &Position) -> Result<()> {
        self.below.commit(position)?;
        self.death.comes_at(Step::StoreCommit);
        Ok(())
    }
}

/// A changelog whose reader may die.
pub(crate) struct Reader<'r> {
    pub(crate) below: ChangelogConsumer,
    pub(crate) death: &'r Death,
}

impl ChangelogReader for Reader<'_> {
    fn bounds(&mut self, partition: &TopicPartition) -> Result<LogBounds> {
        self.below.bounds(partition)
    }

    fn seek(&mut self, partition: &TopicPartition, next: Offset) -> Result<()> {
        self.below.seek(partition, next)
    }

    fn poll(&mut self, timeout: Duration, read: &mut dyn FnMut(Offset, ChangelogRecord<'_>)) -> Result<bool> {
        let came = self.below.poll(timeout, read)?;
        if came {
            self.death.comes_at(Step::RestorePoll);
        }
        Ok(came)
    }

    fn position(&mut self) -> Result<Offset> {
        self.below.position()
    }
}
