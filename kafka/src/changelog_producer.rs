use std::time::Duration;

use kstate_api::{ChangelogOffsets, Result, TopicPartition};
use kstate_checkpoint::{ChangelogRecord, ChangelogWriter};

use crate::{Cluster, sender::Sender};

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
}

impl ChangelogWriter for ChangelogProducer {
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
