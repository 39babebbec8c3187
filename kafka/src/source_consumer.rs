use std::{collections::BTreeSet, fmt, slice, time::Duration};

use kstate_api::{CommitOutcome, Error, ErrorKind, Offset, PartitionPosition, Position, Result, TopicPartition};
use kstate_checkpoint::SourceCommitter;
use kstate_processing::{MetadataLimit, PositionMetadata as _};
use rdkafka::{
    Offset as ClientOffset, TopicPartitionList,
    consumer::{BaseConsumer, CommitMode, Consumer, ConsumerGroupMetadata},
    error::{KafkaError, KafkaResult},
    message::BorrowedMessage,
    types::RDKafkaErrorCode,
};

use crate::{
    Cluster,
    cluster::REQUEST_TIMEOUT,
    error::broker_error,
    group_offsets::{GroupPosition, fetch_committed, stored_offset},
    leaders::{fetch_watermarks, learn_leaders},
    rebalance::{self, AssignmentChange, GroupContext, list_of},
};

/// How long a request that only wakes the client may take.
const WAKE_TIMEOUT: Duration = Duration::from_millis(500);

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
    consumer: BaseConsumer<GroupContext>,
    partitions: Vec<TopicPartition>,
    committed: GroupPosition,
    /// Whether positions are committed with what is finished above them.
    with_ranges: bool,
    /// Where the logs begin of which nothing is committed.
    starts: Position,
}

impl SourceConsumer {
    /// Assigns `partitions` and looks up what `group` has committed. A partition of which nothing was ever committed
    /// is read from its start.
    ///
    /// # Errors
    /// If the brokers do not tell what is committed, never a guess, or who leads the partitions.
    pub fn assign(cluster: &Cluster, group: &str, partitions: &[TopicPartition]) -> Result<Self> {
        let consumer = cluster.create_consumer(group, &[], GroupContext::default())?;
        let committed = fetch_committed(&consumer, partitions)?;
        learn_leaders(&consumer, partitions)?;
        let partitions_of = partitions.to_vec();
        let mut consumer =
            Self { consumer, partitions: partitions_of, committed, with_ranges: false, starts: Position::new() };
        let mut list = TopicPartitionList::with_capacity(partitions.len());
        for partition in partitions {
            let from = ClientOffset::Offset(consumer.resumes_at(partition)?.get());
            list.add_partition_offset(partition.topic(), partition.partition(), from)
                .map_err(|error| broker_error("cannot assign the source", error))?;
        }
        consumer.consumer.assign(&list).map_err(|error| broker_error("cannot assign the source", error))?;
        Ok(consumer)
    }

    /// What is committed of `partition`, or else where its log starts, which is remembered.
    fn resumes_at(&mut self, partition: &TopicPartition) -> Result<Offset> {
        if let Some(next) = self.committed.position.next(partition) {
            return Ok(next);
        }
        let start = Offset::try_from(self.log_start(partition)?)?;
        self.starts.set(partition.clone(), start);
        Ok(start)
    }

    /// Where the logs begin of those partitions of which nothing was committed when they were assigned: what a restore
    /// has to know ([`RestoreOptions::source_starts`](kstate_checkpoint::RestoreOptions::source_starts)).
    #[must_use]
    pub fn uncommitted_starts(&self) -> &Position {
        &self.starts
    }

    /// What the group has committed.
    #[must_use]
    pub fn committed(&self) -> &Position {
        &self.committed.position
    }

    /// The partitions whose committed offsets say nothing about finished ranges: what a restore has to know
    /// ([`RestoreOptions::bare_offsets`](kstate_checkpoint::RestoreOptions::bare_offsets)).
    #[must_use]
    pub fn bare_offsets(&self) -> &BTreeSet<TopicPartition> {
        &self.committed.bare
    }

    /// Commits finished ranges in the offsets' metadata from now on, and if there are none, that there are none.
    #[must_use]
    pub fn with_ranges(mut self) -> Self {
        self.with_ranges = true;
        self
    }

