use std::{cell::Cell, time::Duration};

use kstate_api::{ErrorKind, Position, Result, TopicPartition};
use kstate_checkpoint::{Committed, SourceCommitter as _, Task, checkpoint};

use crate::{ChangelogProducer, Cluster, SourceConsumer, TransactionalProducer};

use super::Guarantee;

/// Where changelogs and outputs of one thread go.
#[derive(Debug)]
pub(crate) struct Outputs {
    producer: AnyProducer,
    /// Whether the client has failed, whatever a processor makes of that.
    failed: Cell<Option<ErrorKind>>,
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
        Ok(Self { producer, failed: Cell::new(None) })
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

    /// Takes a checkpoint of `tasks` at `position`.
    pub(crate) fn checkpoint(
        &mut self,
        tasks: &[Task],
        position: &Position,
        source: &mut SourceConsumer,
    ) -> Result<Committed> {
        match &mut self.producer {
            AnyProducer::AtLeastOnce(producer) => checkpoint(tasks, position, producer, source),
            AnyProducer::ExactlyOnce(producer) => {
                let committed = checkpoint(tasks, position, &mut &*producer, &mut producer.committer(source))?;
                // Outputs without a record: what a processor sends before a checkpoint, of its own accord.
                if producer.is_open() {
                    producer.committer(source).commit(&Position::new())?;
                }
                Ok(committed)
            }
        }
    }

    /// Takes back what was sent since the last checkpoint; `false` if it cannot be, at least once.
    pub(crate) fn abort(&self) -> Result<bool> {
        match &self.producer {
            AnyProducer::AtLeastOnce(_) => Ok(false),
            AnyProducer::ExactlyOnce(producer) => producer.abort().map(|()| true),
        }
    }

    fn noted(&self, sent: Result<()>) -> Result<()> {
        sent.inspect_err(|error| {
            if error.kind() != ErrorKind::InvalidArgument {
                self.failed.set(Some(error.kind()));
            }
        })
    }
}
