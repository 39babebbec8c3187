use std::fmt::Debug;

use bytes::Bytes;

use crate::Result;

/// A key and its value, valid until the cursor moves.
///
/// ```
/// let (key, value): kstate_api::Row<'_> = (b"word", b"1");
/// ```
pub type Row<'c> = (&'c [u8], &'c [u8]);

/// Walks over the rows of a scan.
///
/// # Contract (clause R3)
/// - The view is that of the moment the cursor was made: later puts, deletes and commits neither appear nor fail it.
/// - The cursor owns what it needs; it may move to another thread and may outlive its store.
/// - Once the store is closed, every step is an error of kind `Closed`.
/// - After an error, every step is an error: a result never just looks complete.
/// - After `Ok(false)`, further steps answer `Ok(false)` while the store is open.
///
/// Callers use [`CursorExt`].
///
/// ```
/// use kstate_api::{Cursor, CursorExt, Result, Row};
///
/// /// Counts down: what a backend has to write for its scans.
/// #[derive(Debug)]
/// struct Countdown(u8);
///
/// impl Cursor for Countdown {
///     fn advance(&mut self) -> Result<bool> {
///         self.0 = self.0.saturating_sub(1);
///         Ok(self.0 > 0)
///     }
///     fn row(&self) -> Option<Row<'_>> {
///         (self.0 > 0).then(|| (std::slice::from_ref(&self.0), [].as_slice()))
///     }
/// }
///
/// let mut rows = Countdown(3);
/// assert_eq!(rows.next_row().unwrap(), Some(([2].as_slice(), [].as_slice())));
/// assert_eq!(rows.entries().count(), 1);
/// ```
pub trait Cursor: Debug + Send {
    /// Steps to the next row; `false` if there is none.
    ///
    /// # Errors
    /// `Closed` after the store was closed; else whatever the engine met. Every later step is an error too (clause R3).
    ///
    /// ```
    /// # use kstate_api::{Cursor, KeyValueStore, ReadOnlyKeyValueStoreExt, StagedStore};
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[])?;
    /// # store.put(b"a", b"1")?;
    /// let mut cursor = store.all()?;
    /// assert!(cursor.advance()?);
    /// assert!(!cursor.advance()? && !cursor.advance()?, "the end stays the end");
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn advance(&mut self) -> Result<bool>;

    /// The row stepped to, or `None` before the first step, at the end and after an error.
    ///
    /// ```
    /// # use kstate_api::{Cursor, KeyValueStore, ReadOnlyKeyValueStoreExt, StagedStore};
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[])?;
    /// # store.put(b"a", b"1")?;
    /// let mut cursor = store.all()?;
    /// assert_eq!(cursor.row(), None);
    /// cursor.advance()?;
    /// assert_eq!(cursor.row(), Some((b"a".as_slice(), b"1".as_slice())));
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn row(&self) -> Option<Row<'_>>;
}

impl<C: Cursor + ?Sized> Cursor for Box<C> {
    fn advance(&mut self) -> Result<bool> {
        (**self).advance()
    }

    fn row(&self) -> Option<Row<'_>> {
        (**self).row()
    }
}

/// What callers do with a [`Cursor`].
///
/// ```
/// use kstate_api::{CursorExt, EmptyCursor};
///
/// assert_eq!(EmptyCursor.entries().count(), 0);
/// ```
pub trait CursorExt: Cursor {
    /// Steps to the next row and returns it without copying; `None` at the end.
    ///
    /// # Errors
    /// As [`Cursor::advance`].
    ///
    /// ```
    /// use kstate_api::{CursorExt, ReadOnlyKeyValueStoreExt};
    /// # use kstate_api::{KeyValueStore, StagedStore};
    /// # use kstate_store_memory::MemoryBackend;
    /// # fn main() -> kstate_api::Result<()> {
    /// # let store = StagedStore::open("counts", MemoryBackend::new(), &[])?;
    /// # store.put(b"a", b"1")?;
    /// let mut cursor = store.all()?;
    /// while let Some((key, value)) = cursor.next_row()? {
    ///     assert_eq!((key, value), (b"a".as_slice(), b"1".as_slice()));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    fn next_row(&mut self) -> Result<Option<Row<'_>>> {
        Ok(if self.advance()? { self.row() } else { None })
    }

    /// The remaining rows as a standard iterator of copies. It ends after the first error.
    ///
    /// ```
    /// use kstate_api::{CursorExt, ReadOnlyKeyValueStoreExt};
    /// # use kstate_api::{KeyValueStore, StagedStore};
    /// # use kstate_store_memory::MemoryBackend;
    /// # fn main() -> kstate_api::Result<()> {
    /// # let store = StagedStore::open("counts", MemoryBackend::new(), &[])?;
    /// # store.put(b"a", b"1")?;
    /// let rows: Vec<_> = store.all()?.entries().collect::<Result<_, _>>()?;
    /// assert_eq!(rows.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    fn entries(self) -> Entries<Self>
    where
        Self: Sized,
    {
        Entries { cursor: Some(self) }
    }
}

impl<C: Cursor + ?Sized> CursorExt for C {}

/// Iterator over copies of a cursor's rows; see [`CursorExt::entries`].
///
/// ```
/// use kstate_api::{CursorExt, EmptyCursor, Entries};
///
/// let mut rows: Entries<EmptyCursor> = EmptyCursor.entries();
/// assert!(rows.next().is_none());
/// ```
#[derive(Debug)]
pub struct Entries<C> {
    cursor: Option<C>,
}

impl<C: Cursor> Iterator for Entries<C> {
    type Item = Result<(Bytes, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        let cursor = self.cursor.as_mut()?;
        let item = cursor
            .next_row()
            .transpose()
            .map(|row| row.map(|(key, value)| (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value))));
        if !matches!(item, Some(Ok(_))) {
            self.cursor = None;
        }
        item
    }
}

/// A cursor over nothing, for ranges that hold no key.
///
/// ```
/// use kstate_api::{CursorExt, EmptyCursor};
///
/// assert!(EmptyCursor.next_row().unwrap().is_none());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct EmptyCursor;

impl Cursor for EmptyCursor {
    fn advance(&mut self) -> Result<bool> {
        Ok(false)
    }

    fn row(&self) -> Option<Row<'_>> {
        None
    }
}
