use std::{
    collections::{BTreeMap, btree_map},
    mem,
    sync::Arc,
};

use bytes::Bytes;
use byteview::ByteView;

use crate::{ChangelogOffsets, Offset, PartitionPosition, Position, TopicPartition};

/// What an entry costs beyond its key and value: the map's node and the handles, roughly.
const ENTRY_OVERHEAD: usize = 64;

/// A key of a batch. Short ones lie in the map's nodes themselves.
pub(crate) type Key = ByteView;
/// The records of a batch, sorted.
pub(crate) type Records = BTreeMap<Key, Option<Bytes>>;

/// Records, changelog offsets and a source position that belong together: one atomic step of a backend (clause O2).
///
/// Records are kept sorted, one per key, the last one wins; so a batch read from a changelog in offset order equals
/// its records applied one at a time, and every engine is handed its keys in ascending order.
///
/// ```
/// use kstate_api::{Offset, TopicPartition, WriteBatch};
///
/// let mut batch = WriteBatch::new();
/// batch.put("key", "first");
/// batch.put("key", "second");
/// batch.delete("gone");
/// batch.set_offset(TopicPartition::new("counts-changelog", 0), Offset::new(2).unwrap());
/// assert_eq!(batch.len(), 2);
/// assert_eq!(batch.get(b"key").unwrap().unwrap(), "second");
/// ```
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    /// Shared with scans that are still reading it; a write copies it for itself then.
    records: Arc<Records>,
    offsets: ChangelogOffsets,
    position: Position,
    forgets_offsets: bool,
    byte_size: usize,
}

