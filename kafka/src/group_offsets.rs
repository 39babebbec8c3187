use std::{
    collections::BTreeSet,
    fmt, thread,
    time::{Duration, Instant},
};

use kstate_api::{ErrorKind, Offset, PartitionPosition, Position, Result, TopicPartition};
use kstate_processing::{PositionMetadata as _, RangesIgnored};
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
/// assert!(group.committed(&[TopicPartition::new("lines", 0)])?.position.is_empty());
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

    /// What the group has committed of `partitions`. One that is missing in the answer was never committed: that is the
    /// brokers' word.
    ///
    /// # Errors
    /// If the brokers do not tell of every partition, never a guess.
    pub fn committed(&self, partitions: &[TopicPartition]) -> Result<GroupPosition> {
        fetch_committed(&self.0, partitions)
    }
}

/// What a consumer group has committed.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GroupPosition {
    /// The next offset to process of each partition, and what is finished above it.
    pub position: Position,
    /// The partitions whose offsets say nothing about finished ranges: somebody else has set them, or an app that
    /// finishes its records in their order.
    pub bare: BTreeSet<TopicPartition>,
    /// How often finished ranges were there and could not be used, so that their records may run again.
    pub ranges_ignored: u64,
}

impl GroupPosition {
    /// Takes over what `later` says.
    pub(crate) fn merge(&mut self, later: &Self) {
        self.position.merge(&later.position);
        self.bare.retain(|partition| later.position.get(partition).is_none());
        self.bare.extend(later.bare.iter().cloned());
        self.ranges_ignored += later.ranges_ignored;
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
) -> Result<GroupPosition> {
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
    let mut committed = GroupPosition::default();
    for partition in partitions {
        let Some(element) = stored.find_partition(partition.topic(), partition.partition()) else { continue };
        let Some(next) = offset_of(element.offset()) else { continue };
        let position = PartitionPosition::from_metadata(next, element.metadata()).unwrap_or_else(|reason| {
            match reason {
                // Other programs have their own metadata, and know of no finished ranges.
                RangesIgnored::Bare | RangesIgnored::Foreign => {}
                _ => {
                    committed.ranges_ignored += 1;
                    tracing::warn!(%partition, %next, %reason, "records that were finished may run again");
                }
            }
            committed.bare.insert(partition.clone());
            PartitionPosition::at(next)
        });
        committed.position.set(partition.clone(), position);
    }
    Ok(committed)
}

/// The offset of `partition` in the client's list, unless it is one of its logical ones.
pub(crate) fn stored_offset(list: &TopicPartitionList, partition: &TopicPartition) -> Option<Offset> {
    offset_of(list.find_partition(partition.topic(), partition.partition())?.offset())
}

fn offset_of(offset: ClientOffset) -> Option<Offset> {
    match offset {
        ClientOffset::Offset(next) => Offset::new(next),
        _ => None,
    }
}
