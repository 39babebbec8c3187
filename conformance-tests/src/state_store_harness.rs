use std::{
    collections::BTreeMap,
    fmt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use kstate_api::{
    ChangelogOffsets, Cursor, Error, ErrorKind, KeyRange, KeyValueStore, Offset, Order, PartitionPosition, Position,
    ReadOnlyKeyValueStore, ReadOnlyKeyValueStoreExt, Result, Row, Snapshot, StateStore, TopicPartition, VisitChange,
    WriteBatch,
};

use crate::Harness;

/// How the suite opens, writes and reads a store that is a [`StateStore`] and nothing more: one whose users know it by
/// an interface of its own, such as counters or a queue.
///
/// The suite writes and reads the records that go to the changelog and come back from it: a key and a value, or a
/// delete. [`put`](StateStoreHarness::put), [`delete`](StateStoreHarness::delete) and
/// [`rows`](StateStoreHarness::rows) say what they are in the store's own words. Any bytes have to do as key and value.
///
/// ```
/// use std::{collections::BTreeMap, path::Path};
///
/// use kstate_api::{Bytes, CursorExt, KeyValueStore, ReadOnlyKeyValueStoreExt, Result, StagedStore, TopicPartition};
/// use kstate_conformance_tests::StateStoreHarness;
/// use kstate_store_memory::MemoryBackend;
///
/// struct MyHarness;
///
/// impl StateStoreHarness for MyHarness {
///     // One's own store here.
///     type Store = StagedStore<MemoryBackend>;
///
///     fn open(&self, _directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<Self::Store> {
///         StagedStore::open("my-store", MemoryBackend::new(), changelog_partitions)
///     }
///
///     fn put(&self, store: &Self::Store, key: &[u8], value: &[u8]) -> Result<()> {
///         store.put(key, value)
///     }
///
///     fn delete(&self, store: &Self::Store, key: &[u8]) -> Result<()> {
///         store.delete(key)
///     }
///
///     fn rows(&self, store: &Self::Store) -> Result<BTreeMap<Bytes, Bytes>> {
///         store.all()?.entries().collect()
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not tell the suite how to open, write and read a `StateStore`",
    label = "no `StateStoreHarness`",
    note = "with `state_store_only: true`, `harness` is a `StateStoreHarness`; for a `Backend` or a `KeyValueStore` \
            leave that word out"
)]
pub trait StateStoreHarness: Send + Sync + 'static {
    /// What it opens.
    type Store: StateStore + 'static;

    /// Opens the store; see [`Harness::open`].
    ///
    /// # Errors
    /// What the store says.
    fn open(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<Self::Store>;

    /// Does to the store what stages the record `key`, `value`.
    ///
    /// # Errors
    /// What the store says.
    fn put(&self, store: &Self::Store, key: &[u8], value: &[u8]) -> Result<()>;

    /// Does to the store what stages the delete of `key`.
    ///
    /// # Errors
    /// What the store says.
    fn delete(&self, store: &Self::Store, key: &[u8]) -> Result<()>;

    /// Everything in the store as its owner sees it: what is staged over what is committed, as records.
    ///
    /// # Errors
    /// What the store says.
    fn rows(&self, store: &Self::Store) -> Result<BTreeMap<Bytes, Bytes>>;

    /// The offsets in a closed store; see [`Harness::read_offsets`].
    ///
    /// # Errors
    /// What the store says.
    fn read_offsets(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
        let _ = (directory, changelog_partitions);
        Err(Error::new(ErrorKind::Unsupported, "this harness does not read the offsets of closed stores"))
    }
}

/// The [`Harness`] of a store that is a [`StateStore`] only, made of a [`StateStoreHarness`]: what the macro does for
/// `state_store_only: true`, for those who drive the cases otherwise.
///
/// It declares [`StateStoreOnly`](crate::Capability::StateStoreOnly), and neither `snapshots`, `reverse_scan` nor
/// `faults`.
pub struct StateStoreOnly<H> {
    harness: Arc<H>,
}

impl<H> fmt::Debug for StateStoreOnly<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateStoreOnly").finish_non_exhaustive()
    }
}

impl<H: StateStoreHarness> StateStoreOnly<H> {
    /// The harness for the cases.
    #[must_use]
    pub fn new(harness: H) -> Self {
        Self { harness: Arc::new(harness) }
    }
}

impl<H: StateStoreHarness> Harness for StateStoreOnly<H> {
    type Store = RecordStore<H>;

