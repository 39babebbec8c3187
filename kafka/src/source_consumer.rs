use std::{
    collections::BTreeSet,
    fmt, thread,
    time::{Duration, Instant},
};

use kstate_api::{Error, ErrorKind, Offset, Position, Result, TopicPartition};
use kstate_checkpoint::SourceCommitter;
use rdkafka::{
    Offset as ClientOffset, TopicPartitionList,
    consumer::{BaseConsumer, CommitMode, Consumer, ConsumerGroupMetadata},
    message::BorrowedMessage,
};

use crate::{Cluster, cluster::REQUEST_TIMEOUT, context::Context, error::broker_error};

/// How long to wait before a look-up is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Reads source partitions from where their group has committed, and commits positions.
///
/// The partitions are assigned by hand: there is no rebalance, and nothing else may read them in the same group.
///
/// ```
/// use std::{slice, time::Duration};
/// use kstate_api::TopicPartition;
/// use kstate_kafka::{EmbeddedCluster, SourceConsumer};
///
/// # fn main() -> kstate_api::Result<()> {
/// let embedded = EmbeddedCluster::start()?;
/// embedded.create_topic("lines", 1)?;
/// let source = TopicPartition::new("lines", 0);
/// let lines = SourceConsumer::assign(&embedded.cluster(), "my-group", slice::from_ref(&source))?;
/// assert!(lines.committed().is_empty());
/// assert!(lines.poll(Duration::from_millis(10))?.is_none());
/// # Ok(())
/// # }
/// ```
pub struct SourceConsumer {
    consumer: BaseConsumer<Context>,
    partitions: Vec<TopicPartition>,
    committed: Position,
}

impl SourceConsumer {
    /// Assigns `partitions` and looks up what `group` has committed. A partition of which nothing was ever committed
    /// is read from its start.
    ///
    /// # Errors
    /// If the brokers do not tell what is committed, never a guess, or who leads the partitions.
    pub fn assign(cluster: &Cluster, group: &str, partitions: &[TopicPartition]) -> Result<Self> {
        let consumer = cluster.create_consumer(group, &[])?;
        let committed = fetch_committed(&consumer, partitions)?;
        learn_leaders(&consumer, partitions)?;
        let mut list = TopicPartitionList::with_capacity(partitions.len());
        for partition in partitions {
            let from =
                committed.next(partition).map_or(ClientOffset::Beginning, |next| ClientOffset::Offset(next.get()));
            list.add_partition_offset(partition.topic(), partition.partition(), from)
                .map_err(|error| broker_error("cannot assign the source", error))?;
        }
        consumer.assign(&list).map_err(|error| broker_error("cannot assign the source", error))?;
        Ok(Self { consumer, partitions: partitions.to_vec(), committed })
    }

    /// What the group has committed.
    #[must_use]
    pub fn committed(&self) -> &Position {
        &self.committed
    }

    /// The next record, if one comes within `timeout`.
    ///
    /// # Errors
    /// What the client met; so an offset that the log does not have any more.
    pub fn poll(&self, timeout: Duration) -> Result<Option<BorrowedMessage<'_>>> {
        self.consumer.poll(timeout).transpose().map_err(|error| broker_error("cannot read the source", error))
    }

    /// The position of each partition that has moved past what is committed: that of the client, which counts
    /// transaction markers and compacted records as read.
    ///
    /// Every record that [`poll`](SourceConsumer::poll) returned counts as processed.
    ///
    /// # Errors
    /// What the client met.
    pub fn position(&self) -> Result<Position> {
        let positions =
            self.consumer.position().map_err(|error| broker_error("cannot tell the source's position", error))?;
        let moved = self.partitions.iter().filter_map(|partition| {
            let next = stored_offset(&positions, partition)?;
            (self.committed.next(partition) != Some(next)).then(|| (partition.clone(), next))
        });
        Ok(moved.collect())
    }

    /// What a transaction needs to commit `position` for this consumer's group.
    pub(crate) fn for_transaction(&self, position: &Position) -> Result<(TopicPartitionList, ConsumerGroupMetadata)> {
        let group = self.consumer.group_metadata();
        let unknown = || Error::new(ErrorKind::Unavailable, "the consumer does not know its group yet");
        Ok((client_list(position)?, group.ok_or_else(unknown)?))
    }

    /// Takes note that the group has committed `position`.
    pub(crate) fn has_committed(&mut self, position: &Position) {
        self.committed.merge(position);
    }
}

