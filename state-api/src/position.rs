use std::collections::BTreeMap;

use crate::{Offset, TopicPartition};

/// For each *source* partition, the offset of the next record to process: what a consumer group commits.
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
pub struct Position(BTreeMap<TopicPartition, Offset>);

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

    /// Sets the offset of the next record of `partition`, exactly as given.
    ///
    /// ```
    /// # use kstate_api::{Offset, Position, TopicPartition};
    /// Position::new().set(TopicPartition::new("lines", 0), Offset::ZERO);
    /// ```
    pub fn set(&mut self, partition: TopicPartition, next: Offset) {
        self.0.insert(partition, next);
    }

    /// The offset of the next record of `partition`, if it is known.
    ///
    /// ```
    /// # use kstate_api::{Position, TopicPartition};
    /// assert_eq!(Position::new().next(&TopicPartition::new("lines", 0)), None);
    /// ```
    #[must_use]
    pub fn next(&self, partition: &TopicPartition) -> Option<Offset> {
        self.0.get(partition).copied()
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
        self.0.extend(later.0.iter().map(|(partition, next)| (partition.clone(), *next)));
    }

    /// The partitions and their next offsets, in the partitions' order.
    ///
    /// ```
    /// # use kstate_api::Position;
    /// assert_eq!(Position::new().iter().count(), 0);
    /// ```
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&TopicPartition, Offset)> {
        self.0.iter().map(|(partition, next)| (partition, *next))
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

impl FromIterator<(TopicPartition, Offset)> for Position {
    fn from_iter<I: IntoIterator<Item = (TopicPartition, Offset)>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}