    fn open(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<Self::Store> {
        let store = self.harness.open(directory, changelog_partitions)?;
        Ok(RecordStore { store, harness: Arc::clone(&self.harness), closed: Arc::default() })
    }

    fn read_offsets(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
        self.harness.read_offsets(directory, changelog_partitions)
    }

    fn is_state_store_only(&self) -> bool {
        true
    }
}

/// A [`StateStore`] with the writes and reads of its [`StateStoreHarness`]: enough of a key-value store for the cases
/// that are not about one.
pub struct RecordStore<H: StateStoreHarness> {
    store: H::Store,
    harness: Arc<H>,
    closed: Arc<AtomicBool>,
}

impl<H: StateStoreHarness> fmt::Debug for RecordStore<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordStore").field("store", &self.store).finish_non_exhaustive()
    }
}

impl<H: StateStoreHarness> Drop for RecordStore<H> {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Release);
    }
}

#[deny(clippy::missing_trait_methods)]
impl<H: StateStoreHarness> StateStore for RecordStore<H> {
    fn name(&self) -> &str {
        self.store.name()
    }

    fn persistent(&self) -> bool {
        self.store.persistent()
    }

    fn manages_offsets(&self) -> bool {
        self.store.manages_offsets()
    }

    fn changelog_partitions(&self) -> &[TopicPartition] {
        self.store.changelog_partitions()
    }

    fn commit(&self, changelog_offsets: &ChangelogOffsets) -> Result<()> {
        self.store.commit(changelog_offsets)
    }

    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.store.committed_offset(partition)
    }

    fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.store.durable_offset(partition)
    }

    fn forget_offsets(&self) -> Result<()> {
        self.store.forget_offsets()
    }

    fn stage_position(&self, partition: &TopicPartition, position: PartitionPosition) -> Result<()> {
        self.store.stage_position(partition, position)
    }

    fn position(&self) -> Result<Position> {
        self.store.position()
    }

    fn staged_changes(&self, visit: &mut VisitChange<'_>) -> Result<()> {
        self.store.staged_changes(visit)
    }

    fn committed_value(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.store.committed_value(key)
    }

    fn uncommitted_bytes(&self) -> u64 {
        self.store.uncommitted_bytes()
    }

    fn rollback(&self) -> Result<()> {
        self.store.rollback()
    }

    fn restore(&self, batch: &WriteBatch) -> Result<()> {
        self.store.restore(batch)
    }

    fn flush(&self) -> Result<()> {
        self.store.flush()
    }

    fn wipe(&self) -> Result<()> {
        self.store.wipe()
    }

    fn is_open(&self) -> bool {
        self.store.is_open()
    }

    fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::Release);
        self.store.close()
    }
}

impl<H: StateStoreHarness> ReadOnlyKeyValueStore for RecordStore<H> {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let rows = self.harness.rows(&self.store)?;
        let value = rows.get(key);
        if let Some(value) = value {
            read(value);
        }
        Ok(value.is_some())
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        if order == Order::Descending {
            return Err(unsupported());
        }
        let mut rows = self.harness.rows(&self.store)?;
        rows.retain(|key, _| range.contains(key));
        let rows = rows.into_iter();
        Ok(Box::new(RecordCursor { rows, current: None, closed: Arc::clone(&self.closed) }))
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        Ok(self.harness.rows(&self.store)?.len() as u64)
    }
}

impl<H: StateStoreHarness> KeyValueStore for RecordStore<H> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.harness.put(&self.store, key, value)
    }

    fn put_all(&self, entries: &[(&[u8], Option<&[u8]>)]) -> Result<()> {
        entries.iter().try_for_each(|(key, value)| match value {
            Some(value) => self.put(key, value),
            None => self.delete(key),
        })
    }

    fn put_if_absent(&self, key: &[u8], value: &[u8]) -> Result<Option<Bytes>> {
        let present = self.get(key)?;
        if present.is_none() {
            self.put(key, value)?;
        }
        Ok(present)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.harness.delete(&self.store, key)
    }

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        Err(unsupported())
    }
}

fn unsupported() -> Error {
    Error::new(ErrorKind::Unsupported, "the store under test is a `StateStore` only")
}

/// A cursor over copies.
#[derive(Debug)]
struct RecordCursor {
    rows: std::collections::btree_map::IntoIter<Bytes, Bytes>,
    current: Option<(Bytes, Bytes)>,
    closed: Arc<AtomicBool>,
}

impl Cursor for RecordCursor {
    fn advance(&mut self) -> Result<bool> {
        if self.closed.load(Ordering::Acquire) {
            self.current = None;
            return Err(Error::new(ErrorKind::Closed, "the store is closed"));
        }
        self.current = self.rows.next();
        Ok(self.current.is_some())
    }

    fn row(&self) -> Option<Row<'_>> {
        self.current.as_ref().map(|(key, value)| (&**key, &**value))
    }
}