impl SourceCommitter for SourceConsumer {
    fn commit(&mut self, position: &Position) -> Result<()> {
        if position.is_empty() {
            return Ok(());
        }
        self.consumer
            .commit(&client_list(position)?, CommitMode::Sync)
            .map_err(|error| broker_error("cannot commit the source's position", error))?;
        // The client reports success if a single partition succeeded. Only the broker knows of each.
        let partitions: Vec<_> = position.iter().map(|(partition, _)| partition.clone()).collect();
        let stored = fetch_committed(&self.consumer, &partitions)?;
        if let Some((partition, next)) = position.iter().find(|(partition, next)| stored.next(partition) != Some(*next))
        {
            let found = stored.next(partition);
            let message = format!("the broker did not take {next} as the position of {partition}; it has {found:?}");
            return Err(Error::new(ErrorKind::Io, message));
        }
        self.has_committed(position);
        Ok(())
    }
}

impl fmt::Debug for SourceConsumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceConsumer")
            .field("partitions", &self.partitions)
            .field("committed", &self.committed)
            .finish_non_exhaustive()
    }
}

/// `position` as the client takes it.
fn client_list(position: &Position) -> Result<TopicPartitionList> {
    let mut list = TopicPartitionList::with_capacity(position.iter().count());
    for (partition, next) in position.iter() {
        list.add_partition_offset(partition.topic(), partition.partition(), ClientOffset::Offset(next.get()))
            .map_err(|error| broker_error("cannot commit the source's position", error))?;
    }
    Ok(list)
}

/// What the consumer's group has committed of `partitions`.
fn fetch_committed(consumer: &BaseConsumer<Context>, partitions: &[TopicPartition]) -> Result<Position> {
    let what = "cannot look up the committed offsets";
    let mut list = TopicPartitionList::with_capacity(partitions.len());
    for partition in partitions {
        list.add_partition(partition.topic(), partition.partition());
    }
    let deadline = Instant::now() + REQUEST_TIMEOUT;
    let stored = loop {
        let looked_up = consumer.committed_offsets(list.clone(), REQUEST_TIMEOUT).and_then(|stored| {
            let error = stored.elements().iter().find_map(|element| element.error().err());
            error.map_or(Ok(stored), Err)
        });
        match looked_up.map_err(|error| broker_error(what, error)) {
            // The group's coordinator is new, has moved, or still ends a transaction of another member.
            Err(error) if error.kind() == ErrorKind::Unavailable && Instant::now() < deadline => {
                thread::sleep(RETRY_PAUSE);
            }
            answer => break answer?,
        }
    };
    Ok(partitions
        .iter()
        .filter_map(|partition| Some((partition.clone(), stored_offset(&stored, partition)?)))
        .collect())
}

/// Makes the client know who leads `partitions` before they are assigned: if it cannot ask a leader at once where a log
/// starts, it asks again after half a second only.
fn learn_leaders(consumer: &BaseConsumer<Context>, partitions: &[TopicPartition]) -> Result<()> {
    let topics: BTreeSet<_> = partitions.iter().map(TopicPartition::topic).collect();
    for topic in topics {
        consumer
            .fetch_metadata(Some(topic), REQUEST_TIMEOUT)
            .map_err(|error| broker_error(&format!("cannot look up who leads topic {topic}"), error))?;
    }
    Ok(())
}

/// The offset of `partition` in the client's list, unless it is one of its logical ones.
fn stored_offset(list: &TopicPartitionList, partition: &TopicPartition) -> Option<Offset> {
    match list.find_partition(partition.topic(), partition.partition())?.offset() {
        ClientOffset::Offset(next) => Offset::new(next),
        _ => None,
    }
}
