use std::time::Duration;

use kstate_api::{ChangelogOffsets, Offset, Position, Result, TopicPartition};

/// One record of a changelog.
///
/// It stands for all writes of its key since the last checkpoint, so it has no source record's headers or timestamp. A
/// tombstone has what a value has.
#[derive(Clone, Copy, Debug)]
pub struct ChangelogRecord<'r> {
    /// The key. Kafka allows none; such a record changes nothing.
    pub key: Option<&'r [u8]>,
    /// The value, `None` for a tombstone: the key is deleted.
    pub value: Option<&'r [u8]>,
    /// The header [`SOURCE_POSITION_HEADER`](crate::SOURCE_POSITION_HEADER), as it is.
    pub source_position: Option<&'r [u8]>,
}

/// Writes changelogs.
pub trait ChangelogWriter {
    /// Whether [`append`](ChangelogWriter::append) would take a record of this size, without sending anything.
    ///
    /// # Errors
    /// `InvalidArgument` if the broker would refuse it.
    fn check(&self, record: ChangelogRecord<'_>) -> Result<()>;

    /// Hands one record of `partition` over for sending. It may wait for room, but not for the delivery.
    ///
    /// # Errors
    /// `InvalidArgument` if the broker would refuse the record for its size, `Unavailable` if there is no room in
    /// time, or what the client met.
    fn append(&mut self, partition: &TopicPartition, record: ChangelogRecord<'_>) -> Result<()>;

    /// Waits until every record since the last flush was delivered, and returns the highest offset of each partition,
    /// as the broker gave it (clause P2). Whatever it returns, the next flush begins anew.
    ///
    /// # Errors
    /// If a single delivery failed or did not end in time: nothing may be committed then.
    fn flush(&mut self) -> Result<ChangelogOffsets>;
}

/// Commits source positions in the consumer group.
pub trait SourceCommitter {
    /// Commits `position` and returns when the broker has it for every partition.
    ///
    /// # Errors
    /// If it failed for any partition. Unless the error says [`NotApplied`](kstate_api::CommitOutcome::NotApplied), it
    /// may have happened all the same.
    fn commit(&mut self, position: &Position) -> Result<()>;
}

/// What a changelog partition holds: `[start, end)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogBounds {
    /// The first offset that is still there.
    pub start: Offset,
    /// One past the last offset; transaction markers occupy offsets too.
    pub end: Offset,
}

/// Reads changelogs, one partition at a time.
pub trait ChangelogReader {
    /// What `partition` holds now.
    ///
    /// # Errors
    /// If the broker does not tell: never a guess.
    fn bounds(&mut self, partition: &TopicPartition) -> Result<LogBounds>;

    /// Makes the next [`poll`](ChangelogReader::poll) read `partition` from offset `next` on.
    ///
    /// # Errors
    /// What the client met.
    fn seek(&mut self, partition: &TopicPartition, next: Offset) -> Result<()>;

    /// Calls `read` with the next record, if one comes within `timeout`, and tells whether one came.
    ///
    /// # Errors
    /// What the client met.
    fn poll(&mut self, timeout: Duration, read: &mut dyn FnMut(Offset, ChangelogRecord<'_>)) -> Result<bool>;

    /// The offset that is read next: past every record, marker and gap that [`poll`](ChangelogReader::poll) met.
    ///
    /// # Errors
    /// What the client met.
    fn position(&mut self) -> Result<Offset>;
}
