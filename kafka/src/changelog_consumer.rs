use std::{fmt, time::Duration};

use kstate_api::{Error, ErrorKind, Offset, Result, TopicPartition};
use kstate_checkpoint::{ChangelogReader, ChangelogRecord, LogBounds, SOURCE_POSITION_HEADER};
use rdkafka::{
    Message, Offset as ClientOffset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    message::Headers,
};

use crate::{Cluster, context::Context, error::broker_error, leaders::fetch_watermarks};

/// Reads changelogs for restores.
pub struct ChangelogConsumer {
    consumer: BaseConsumer<Context>,
    /// Looks up the ends of logs. One that reads committed records only would not count those whose transaction was
    /// committed a moment ago and whose marker is still under way.
    bounds: BaseConsumer<Context>,
    /// What is read, and from where on it was asked for.
    reading: Option<(TopicPartition, Offset)>,
}

impl ChangelogConsumer {
    /// Reads from `cluster`, whatever a transaction did with the records.
    ///
    /// # Errors
    /// `Config` for a property that the client does not take.
    ///
    /// ```
    /// use kstate_kafka::{ChangelogConsumer, EmbeddedCluster};
    ///
    /// # fn main() -> kstate_api::Result<()> {
    /// let embedded = EmbeddedCluster::start()?;
    /// let changelog = ChangelogConsumer::new(&embedded.cluster())?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(cluster: &Cluster) -> Result<Self> {
        Self::with_isolation(cluster, "read_uncommitted")
    }

    /// Reads only records of committed transactions, as exactly once asks. The end of a log is past those that are
    /// still open: the reader waits until they end.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// ```
    /// # use kstate_kafka::{ChangelogConsumer, EmbeddedCluster};
    /// # fn main() -> kstate_api::Result<()> {
    /// # let embedded = EmbeddedCluster::start()?;
    /// let changelog = ChangelogConsumer::read_committed(&embedded.cluster())?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_committed(cluster: &Cluster) -> Result<Self> {
        Self::with_isolation(cluster, "read_committed")
    }

    fn with_isolation(cluster: &Cluster, level: &str) -> Result<Self> {
        // The client asks for a group although nothing is ever committed in it.
        let create = |level| {
            let own = [("isolation.level", level), ("max.partition.fetch.bytes", "4194304")];
            cluster.create_consumer("kstate-restore", &own, Context)
        };
        Ok(Self { consumer: create(level)?, bounds: create("read_uncommitted")?, reading: None })
    }
}

impl ChangelogReader for ChangelogConsumer {
    fn bounds(&mut self, partition: &TopicPartition) -> Result<LogBounds> {
        let what = format!("cannot look up the bounds of changelog {partition}");
        let (start, end) = fetch_watermarks(&self.bounds, partition, &what)?;
        match (Offset::new(start), Offset::new(end)) {
            (Some(start), Some(end)) => Ok(LogBounds { start, end }),
            _ => Err(Error::new(ErrorKind::Unavailable, format!("{what}: the broker answers {start} and {end}"))),
        }
    }

    fn seek(&mut self, partition: &TopicPartition, next: Offset) -> Result<()> {
        let what = format!("cannot read changelog {partition} from {next}");
        let mut list = TopicPartitionList::with_capacity(1);
        list.add_partition_offset(partition.topic(), partition.partition(), ClientOffset::Offset(next.get()))
            .map_err(|error| broker_error(&what, error))?;
        // A seek right after an assignment fails; an assignment that carries its offset does not.
        self.consumer.assign(&list).map_err(|error| broker_error(&what, error))?;
        self.reading = Some((partition.clone(), next));
        Ok(())
    }

    fn poll(&mut self, timeout: Duration, read: &mut dyn FnMut(Offset, ChangelogRecord<'_>)) -> Result<bool> {
        let message = match self.consumer.poll(timeout) {
            None => return Ok(false),
            Some(message) => message.map_err(|error| broker_error("cannot read the changelog", error))?,
        };
        let offset = Offset::try_from(message.offset())?;
        let source_position = message.headers().and_then(|headers| {
            headers.iter().find(|header| header.key == SOURCE_POSITION_HEADER).and_then(|header| header.value)
        });
        read(offset, ChangelogRecord { key: message.key(), value: message.payload(), source_position });
        Ok(true)
    }

    fn position(&mut self) -> Result<Offset> {
        let Some((partition, from)) = &self.reading else {
            return Err(Error::new(ErrorKind::InvalidArgument, "no changelog is being read"));
        };
        let positions =
            self.consumer.position().map_err(|error| broker_error("cannot tell the changelog's position", error))?;
        let position = positions.find_partition(partition.topic(), partition.partition());
        Ok(match position.map(|found| found.offset()) {
            Some(ClientOffset::Offset(next)) => Offset::try_from(next)?.max(*from),
            // Nothing was read yet.
            _ => *from,
        })
    }
}

impl fmt::Debug for ChangelogConsumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangelogConsumer").field("reading", &self.reading).finish_non_exhaustive()
    }
}
