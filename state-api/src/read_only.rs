use std::fmt::Debug;

use bytes::Bytes;

use crate::{Cursor, KeyRange, Order, Result};

/// Reads of an ordered map from bytes to bytes: what stores, snapshots and backends have in common.
///
/// Keys are ordered as unsigned bytes (clause R1); an empty value is a value (clause R4). Callers use
/// [`ReadOnlyKeyValueStoreExt`].
///
/// ```
/// use kstate_api::{CursorExt, KeyRange, KeyValueStore, Order, ReadOnlyKeyValueStore, StagedStore};
/// # use kstate_store_memory::MemoryBackend;
///
/// fn largest_key(rows: &dyn ReadOnlyKeyValueStore) -> kstate_api::Result<Option<Vec<u8>>> {
///     let mut cursor = rows.scan(&KeyRange::all(), Order::Descending)?;
///     Ok(cursor.next_row()?.map(|(key, _)| key.to_vec()))
/// }
///
/// # fn main() -> kstate_api::Result<()> {
/// # let store = StagedStore::open("counts", MemoryBackend::new(), &[])?;
/// # for key in [b"a", b"b"] { store.put(key, b"")?; }
/// assert_eq!(largest_key(&store)?.unwrap(), b"b");
/// # Ok(())
/// # }
/// ```
pub trait ReadOnlyKeyValueStore: Debug + Send + Sync {
    /// Calls `read` with the value of `key`, without copying it, and tells whether there is one.
    ///
    /// `read` must not call the store: locks may be held while it runs.
    ///
    /// # Errors
    /// `Closed`, `Poisoned`, or whatever the engine met. `read` was not called then.
    ///
    /// ```
    /// # use kstate_api::{KeyValueStore, ReadOnlyKeyValueStore, StagedStore};
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[])?;
    /// store.put(b"word", &7_u64.to_be_bytes())?;
    /// let mut count = 0;
    /// assert!(store.get_with(b"word", &mut |value| count = value.try_into().map_or(0, u64::from_be_bytes))?);
    /// assert_eq!(count, 7);
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// A cursor over the rows in `range`, as they are now (clause R3).
    ///
    /// An [inverted](KeyRange::is_inverted) range is empty (clause R1).
    ///
    /// # Errors
    /// `Closed`, `Poisoned`, or whatever the engine met.
    ///
    /// ```
    /// # use kstate_api::{CursorExt, KeyRange, KeyValueStore, Order, ReadOnlyKeyValueStore, StagedStore};
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[])?;
    /// store.put_all(&[(b"a", Some(b"1")), (b"b", Some(b"2"))])?;
    /// let mut rows = store.scan(&KeyRange::from(b"a"), Order::Descending)?;
    /// store.put(b"c", b"3")?; // too late for this scan
    /// assert_eq!(rows.next_row()?, Some((b"b".as_slice(), b"2".as_slice())));
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>>;

    /// About how many rows there are.
    ///
    /// # Errors
    /// `Closed`, `Poisoned`, or whatever the engine met.
    ///
    /// ```
    /// # use kstate_api::{KeyValueStore, ReadOnlyKeyValueStore, StagedStore};
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[])?;
    /// store.put(b"word", b"1")?;
    /// assert_eq!(store.approximate_num_entries()?, 1); // exact in memory
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn approximate_num_entries(&self) -> Result<u64>;
}

