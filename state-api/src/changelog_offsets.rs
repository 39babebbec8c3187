use std::collections::{BTreeMap, btree_map};

use crate::{Offset, TopicPartition};

/// For each changelog partition, the offset of the last record whose effect is in the store (clause O1).
///
/// ```
/// use kstate_api::{ChangelogOffsets, Offset, TopicPartition};
///
/// let partition = TopicPartition::new("counts-changelog", 0);
/// let offsets = ChangelogOffsets::new().with(partition.clone(), Offset::new(41).unwrap());
/// assert_eq!(offsets.get(&partition).map(Offset::get), Some(41));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangelogOffsets(BTreeMap<TopicPartition, Offset>);

impl ChangelogOffsets {
    /// No offsets: committing this commits records and changes no offset (clause O2).
    ///
    /// ```
    /// # use kstate_api::ChangelogOffsets;
    /// assert!(ChangelogOffsets::new().is_empty());
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// These offsets and one more.
    ///
    /// ```
    /// # use kstate_api::{ChangelogOffsets, Offset, TopicPartition};
    /// let offsets = ChangelogOffsets::new().with(TopicPartition::new("cl", 0), Offset::ZERO);
    /// assert_eq!(offsets.len(), 1);
    /// ```
    #[must_use]
    pub fn with(mut self, partition: TopicPartition, offset: Offset) -> Self {
        self.insert(partition, offset);
        self
    }

    /// Sets the offset of `partition`, exactly as given (clause O3).
    ///
    /// ```
    /// # use kstate_api::{ChangelogOffsets, Offset, TopicPartition};
    /// let mut offsets = ChangelogOffsets::new();
    /// offsets.insert(TopicPartition::new("cl", 0), Offset::ZERO);
    /// ```
    pub fn insert(&mut self, partition: TopicPartition, offset: Offset) {
        self.0.insert(partition, offset);
    }

    /// The offset of `partition`, if it has one here.
    ///
    /// ```
    /// # use kstate_api::{ChangelogOffsets, TopicPartition};
    /// assert_eq!(ChangelogOffsets::new().get(&TopicPartition::new("cl", 0)), None);
    /// ```
    #[must_use]
    pub fn get(&self, partition: &TopicPartition) -> Option<Offset> {
        self.0.get(partition).copied()
    }

    /// The partitions and their offsets, in the partitions' order.
    ///
    /// ```
    /// # use kstate_api::ChangelogOffsets;
    /// assert_eq!(ChangelogOffsets::new().iter().count(), 0);
    /// ```
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&TopicPartition, Offset)> {
        self.0.iter().map(|(partition, offset)| (partition, *offset))
    }

    /// How many partitions have an offset here.
    ///
    /// ```
    /// # use kstate_api::ChangelogOffsets;
    /// assert_eq!(ChangelogOffsets::new().len(), 0);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no partition has an offset here.
    ///
    /// ```
    /// # use kstate_api::ChangelogOffsets;
    /// assert!(ChangelogOffsets::new().is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(TopicPartition, Offset)> for ChangelogOffsets {
    fn from_iter<I: IntoIterator<Item = (TopicPartition, Offset)>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl Extend<(TopicPartition, Offset)> for ChangelogOffsets {
    fn extend<I: IntoIterator<Item = (TopicPartition, Offset)>>(&mut self, entries: I) {
        self.0.extend(entries);
    }
}

impl IntoIterator for ChangelogOffsets {
    type Item = (TopicPartition, Offset);
    type IntoIter = btree_map::IntoIter<TopicPartition, Offset>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
