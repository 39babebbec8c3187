use std::sync::Arc;

use bytes::Bytes;

use crate::{ReadOnlyKeyValueStore, ReadOnlyKeyValueStoreExt, Result, Snapshot, StateStore};

/// A [`StateStore`] that is an ordered map from bytes to bytes.
///
/// # Contract
/// R2: the store's own reads, gets and scans alike, see its staged writes; a [snapshot](KeyValueStore::snapshot) is
/// committed data only. R3: scans are stable views. R4: an empty value is a value, and deleting what is not there is
/// fine.
///
/// Keys are at most [`MAX_KEY_LEN`](crate::MAX_KEY_LEN) bytes, or fewer if the store's engine takes fewer; values at
/// most [`MAX_VALUE_LEN`](crate::MAX_VALUE_LEN). The empty key is a key. A key that is too long to be stored is not
/// there: reading it finds nothing. As a bound of a scan it counts to its last byte.
///
/// ```
/// use kstate_api::{KeyValueStore, ReadOnlyKeyValueStoreExt, StagedStore};
/// # use kstate_store_memory::MemoryBackend;
///
/// fn count(store: &dyn KeyValueStore, word: &[u8]) -> kstate_api::Result<u64> {
///     let mut count = 0;
///     store.get_with(word, &mut |value| count = value.try_into().map_or(0, u64::from_be_bytes))?;
///     store.put(word, &(count + 1).to_be_bytes())?;
///     Ok(count + 1)
/// }
///
/// # fn main() -> kstate_api::Result<()> {
/// let store = StagedStore::open("counts", MemoryBackend::new(), &[])?;
/// assert_eq!((count(&store, b"word")?, count(&store, b"word")?), (1, 2));
/// store.put_all(&[(b"word", None), (b"other", Some(b""))])?;
/// assert_eq!(store.put_if_absent(b"other", b"x")?.unwrap(), "", "an empty value is a value");
/// # Ok(())
/// # }
/// ```
pub trait KeyValueStore: StateStore + ReadOnlyKeyValueStore {
    /// Stages `value` for `key`. An empty value is a value (clause R4).
    ///
    /// # Errors
    /// `InvalidArgument` for a key or value that is too long; `Closed`; `Poisoned`.
    ///
    /// ```
    /// # use kstate_api::{KeyValueStore, ReadOnlyKeyValueStoreExt, StagedStore};
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[])?;
    /// store.put(b"word", b"")?;
    /// assert_eq!(store.get(b"word")?.unwrap(), "", "an empty value is no delete");
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Stages all `entries` in their order, `None` as a delete; either all or, if one is invalid, none (clause R4).
    ///
    /// # Errors
    /// As [`put`](KeyValueStore::put).
    ///
    /// ```
    /// # use kstate_api::{KeyValueStore, MAX_KEY_LEN, ReadOnlyKeyValueStoreExt, StagedStore};
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[])?;
    /// store.put_all(&[(b"new", Some(b"1")), (b"old", None)])?;
    /// let too_long = vec![0; MAX_KEY_LEN + 1];
    /// assert!(store.put_all(&[(b"new", Some(b"2")), (&too_long, None)]).is_err());
    /// assert_eq!(store.get(b"new")?.unwrap(), "1");
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn put_all(&self, entries: &[(&[u8], Option<&[u8]>)]) -> Result<()>;

    /// Stages `value` for `key` if it has none, and returns the one it has.
    ///
    /// # Errors
    /// As [`put`](KeyValueStore::put), or what the engine met.
    ///
    /// ```
    /// # use kstate_api::{KeyValueStore, ReadOnlyKeyValueStoreExt, StagedStore};
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[])?;
    /// assert_eq!(store.put_if_absent(b"word", b"1")?, None);
    /// assert_eq!(store.put_if_absent(b"word", b"2")?.unwrap(), "1");
    /// assert_eq!(store.get(b"word")?.unwrap(), "1");
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn put_if_absent(&self, key: &[u8], value: &[u8]) -> Result<Option<Bytes>>;

    /// Stages the removal of `key`, which need not be there (clause R4).
    ///
    /// # Errors
    /// As [`put`](KeyValueStore::put).
    ///
    /// ```
    /// # use kstate_api::{KeyValueStore, ReadOnlyKeyValueStoreExt, StagedStore};
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[])?;
    /// store.put(b"word", b"1")?;
    /// store.delete(b"word")?;
    /// store.delete(b"never there")?;
    /// assert_eq!(store.get(b"word")?, None);
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn delete(&self, key: &[u8]) -> Result<()>;

    /// A stable view of the last commit, for any thread (clause R2).
    ///
    /// # Errors
    /// `Closed`, `Poisoned`, or what the engine met.
    ///
    /// ```
    /// # use kstate_api::{ChangelogOffsets, KeyValueStore, ReadOnlyKeyValueStoreExt, StagedStore, StateStore};
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[])?;
    /// store.put(b"word", b"1")?;
    /// store.commit(&ChangelogOffsets::new())?;
    /// let snapshot = store.snapshot()?;
    /// store.put(b"word", b"2")?;
    /// let seen = std::thread::spawn(move || snapshot.get(b"word")).join().unwrap()?;
    /// assert_eq!(seen.unwrap(), "1");
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>>;
}

/// What callers do with a [`KeyValueStore`].
///
/// ```
/// use kstate_api::{KeyValueStore, KeyValueStoreExt, Result, StagedStore};
/// # use kstate_store_memory::MemoryBackend;
///
/// fn forget(store: &dyn KeyValueStore) -> Result<bool> {
///     Ok(store.remove(b"word")?.is_some())
/// }
/// # let store = StagedStore::open("counts", MemoryBackend::new(), &[]).unwrap();
/// # assert!(!forget(&store).unwrap());
/// ```
pub trait KeyValueStoreExt: KeyValueStore {
    /// Stages the removal of `key` and returns the value it had. [`delete`](KeyValueStore::delete) spares the read.
    ///
    /// # Errors
    /// As [`KeyValueStore::delete`], or what the engine met.
    ///
    /// ```
    /// use kstate_api::{KeyValueStore, KeyValueStoreExt, StagedStore};
    /// # use kstate_store_memory::MemoryBackend;
    /// # fn main() -> kstate_api::Result<()> {
    /// # let store = StagedStore::open("counts", MemoryBackend::new(), &[])?;
    /// store.put(b"word", b"1")?;
    /// assert_eq!(store.remove(b"word")?.unwrap(), "1");
    /// assert_eq!(store.remove(b"word")?, None);
    /// # Ok(())
    /// # }
    /// ```
    fn remove(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let value = self.get(key)?;
        self.delete(key)?;
        Ok(value)
    }
}

impl<S: KeyValueStore + ?Sized> KeyValueStoreExt for S {}
