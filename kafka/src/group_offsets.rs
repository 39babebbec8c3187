use std::{
    fmt, thread,
    time::{Duration, Instant},
};

use kstate_api::{ErrorKind, Offset, Position, Result, TopicPartition};
use rdkafka::{
    Offset as ClientOffset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer as _},
};

use crate::{
    Cluster,
    cluster::REQUEST_TIMEOUT,
    error::broker_error,
    rebalance::{GroupContext, list_of},
};

/// How long to wait before a look-up is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Looks up what a consumer group has committed, without being a member of it.
///
/// ```
/// use kstate_api::TopicPartition;
/// use kstate_kafka::{EmbeddedCluster, GroupOffsets};
///
/// # fn main() -> kstate_api::Result<()> {
/// let embedded = EmbeddedCluster::start()?;
/// embedded.create_topic("lines", 1)?;
/// let group = GroupOffsets::new(&embedded.cluster(), "my-group")?;
/// assert!(group.committed(&[TopicPartition::new("lines", 0)])?.is_empty());
/// # Ok(())
/// # }
/// ```
pub struct GroupOffsets(BaseConsumer<GroupContext>);

impl GroupOffsets {
    /// Looks up the offsets of `group`.
    ///
    /// # Errors
    /// `Config` for properties that the client refuses.
    pub fn new(cluster: &Cluster, group: &str) -> Result<Self> {
        cluster.create_consumer(group, &[], GroupContext::default()).map(Self)
    }

    /// The next offset to process of each of `partitions`, as the group has committed it. A partition that is missing
    /// in the answer was never committed: that is the brokers' word.
    ///
    /// # Errors
    /// If the brokers do not tell of every partition, never a guess.
    pub fn committed(&self, partitions: &[TopicPartition]) -> Result<Position> {
        fetch_committed(&self.0, partitions)
    }
}

impl fmt::Debug for GroupOffsets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupOffsets").finish_non_exhaustive()
    }
}

/// What the consumer's group has committed of `partitions`.
pub(crate) fn fetch_committed(
    consumer: &BaseConsumer<GroupContext>,
    partitions: &[TopicPartition],
) -> Result<Position> {
    let what = "cannot look up the committed offsets";
    let list = list_of(partitions);
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

/// The offset of `partition` in the client's list, unless it is one of its logical ones.
pub(crate) fn stored_offset(list: &TopicPartitionList, partition: &TopicPartition) -> Option<Offset> {
    match list.find_partition(partition.topic(), partition.partition())?.offset() {
        ClientOffset::Offset(next) => Offset::new(next),
        _ => None,
    }
}
