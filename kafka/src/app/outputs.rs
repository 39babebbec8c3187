use std::cell::{Cell, RefCell};

use kstate_api::{ChangelogOffsets, CommitOutcome, ErrorKind, Position, Result, TopicPartition};
use kstate_checkpoint::{ChangelogRecord, ChangelogWriter, Committed, SourceCommitter, Task, checkpoint};

use kstate_processing::Role;

use crate::{ChangelogProducer, SourceConsumer, TransactionalProducer, deliveries::OutputSource, sender::Output};

use super::{AppStats, Guarantee, OutputRecord, definition::Definition, roles::Roles};

/// Where changelogs and outputs of one thread go.
#[derive(Debug)]
pub(crate) struct Outputs {
    producer: AnyProducer,
    roles: Roles,
    /// Those of the record that is being processed of which one has to be delivered.
    any_of: RefCell<Vec<OutputRecord>>,
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
    /// The outputs of `thread`. A producer of transactions fences its predecessor of the same thread.
    pub(crate) fn open(definition: &Definition, thread: usize) -> Result<Self> {
        let (cluster, timeout) = (&definition.cluster, definition.timeouts.delivery);
        let producer = match definition.guarantee {
            Guarantee::AtLeastOnce => AnyProducer::AtLeastOnce(ChangelogProducer::new(cluster, timeout)?),
            Guarantee::ExactlyOnce => {
                let id = definition.transactional_id(thread);
                AnyProducer::ExactlyOnce(TransactionalProducer::new(cluster, &id, timeout)?)
            }
        };
        Ok(Self {
            producer,
            roles: definition.roles.clone(),
            any_of: RefCell::default(),
            failed: Cell::new(None),
            sent: Cell::new(false),
            lost: Cell::new(false),
        })
    }

    /// Sends an output of the record that is being processed.
    pub(crate) fn send(&self, output: Output<'_>) -> Result<()> {
        match (&self.producer, self.roles.of(output.topic)) {
            (AnyProducer::AtLeastOnce(producer), Role::Ignored) => {
                producer.sender().send_ignored(&output);
                Ok(())
            }
            (AnyProducer::AtLeastOnce(_), Role::AnyOf) => {
                // Sent when it is known how many there are.
                self.any_of.borrow_mut().push(OutputRecord::from(output));
                Ok(())
            }
            (AnyProducer::AtLeastOnce(producer), Role::Required) => self.noted(producer.send_output(&output)),
            // It has no other roles.
            (AnyProducer::ExactlyOnce(producer), _) => self.noted(producer.send_output(&output)),
        }
    }

    /// `source` sends nothing more.
    pub(crate) fn end_of(&self, source: impl FnOnce() -> OutputSource) -> Result<()> {
        let any_of = self.any_of.take();
        match &self.producer {
            AnyProducer::AtLeastOnce(producer) if !any_of.is_empty() => {
                let outputs: Vec<_> = any_of.iter().map(OutputRecord::as_output).collect();
                self.noted(producer.sender().send_any_of(source(), &outputs))
            }
            _ => Ok(()),
        }
    }

    /// Adds what was counted to `stats`.
    pub(crate) fn tell(&self, stats: &mut AppStats) {
        if let AnyProducer::AtLeastOnce(producer) = &self.producer {
            let (ignored_failures, late_acks) = producer.sender().deliveries().counted();
            stats.ignored_failures += ignored_failures;
            stats.late_acks += late_acks;
        }
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