/// What callers do with a [`ReadOnlyKeyValueStore`].
///
/// ```
/// use kstate_api::{Bytes, ReadOnlyKeyValueStore, ReadOnlyKeyValueStoreExt, Result};
/// # use kstate_store_memory::MemoryBackend;
///
/// fn look_up(rows: &dyn ReadOnlyKeyValueStore) -> Result<Option<Bytes>> {
///     rows.get(b"word")
/// }
/// # assert!(look_up(&MemoryBackend::new()).unwrap().is_none());
/// ```
pub trait ReadOnlyKeyValueStoreExt: ReadOnlyKeyValueStore {
    /// A copy of the value of `key`.
    ///
    /// # Errors
    /// As [`ReadOnlyKeyValueStore::get_with`].
    ///
    /// ```
    /// use kstate_api::{KeyValueStore, ReadOnlyKeyValueStoreExt, StagedStore};
    /// # use kstate_store_memory::MemoryBackend;
    /// # fn main() -> kstate_api::Result<()> {
    /// # let store = StagedStore::open("counts", MemoryBackend::new(), &[])?;
    /// store.put(b"word", b"1")?;
    /// assert_eq!(store.get(b"word")?.unwrap(), "1");
    /// # Ok(())
    /// # }
    /// ```
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let mut value = None;
        self.get_with(key, &mut |found| value = Some(Bytes::copy_from_slice(found)))?;
        Ok(value)
    }

    /// Whether `key` has a value.
    ///
    /// # Errors
    /// As [`ReadOnlyKeyValueStore::get_with`].
    ///
    /// ```
    /// # use kstate_api::{KeyValueStore, ReadOnlyKeyValueStoreExt, StagedStore};
    /// # use kstate_store_memory::MemoryBackend;
    /// # fn main() -> kstate_api::Result<()> {
    /// # let store = StagedStore::open("counts", MemoryBackend::new(), &[])?;
    /// assert!(!store.contains_key(b"word")?);
    /// # Ok(())
    /// # }
    /// ```
    fn contains_key(&self, key: &[u8]) -> Result<bool> {
        self.get_with(key, &mut |_| {})
    }

    /// The rows from `first` to `last`, both included, ascending.
    ///
    /// # Errors
    /// As [`ReadOnlyKeyValueStore::scan`].
    ///
    /// ```
    /// # use kstate_api::{CursorExt, KeyValueStore, ReadOnlyKeyValueStoreExt, StagedStore};
    /// # use kstate_store_memory::MemoryBackend;
    /// # fn main() -> kstate_api::Result<()> {
    /// # let store = StagedStore::open("counts", MemoryBackend::new(), &[])?;
    /// # for key in [b"a", b"b", b"c"] { store.put(key, b"")?; }
    /// assert_eq!(store.range(b"a", b"b")?.entries().count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    fn range(&self, first: &[u8], last: &[u8]) -> Result<Box<dyn Cursor>> {
        self.scan(&KeyRange::between(first, last), Order::Ascending)
    }

    /// The rows from `last` down to `first`, both included.
    ///
    /// # Errors
    /// As [`ReadOnlyKeyValueStore::scan`].
    ///
    /// ```
    /// # use kstate_api::{CursorExt, KeyValueStore, ReadOnlyKeyValueStoreExt, StagedStore};
    /// # use kstate_store_memory::MemoryBackend;
    /// # fn main() -> kstate_api::Result<()> {
    /// # let store = StagedStore::open("counts", MemoryBackend::new(), &[])?;
    /// # for key in [b"a", b"b", b"c"] { store.put(key, b"")?; }
    /// assert_eq!(store.reverse_range(b"a", b"b")?.next_row()?.unwrap().0, b"b");
    /// # Ok(())
    /// # }
    /// ```
    fn reverse_range(&self, first: &[u8], last: &[u8]) -> Result<Box<dyn Cursor>> {
        self.scan(&KeyRange::between(first, last), Order::Descending)
    }

    /// The rows whose keys begin with `prefix`, ascending; the empty prefix is every row.
    ///
    /// # Errors
    /// As [`ReadOnlyKeyValueStore::scan`].
    ///
    /// ```
    /// # use kstate_api::{CursorExt, KeyValueStore, ReadOnlyKeyValueStoreExt, StagedStore};
    /// # use kstate_store_memory::MemoryBackend;
    /// # fn main() -> kstate_api::Result<()> {
    /// # let store = StagedStore::open("counts", MemoryBackend::new(), &[])?;
    /// # for key in [b"ab", b"ac", b"bc"] { store.put(key, b"")?; }
    /// assert_eq!(store.prefix_scan(b"a")?.entries().count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    fn prefix_scan(&self, prefix: &[u8]) -> Result<Box<dyn Cursor>> {
        self.scan(&KeyRange::prefix(prefix), Order::Ascending)
    }

    /// Every row, ascending.
    ///
    /// # Errors
    /// As [`ReadOnlyKeyValueStore::scan`].
    ///
    /// ```
    /// # use kstate_api::{CursorExt, ReadOnlyKeyValueStoreExt, StagedStore};
    /// # use kstate_store_memory::MemoryBackend;
    /// # fn main() -> kstate_api::Result<()> {
    /// # let store = StagedStore::open("counts", MemoryBackend::new(), &[])?;
    /// assert_eq!(store.all()?.entries().count(), 0);
    /// # Ok(())
    /// # }
    /// ```
    fn all(&self) -> Result<Box<dyn Cursor>> {
        self.scan(&KeyRange::all(), Order::Ascending)
    }

    /// Every row, descending.
    ///
    /// # Errors
    /// As [`ReadOnlyKeyValueStore::scan`].
    ///
    /// ```
    /// # use kstate_api::{CursorExt, ReadOnlyKeyValueStoreExt, StagedStore};
    /// # use kstate_store_memory::MemoryBackend;
    /// # fn main() -> kstate_api::Result<()> {
    /// # let store = StagedStore::open("counts", MemoryBackend::new(), &[])?;
    /// assert_eq!(store.reverse_all()?.entries().count(), 0);
    /// # Ok(())
    /// # }
    /// ```
    fn reverse_all(&self) -> Result<Box<dyn Cursor>> {
        self.scan(&KeyRange::all(), Order::Descending)
    }
}

impl<S: ReadOnlyKeyValueStore + ?Sized> ReadOnlyKeyValueStoreExt for S {}