    /// The next record, if one comes within `timeout`.
    ///
    /// # Errors
    /// `Unsupported` if a log does not reach to what would come next, or what the client met.
    pub fn poll(&self, timeout: Duration) -> Result<Option<BorrowedMessage<'_>>> {
        self.consumer.poll(timeout).transpose().map_err(|error| self.explain(error))
    }

    /// The client's error as ours. Of a place that a log does not have, the client says no more than that it cannot go to
    /// another.
    pub(crate) fn explain(&self, error: KafkaError) -> Error {
        let what = "cannot read the source";
        let misplaced = match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange) => {
                self.partitions.iter().find_map(|partition| self.misplaced(partition))
            }
            _ => None,
        };
        match misplaced {
            Some(why) => Error::new(ErrorKind::Unsupported, format!("{what}: {why}")).with_source(error),
            None => broker_error(what, error),
        }
    }

    /// What is wrong if the log of `partition` does not reach to where it is to be read on.
    fn misplaced(&self, partition: &TopicPartition) -> Option<String> {
        let (start, end) = fetch_watermarks(&self.consumer, partition, "cannot look up what there is").ok()?;
        let read = self.consumer.position().ok().and_then(|read| stored_offset(&read, partition));
        // What was read may be ahead of what is committed.
        let next = read.max(self.resumed_at(slice::from_ref(partition)).next(partition))?.get();
        let why = match next {
            next if next < start => "the records in between were dropped",
            next if next > end => "it was cut off or made anew",
            _ => return None,
        };
        Some(format!(
            "offset {next} of {partition} comes next, and its log begins at {start} and ends at {end}: {why}; commit another \
             offset for the group to go on there"
        ))
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
            // A position before it is that of an earlier assignment of the partition.
            (self.committed.position.next(partition) < Some(next)).then(|| (partition.clone(), next))
        });
        Ok(moved.collect())
    }

    /// Joins `group` for `topics`; `own` are further properties of the consumer. Which partitions it reads, the group
    /// decides: what [`assignment_change`](Self::assignment_change) gives has to be followed.
    pub(crate) fn subscribe(cluster: &Cluster, group: &str, topics: &[String], own: &[(&str, &str)]) -> Result<Self> {
        let consumer = cluster.create_consumer(group, own, GroupContext::default())?;
        let topics = topics.iter().map(String::as_str).collect::<Vec<_>>();
        consumer.subscribe(&topics).map_err(|error| broker_error("cannot subscribe to the source", error))?;
        Ok(Self::with_nothing(consumer))
    }

    fn with_nothing(consumer: BaseConsumer<GroupContext>) -> Self {
        Self {
            consumer,
            partitions: Vec::new(),
            committed: GroupPosition::default(),
            with_ranges: false,
            starts: Position::new(),
        }
    }

    /// Reads `partitions` for `group`, of which it is no member. They are its only
    /// [`assignment_change`](Self::assignment_change), which has to be followed as well.
    pub(crate) fn own(cluster: &Cluster, group: &str, partitions: Vec<TopicPartition>) -> Result<Self> {
        let consumer = cluster.create_consumer(group, &[], GroupContext::default())?;
        learn_leaders(&consumer, &partitions)?;
        consumer.context().assigned(partitions);
        Ok(Self::with_nothing(consumer))
    }

    /// What the group has decided, until it was followed. There are no records meanwhile.
    pub(crate) fn assignment_change(&self) -> Option<AssignmentChange> {
        self.consumer.context().next_change()
    }

    /// Whether the partitions may be another member's already.
    pub(crate) fn assignment_lost(&self) -> bool {
        self.consumer.assignment_lost()
    }

    /// Follows an `Assigned`: reads `partitions` from what is committed of them on, once they are
    /// [resumed](Self::resume).
    ///
    /// # Errors
    /// If the brokers do not tell what is committed, or where a log starts of which nothing is. Then nothing has
    /// changed, and it can be tried again. `Config` for finished ranges if this consumer commits none.
    pub(crate) fn accept(&mut self, partitions: &[TopicPartition]) -> Result<()> {
        let what = "cannot follow the assignment";
        let committed = fetch_committed(&self.consumer, partitions)?;
        self.check_ranges(&committed.position)?;
        self.committed.merge(&committed);
        let mut list = TopicPartitionList::with_capacity(partitions.len());
        for partition in partitions {
            let from = ClientOffset::Offset(self.resumes_at(partition)?.get());
            list.add_partition_offset(partition.topic(), partition.partition(), from)
                .map_err(|error| broker_error(what, error))?;
        }
        rebalance::accept(&self.consumer, &list).map_err(|error| broker_error(what, error))?;
        self.consumer.context().followed();
        self.partitions.extend_from_slice(partitions);
        self.pause(partitions)
    }

    /// Refuses finished ranges that would be processed again and then forgotten.
    fn check_ranges(&self, committed: &Position) -> Result<()> {
        let has_ranges = |(_, position): &(&TopicPartition, &PartitionPosition)| !position.finished().is_empty();
        match committed.iter().find(has_ranges).filter(|_| !self.with_ranges) {
            None => Ok(()),
            Some((partition, position)) => {
                let message = format!(
                    "the group is at {position} of {partition}, and records above the next one are finished, which an app \
                     without workers would process again: let one with workers finish what is before them first"
                );
                Err(Error::new(ErrorKind::Config, message))
            }
        }
    }

    /// Follows a `Revoked` or a `Lost`.
    ///
    /// # Errors
    /// What the client met; the consumer is of no use any more.
    pub(crate) fn give_up(&mut self, partitions: &[TopicPartition]) -> Result<()> {
        self.partitions.retain(|partition| !partitions.contains(partition));
        self.committed.position = self
            .committed
            .position
            .iter()
            .filter(|(partition, _)| !partitions.contains(partition))
            .map(|(partition, position)| (partition.clone(), position.clone()))
            .collect();
        self.consumer.context().followed();
        rebalance::give_up(&self.consumer, &list_of(partitions))
            .map_err(|error| broker_error("cannot give up the source", error))
    }

    /// Where `partitions` are read from after an assignment or a rewind: what is committed, or else where a log begins.
    pub(crate) fn resumed_at(&self, partitions: &[TopicPartition]) -> Position {
        let position = |partition: &TopicPartition| {
            let committed = self.committed.position.get(partition).cloned();
            committed.or_else(|| self.starts.get(partition).cloned()).map(|position| (partition.clone(), position))
        };
        partitions.iter().filter_map(position).collect()
    }

    /// Gives out no records of `partitions` until they are resumed.
    pub(crate) fn pause(&self, partitions: &[TopicPartition]) -> Result<()> {
        self.consumer.pause(&list_of(partitions)).map_err(|error| broker_error("cannot pause the source", error))
    }

    /// Gives out the records of `partitions` again.
    pub(crate) fn resume(&self, partitions: &[TopicPartition]) -> Result<()> {
        self.consumer.resume(&list_of(partitions)).map_err(|error| broker_error("cannot resume the source", error))?;
        // The client's thread that fetches is not told, and looks again after a second at most. Any request to the same
        // broker wakes it; what comes of that is of no interest.
        for partition in partitions {
            let _ = self.consumer.fetch_watermarks(partition.topic(), partition.partition(), WAKE_TIMEOUT);
        }
        Ok(())
    }

    /// Goes back to what is committed of `partitions`, or to the start of a log of which nothing is.
    pub(crate) fn rewind(&self, partitions: &[TopicPartition]) -> Result<()> {
        let what = "cannot go back in the source";
        let mut list = TopicPartitionList::with_capacity(partitions.len());
        for partition in partitions {
            let from = match self.committed.position.next(partition) {
                Some(next) => next.get(),
                None => self.log_start(partition)?,
            };
            list.add_partition_offset(partition.topic(), partition.partition(), ClientOffset::Offset(from))
                .map_err(|error| broker_error(what, error))?;
        }
        let sought = self.consumer.seek_partitions(list, REQUEST_TIMEOUT).map_err(|error| broker_error(what, error))?;
        let failed = sought.elements().iter().find_map(|element| element.error().err());
        failed.map_or(Ok(()), |error| Err(broker_error(what, error)))
    }

    /// As [`poll`](Self::poll), with the client's own error.
    pub(crate) fn poll_client(&self, timeout: Duration) -> Option<KafkaResult<BorrowedMessage<'_>>> {
        self.consumer.poll(timeout)
    }

    /// Asks the group whether this is still a member of it, by committing once more what is committed, or where a log is
    /// read from of which nothing is.
    ///
    /// # Errors
    /// `Fenced` if it is not; else what the client met.
    pub(crate) fn confirm_membership(&self) -> Result<()> {
        let unchanged = self.unchanged();
        if unchanged.is_empty() {
            return Ok(());
        }
        self.consumer
            .commit(&self.client_list(&unchanged)?, CommitMode::Sync)
            .map_err(|error| broker_error("cannot confirm the membership in the group", error))
    }

    /// How often an assignment came with finished ranges that could not be used.
    pub(crate) fn ranges_ignored(&self) -> u64 {
        self.committed.ranges_ignored
    }

    /// The position that changes nothing if it is committed.
    pub(crate) fn unchanged(&self) -> Position {
        self.resumed_at(&self.partitions)
    }

    /// `position` as the client takes it.
    fn client_list(&self, position: &Position) -> Result<TopicPartitionList> {
        let what = "cannot commit the source's position";
        let mut list = TopicPartitionList::with_capacity(position.iter().len());
        for (partition, position) in position.iter() {
            let mut element = list.add_partition(partition.topic(), partition.partition());
            let set = element.set_offset(ClientOffset::Offset(position.next().get()));
            set.map_err(|error| broker_error(what, error))?;
            if !self.with_ranges && !position.finished().is_empty() {
                let message = format!("{what}: {position} has finished ranges, which this consumer does not commit");
                return Err(Error::new(ErrorKind::InvalidArgument, message));
            }
            if self.with_ranges {
                let metadata = position.to_metadata(MetadataLimit::default());
                let too_long = |error| Error::new(ErrorKind::InvalidArgument, format!("{what}: {error}"));
                element.set_metadata(metadata.map_err(too_long)?);
            }
        }
        Ok(list)
    }

    fn log_start(&self, partition: &TopicPartition) -> Result<i64> {
        let what = format!("cannot look up where {partition} starts");
        fetch_watermarks(&self.consumer, partition, &what).map(|(start, _)| start)
    }

    /// What a transaction needs to commit `position` for this consumer's group.
    pub(crate) fn for_transaction(&self, position: &Position) -> Result<(TopicPartitionList, ConsumerGroupMetadata)> {
        let group = self.consumer.group_metadata();
        let unknown = || Error::new(ErrorKind::Unavailable, "the consumer does not know its group yet");
        Ok((self.client_list(position)?, group.ok_or_else(unknown)?))
    }

    /// Asks the broker whether the group has committed `position`.
    fn check_committed(&self, position: &Position) -> Result<()> {
        let partitions: Vec<_> = position.iter().map(|(partition, _)| partition.clone()).collect();
        let stored = fetch_committed(&self.consumer, &partitions)?;
        let differs =
            |(partition, own): &(&TopicPartition, &PartitionPosition)| stored.position.get(partition) != Some(*own);
        let Some((partition, position)) = position.iter().find(differs) else { return Ok(()) };
        let found = stored.position.get(partition);
        let message = format!("the broker did not take {position} as the position of {partition}; it has {found:?}");
        Err(Error::new(ErrorKind::Io, message))
    }

    /// Takes note that the group has committed `position`.
    pub(crate) fn has_committed(&mut self, position: &Position) {
        let bare = if self.with_ranges {
            BTreeSet::new()
        } else {
            position.iter().map(|(partition, _)| partition.clone()).collect()
        };
        self.committed.merge(&GroupPosition { position: position.clone(), bare, ranges_ignored: 0 });
    }
}

