use std::collections::BTreeMap;

use crate::{Offset, PartitionPosition, TopicPartition};

/// For each *source* partition, the offset of the next record to process: what a consumer group commits. Where records
/// finish out of order, it also has the finished ranges above that offset ([`PartitionPosition`], clause A5).
///
/// It is staged and committed with the records that were made from the source (clause O2), so a reader of a snapshot
/// knows how far the source it reflects had come. Mind the difference to
/// [`ChangelogOffsets`](crate::ChangelogOffsets), which name the *last* record applied: a position counts one past it,
/// as the consumer's own position does.
///
/// ```
/// use kstate_api::{Offset, Position, TopicPartition};
///
/// let source = TopicPartition::new("lines", 0);
/// let mut position = Position::new();
/// position.set(source.clone(), Offset::new(8).unwrap());
/// assert_eq!(position.next(&source).map(Offset::get), Some(8));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position(BTreeMap<TopicPartition, PartitionPosition>);

impl Position {
    /// A position that knows of no partition.
    ///
    /// ```
    /// # use kstate_api::Position;
    /// assert!(Position::new().is_empty());
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Sets the position of `partition`, exactly as given: the offset of the next record, or that with finished ranges.
    ///
    /// ```
    /// # use kstate_api::{Offset, Position, TopicPartition};
    /// Position::new().set(TopicPartition::new("lines", 0), Offset::ZERO);
    /// ```
    pub fn set(&mut self, partition: TopicPartition, position: impl Into<PartitionPosition>) {
        self.0.insert(partition, position.into());
    }

    /// The position of `partition`, if it is known.
    ///
    /// ```
    /// # use kstate_api::{Offset, PartitionPosition, Position, TopicPartition};
    /// let (lines, at) = (TopicPartition::new("lines", 0), |offset| Offset::new(offset).unwrap());
    /// let mut position = Position::new();
    /// position.set(lines.clone(), PartitionPosition::new(at(5), [at(6)..at(8)]).unwrap());
    /// assert!(position.get(&lines).is_some_and(|lines| lines.is_finished(at(7))));
    /// ```
    #[must_use]
    pub fn get(&self, partition: &TopicPartition) -> Option<&PartitionPosition> {
        self.0.get(partition)
    }

    /// The offset of the next record of `partition`, if it is known.
    ///
    /// ```
    /// # use kstate_api::{Position, TopicPartition};
    /// assert_eq!(Position::new().next(&TopicPartition::new("lines", 0)), None);
    /// ```
    #[must_use]
    pub fn next(&self, partition: &TopicPartition) -> Option<Offset> {
        self.get(partition).map(PartitionPosition::next)
    }

    /// Takes over every entry of `later`; partitions it does not name stay as they are.
    ///
    /// ```
    /// # use kstate_api::{Offset, Position, TopicPartition};
    /// let (mut position, mut later) = (Position::new(), Position::new());
    /// later.set(TopicPartition::new("lines", 0), Offset::ZERO);
    /// position.merge(&later);
    /// assert_eq!(position, later);
    /// ```
    pub fn merge(&mut self, later: &Self) {
        self.0.extend(later.0.iter().map(|(partition, position)| (partition.clone(), position.clone())));
    }

    /// Whether everything that is finished in `other` is finished in this position, in every partition of `other`.
    ///
    /// ```
    /// # use kstate_api::{Offset, Position, TopicPartition};
    /// let mut position = Position::new();
    /// position.set(TopicPartition::new("lines", 0), Offset::ZERO);
    /// assert!(position.covers(&Position::new()) && !Position::new().covers(&position));
    /// ```
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        other.iter().all(|(partition, position)| self.get(partition).is_some_and(|own| own.covers(position)))
    }

    /// The partitions and their positions, in the partitions' order.
    ///
    /// ```
    /// # use kstate_api::Position;
    /// assert_eq!(Position::new().iter().count(), 0);
    /// ```
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&TopicPartition, &PartitionPosition)> {
        self.0.iter()
    }

    /// Whether no partition is known.
    ///
    /// ```
    /// # use kstate_api::Position;
    /// assert!(Position::new().is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<P: Into<PartitionPosition>> FromIterator<(TopicPartition, P)> for Position {
    fn from_iter<I: IntoIterator<Item = (TopicPartition, P)>>(entries: I) -> Self {
        Self(entries.into_iter().map(|(partition, position)| (partition, position.into())).collect())
    }
}
