use std::time::Duration;

use kstate_api::{ChangelogOffsets, Result, TopicPartition};
use kstate_checkpoint::{ChangelogRecord, ChangelogWriter};

use crate::{
    Cluster,
    error::broker_error,
    sender::{Output, Sender},
};

/// Writes changelogs, and knows from delivery reports alone what the brokers have (clause P2).
///
/// The producer is idempotent, so a record that is sent again is not there twice and order is kept.
#[derive(Debug)]
pub struct ChangelogProducer {
    sender: Sender,
}

impl ChangelogProducer {
    /// Writes to `cluster`; a flush that takes longer than `timeout` fails.
    ///
    /// # Errors
    /// `Config` for a property that the client does not take.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kstate_kafka::{ChangelogProducer, EmbeddedCluster};
    ///
    /// # fn main() -> kstate_api::Result<()> {
    /// let embedded = EmbeddedCluster::start()?;
    /// let changelog = ChangelogProducer::new(&embedded.cluster(), Duration::from_secs(30))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(cluster: &Cluster, timeout: Duration) -> Result<Self> {
        Ok(Self { sender: Sender::new(cluster, timeout, &[])? })
    }

    /// Sends one output record to `partition`. It may wait for room, but not for the delivery, which the next flush
    /// waits for.
    ///
    /// # Errors
    /// `InvalidArgument` if the broker would refuse the record for its size; or what the client met.
    pub fn send(&self, partition: &TopicPartition, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<()> {
        self.send_output(&Output { topic: partition.topic(), partition: Some(partition.partition()), key, value })
    }

    /// As [`send`](Self::send), to the partition of the key: the same that Kafka's Java client takes. Without a key,
    /// to any.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_by_key(&self, topic: &str, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<()> {
        self.send_output(&Output { topic, partition: None, key, value })
    }

    pub(crate) fn send_output(&self, output: &Output<'_>) -> Result<()> {
        self.sender.check_output(output)?;
        let sent = self.sender.send_output(output);
        sent.map_err(|error| broker_error(&format!("cannot send to {}", output.topic), error))
    }

    pub(crate) fn sender(&self) -> &Sender {
        &self.sender
    }
}

impl ChangelogWriter for ChangelogProducer {
    fn check(&self, record: ChangelogRecord<'_>) -> Result<()> {
        self.sender.check_change(record)
    }

    fn append(&mut self, partition: &TopicPartition, record: ChangelogRecord<'_>) -> Result<()> {
        (&*self).append(partition, record)
    }

    fn flush(&mut self) -> Result<ChangelogOffsets> {
        (&*self).flush()
    }
}

impl ChangelogWriter for &ChangelogProducer {
    fn check(&self, record: ChangelogRecord<'_>) -> Result<()> {
        self.sender.check_change(record)
    }

    fn append(&mut self, partition: &TopicPartition, record: ChangelogRecord<'_>) -> Result<()> {
        self.sender.check_change(record)?;
        self.sender.send_change(partition, record)
    }

    fn flush(&mut self) -> Result<ChangelogOffsets> {
        self.sender.flush()
    }
}