impl SourceCommitter for SourceConsumer {
    fn commit(&mut self, position: &Position) -> Result<()> {
        if position.is_empty() {
            return Ok(());
        }
        self.consumer
            .commit(&self.client_list(position)?, CommitMode::Sync)
            .map_err(|error| broker_error("cannot commit the source's position", error))
            .map_err(|error| match error.kind() {
                // The group refuses this before it looks at the positions.
                ErrorKind::Fenced | ErrorKind::Busy => error.with_commit_outcome(CommitOutcome::NotApplied),
                _ => error,
            })?;
        // The client reports success if a single partition succeeded. Of several, only the broker knows of each.
        if position.iter().len() > 1 {
            self.check_committed(position)?;
        }
        self.has_committed(position);
        Ok(())
    }
}

impl Drop for SourceConsumer {
    fn drop(&mut self) {
        // The client's own end waits until every change of the assignment was followed.
        self.consumer.context().close(&self.consumer);
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::{EmbeddedCluster, GroupOffsets};

    /// The group is asked, not taken at its silence: a member that has committed nothing yet may have been replaced too.
    #[test]
    fn p5_a_member_that_has_committed_nothing_is_confirmed_by_a_commit_that_moves_nothing() {
        let embedded = EmbeddedCluster::start().unwrap();
        embedded.create_topic("lines", 1).unwrap();
        let (cluster, lines) = (embedded.cluster(), TopicPartition::new("lines", 0));
        let source = SourceConsumer::assign(&cluster, "group", slice::from_ref(&lines)).unwrap();
        let group = GroupOffsets::new(&cluster, "group").unwrap();
        let committed = || group.committed(slice::from_ref(&lines)).unwrap().position.next(&lines);
        assert_eq!(committed(), None);
        source.confirm_membership().unwrap();
        assert_eq!(committed(), Some(Offset::ZERO));
        assert_eq!(source.unchanged().next(&lines), Some(Offset::ZERO));
    }
}
