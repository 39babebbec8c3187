use std::{cell::Cell, time::Duration};

use kstate_api::{ChangelogOffsets, CommitOutcome, ErrorKind, Position, Result, TopicPartition};
use kstate_checkpoint::{ChangelogRecord, ChangelogWriter, Committed, SourceCommitter, Task, checkpoint};

use crate::{ChangelogProducer, Cluster, SourceConsumer, TransactionalProducer};

use super::Guarantee;

/// Where changelogs and outputs of one thread go.
#[derive(Debug)]
pub(crate) struct Outputs {
    producer: AnyProducer,
    /// Whether the client has failed, whatever a processor makes of that.
    failed: Cell<Option<ErrorKind>>,
    /// Whether outputs were sent since the last checkpoint.
    sent: Cell<bool>,
    /// Whether some of them may not have been delivered.
    lost: Cell<bool>,
}

#[derive(Debug)]
enum AnyProducer {
    AtLeastOnce(ChangelogProducer),
    ExactlyOnce(TransactionalProducer),
}

impl Outputs {
    /// A producer for `guarantee`; one of transactions fences its predecessor of the same id.
    pub(crate) fn open(
        cluster: &Cluster,
        guarantee: Guarantee,
        transactional_id: &str,
        timeout: Duration,
    ) -> Result<Self> {
        let producer = match guarantee {
            Guarantee::AtLeastOnce => AnyProducer::AtLeastOnce(ChangelogProducer::new(cluster, timeout)?),
            Guarantee::ExactlyOnce => {
                AnyProducer::ExactlyOnce(TransactionalProducer::new(cluster, transactional_id, timeout)?)
            }
        };
        Ok(Self { producer, failed: Cell::new(None), sent: Cell::new(false), lost: Cell::new(false) })
    }

    pub(crate) fn send(&self, partition: &TopicPartition, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<()> {
        self.noted(match &self.producer {
            AnyProducer::AtLeastOnce(producer) => producer.send(partition, key, value),
            AnyProducer::ExactlyOnce(producer) => producer.send(partition, key, value),
        })
    }

    pub(crate) fn send_by_key(&self, topic: &str, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<()> {
        self.noted(match &self.producer {
            AnyProducer::AtLeastOnce(producer) => producer.send_by_key(topic, key, value),
            AnyProducer::ExactlyOnce(producer) => producer.send_by_key(topic, key, value),
        })
    }

    /// The kind of the client's last failure, and forgets it. A record that is too large is not the client's.
    pub(crate) fn take_failure(&self) -> Option<ErrorKind> {
        self.failed.take()
    }

    /// Whether outputs were lost that only their source records can bring back: repeating a checkpoint writes the
    /// changelogs again, and not the outputs.
    pub(crate) fn are_lost(&self) -> bool {
        self.lost.get()
    }

    /// Takes a checkpoint of `tasks` at `position`.
    pub(crate) fn checkpoint(
        &self,
        tasks: &[Task],
        position: &Position,
        source: &mut SourceConsumer,
    ) -> Result<Committed> {
        let committed = match &self.producer {
            AnyProducer::AtLeastOnce(producer) => {
                let mut changelog = Delivered { outputs: self, producer };
                let mut source = AfterDelivery { delivered: Delivered { outputs: self, producer }, source };
                checkpoint(tasks, position, &mut changelog, &mut source)?
            }
            AnyProducer::ExactlyOnce(producer) => {
                let committed = checkpoint(tasks, position, &mut &*producer, &mut producer.committer(source))?;
                // Outputs without a record: what a processor sends before a checkpoint, of its own accord.
                if producer.is_open() {
                    producer.committer(source).commit(&Position::new())?;
                }
                committed
            }
        };
        self.sent.set(false);
        Ok(committed)
    }

    /// Takes back what was sent since the last checkpoint; `false` if it cannot be, at least once.
    pub(crate) fn abort(&self) -> Result<bool> {
        match &self.producer {
            AnyProducer::AtLeastOnce(_) => Ok(false),
            AnyProducer::ExactlyOnce(producer) => producer.abort().map(|()| true),
        }
    }

    fn noted(&self, sent: Result<()>) -> Result<()> {
        self.sent.set(true);
        sent.inspect_err(|error| {
            if error.kind() != ErrorKind::InvalidArgument {
                self.failed.set(Some(error.kind()));
            }
        })
    }
}

/// A changelog that notes when deliveries fail, those of outputs among them.
struct Delivered<'o> {
    outputs: &'o Outputs,
    producer: &'o ChangelogProducer,
}

impl ChangelogWriter for Delivered<'_> {
    fn check(&self, record: ChangelogRecord<'_>) -> Result<()> {
        self.producer.check(record)
    }

    fn append(&mut self, partition: &TopicPartition, record: ChangelogRecord<'_>) -> Result<()> {
        self.producer.append(partition, record)
    }

    fn flush(&mut self) -> Result<ChangelogOffsets> {
        self.producer.flush().inspect_err(|_| self.outputs.lost.set(self.outputs.lost.get() || self.outputs.sent.get()))
    }
}

/// Commits source positions once all outputs are delivered. A checkpoint that has no changes does not flush by itself.
struct AfterDelivery<'o> {
    delivered: Delivered<'o>,
    source: &'o mut SourceConsumer,
}

impl SourceCommitter for AfterDelivery<'_> {
    fn commit(&mut self, position: &Position) -> Result<()> {
        let delivered = self.delivered.flush();
        delivered.map_err(|error| error.with_commit_outcome(CommitOutcome::NotApplied))?;
        self.source.commit(position)
    }
}