impl WriteBatch {
    /// A batch that changes nothing.
    ///
    /// ```
    /// # use kstate_api::WriteBatch;
    /// assert!(WriteBatch::new().is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of `key`. An empty value is a value (clause R4).
    ///
    /// ```
    /// # use kstate_api::WriteBatch;
    /// let mut batch = WriteBatch::new();
    /// batch.put("key", "");
    /// assert_eq!(batch.get(b"key"), Some(Some(&bytes::Bytes::new())));
    /// ```
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl Into<Bytes>) {
        self.set(key.as_ref().into(), Some(value.into()));
    }

    /// Deletes `key`. It need not be there.
    ///
    /// ```
    /// # use kstate_api::WriteBatch;
    /// let mut batch = WriteBatch::new();
    /// batch.delete("key");
    /// assert_eq!(batch.get(b"key"), Some(None));
    /// ```
    pub fn delete(&mut self, key: impl AsRef<[u8]>) {
        self.set(key.as_ref().into(), None);
    }

    fn set(&mut self, key: Key, value: Option<Bytes>) {
        let value_len = |value: &Option<Bytes>| value.as_ref().map_or(0, Bytes::len);
        match Arc::make_mut(&mut self.records).entry(key) {
            btree_map::Entry::Occupied(mut entry) => {
                self.byte_size = self.byte_size + value_len(&value) - value_len(entry.get());
                entry.insert(value);
            }
            btree_map::Entry::Vacant(entry) => {
                self.byte_size += entry.key().len() + value_len(&value) + ENTRY_OVERHEAD;
                entry.insert(value);
            }
        }
    }

    /// Sets the changelog offset of `partition`, exactly as given (clause O3).
    ///
    /// ```
    /// # use kstate_api::{Offset, TopicPartition, WriteBatch};
    /// WriteBatch::new().set_offset(TopicPartition::new("cl", 0), Offset::ZERO);
    /// ```
    pub fn set_offset(&mut self, partition: TopicPartition, offset: Offset) {
        self.offsets.insert(partition, offset);
    }

    /// Sets all of `offsets`, exactly as given (clause O3).
    ///
    /// ```
    /// # use kstate_api::{ChangelogOffsets, WriteBatch};
    /// WriteBatch::new().set_offsets(&ChangelogOffsets::new());
    /// ```
    pub fn set_offsets(&mut self, offsets: &ChangelogOffsets) {
        self.offsets.extend(offsets.iter().map(|(partition, offset)| (partition.clone(), offset)));
    }

    /// Sets the position of the source partition `partition`: the next record to process, or that and the finished
    /// ranges above it.
    ///
    /// ```
    /// # use kstate_api::{Offset, TopicPartition, WriteBatch};
    /// WriteBatch::new().set_position(TopicPartition::new("lines", 0), Offset::ZERO);
    /// ```
    pub fn set_position(&mut self, partition: TopicPartition, position: impl Into<PartitionPosition>) {
        self.position.set(partition, position);
    }

    /// Makes the backend forget every offset and position it has, before it takes those of this batch.
    ///
    /// ```
    /// # use kstate_api::WriteBatch;
    /// let mut batch = WriteBatch::new();
    /// batch.forget_offsets();
    /// assert!(batch.forgets_offsets());
    /// ```
    pub fn forget_offsets(&mut self) {
        self.forgets_offsets = true;
    }

    /// What this batch says of `key`: `None` if nothing, `Some(None)` if it is deleted.
    ///
    /// ```
    /// # use kstate_api::WriteBatch;
    /// assert_eq!(WriteBatch::new().get(b"key"), None);
    /// ```
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<Option<&Bytes>> {
        self.records.get(key).map(Option::as_ref)
    }

    /// The records in ascending order of their keys; `None` deletes.
    ///
    /// ```
    /// # use kstate_api::WriteBatch;
    /// assert_eq!(WriteBatch::new().records().count(), 0);
    /// ```
    #[must_use]
    pub fn records(&self) -> impl ExactSizeIterator<Item = (&[u8], Option<&Bytes>)> + DoubleEndedIterator {
        self.records.iter().map(|(key, value)| (&**key, value.as_ref()))
    }

    /// The changelog offsets to set.
    ///
    /// ```
    /// # use kstate_api::WriteBatch;
    /// assert!(WriteBatch::new().offsets().is_empty());
    /// ```
    #[must_use]
    pub fn offsets(&self) -> &ChangelogOffsets {
        &self.offsets
    }

    /// The source positions to set; partitions it does not name keep theirs.
    ///
    /// ```
    /// # use kstate_api::WriteBatch;
    /// assert!(WriteBatch::new().position().is_empty());
    /// ```
    #[must_use]
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// Whether stored offsets and positions go before this batch's are set.
    ///
    /// ```
    /// # use kstate_api::WriteBatch;
    /// assert!(!WriteBatch::new().forgets_offsets());
    /// ```
    #[must_use]
    pub fn forgets_offsets(&self) -> bool {
        self.forgets_offsets
    }

    /// How many records there are: one per key.
    ///
    /// ```
    /// # use kstate_api::WriteBatch;
    /// assert_eq!(WriteBatch::new().len(), 0);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether applying this batch would change nothing.
    ///
    /// ```
    /// # use kstate_api::WriteBatch;
    /// assert!(WriteBatch::new().is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.offsets.is_empty() && self.position.is_empty() && !self.forgets_offsets
    }

    /// About how many bytes of memory the records take: keys, values and what keeps them.
    ///
    /// ```
    /// # use kstate_api::WriteBatch;
    /// assert_eq!(WriteBatch::new().byte_size(), 0);
    /// ```
    #[must_use]
    pub fn byte_size(&self) -> usize {
        self.byte_size
    }

    /// Empties the batch and returns what it was.
    ///
    /// ```
    /// # use kstate_api::WriteBatch;
    /// let mut batch = WriteBatch::new();
    /// batch.put("a", "1");
    /// assert_eq!(batch.take().len(), 1);
    /// assert!(batch.is_empty());
    /// ```
    #[must_use = "the records are in what this returns"]
    pub fn take(&mut self) -> Self {
        mem::take(self)
    }

    /// The records, to be read while this batch goes on.
    pub(crate) fn shared_records(&self) -> &Arc<Records> {
        &self.records
    }

    /// Takes the offsets back out, leaving records and position staged.
    pub(crate) fn clear_offsets(&mut self) {
        self.offsets = ChangelogOffsets::new();
    }
}
