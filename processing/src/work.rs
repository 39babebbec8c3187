use std::{cmp::Ordering, collections::BTreeMap, fmt, iter::Peekable, ops::ControlFlow, sync::Arc};

use kstate_api::{Bytes, CursorExt, KeyRange, Order, ReadOnlyKeyValueStore, ReadOnlyKeyValueStoreExt, Result};

use crate::{Effect, effect::no_such_store};

type Rows = BTreeMap<Bytes, Option<Bytes>>;

/// The stores of a task as a worker sees them while it processes one record, and the effects it makes.
///
/// It reads its own writes. They are applied later, all or, if the record fails, none, by the task's own thread.
///
/// ```
/// use std::sync::Arc;
///
/// use kstate_api::{KeyValueStore, StagedStore};
/// use kstate_processing::{Effect, Work};
/// # use kstate_store_memory::MemoryBackend;
///
/// # fn main() -> kstate_api::Result<()> {
/// let store = StagedStore::open("counts", MemoryBackend::new(), &[])?;
/// store.put(b"word", b"1")?;
/// let stores: [Arc<dyn kstate_api::ReadOnlyKeyValueStore>; 1] = [Arc::new(store)];
///
/// let mut work = Work::new(&stores);
/// assert_eq!(work.get(0, b"word")?.unwrap(), "1");
/// work.put(0, "word", "2")?;
/// assert_eq!(work.get(0, b"word")?.unwrap(), "2");
/// work.output("word has 2");
/// assert_eq!(work.into_effects().len(), 2);
/// # Ok(())
/// # }
/// ```
pub struct Work<'s, O> {
    stores: &'s [Arc<dyn ReadOnlyKeyValueStore>],
    /// What was written, of each store; empty until something is.
    written: Vec<Rows>,
    effects: Vec<Effect<O>>,
}

impl<O> fmt::Debug for Work<'_, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stores, written, effects } = self;
        f.debug_struct("Work")
            .field("stores", stores)
            .field("written", written)
            .field("effects", &effects.len())
            .finish()
    }
}

impl<'s, O> Work<'s, O> {
    /// Work on `stores`: for tests of a processor. The executor makes its own.
    ///
    /// ```
    /// # use kstate_processing::Work;
    /// let work: Work<'_, String> = Work::new(&[]);
    /// ```
    #[must_use]
    pub const fn new(stores: &'s [Arc<dyn ReadOnlyKeyValueStore>]) -> Self {
        Self { stores, written: Vec::new(), effects: Vec::new() }
    }

    fn store(&self, index: usize) -> Result<&'s dyn ReadOnlyKeyValueStore> {
        self.stores.get(index).map(|store| &**store).ok_or_else(|| no_such_store(index, self.stores.len()))
    }

    /// The value of `key` in a store, with what this record has written.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no such store, or what the store met.
    ///
    /// ```
    /// # use kstate_processing::Work;
    /// let work: Work<'_, String> = Work::new(&[]);
    /// assert!(work.get(0, b"word").is_err());
    /// ```
    pub fn get(&self, store: usize, key: &[u8]) -> Result<Option<Bytes>> {
        match self.written.get(store).and_then(|rows| rows.get(key)) {
            Some(value) => Ok(value.clone()),
            None => self.store(store)?.get(key),
        }
    }

    /// Calls `visit` with the rows in `range`, with what this record has written, until it breaks or there are no more.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no such store, or what the store met. `visit` may have been called then.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// use kstate_api::{KeyRange, Order};
    /// # use std::sync::Arc;
    /// # use kstate_api::{ReadOnlyKeyValueStore, StagedStore};
    /// # use kstate_processing::Work;
    /// # use kstate_store_memory::MemoryBackend;
    /// # fn main() -> kstate_api::Result<()> {
    /// # let store = StagedStore::open("counts", MemoryBackend::new(), &[])?;
    /// # let stores: [Arc<dyn ReadOnlyKeyValueStore>; 1] = [Arc::new(store)];
    /// let mut work: Work<'_, String> = Work::new(&stores);
    /// work.put(0, "word", "1")?;
    /// let mut rows = 0;
    /// work.scan(0, &KeyRange::all(), Order::Ascending, |_, _| {
    ///     rows += 1;
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(rows, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn scan(
        &self,
        store: usize,
        range: &KeyRange<'_>,
        order: Order,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut stored = self.store(store)?.scan(range, order)?;
        let written = self.written.get(store).into_iter().flatten();
        let mut written: Box<dyn Iterator<Item = _>> = match order {
            Order::Ascending => Box::new(written),
            Order::Descending => Box::new(self.written.get(store).into_iter().flat_map(|rows| rows.iter().rev())),
        };
        let mut written = written.by_ref().filter(|(key, _)| range.contains(key)).peekable();
        while let Some((key, value)) = stored.next_row()? {
            // What was written before it, and in its place.
            let mut is_replaced = false;
            while let Some((own, change)) = next_up_to(&mut written, key, order) {
                is_replaced |= own == key;
                if change.is_some_and(|value| visit(own, value).is_break()) {
                    return Ok(());
                }
            }
            if !is_replaced && visit(key, value).is_break() {
                return Ok(());
            }
        }
        for (own, change) in written {
            if change.as_ref().is_some_and(|value| visit(own, value).is_break()) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn write(&mut self, store: usize, key: Bytes, value: Option<Bytes>) -> Result<()> {
        self.store(store)?;
        if self.written.len() <= store {
            self.written.resize_with(store + 1, Rows::new);
        }
        if let Some(rows) = self.written.get_mut(store) {
            rows.insert(key, value);
        }
        Ok(())
    }

    /// Writes `value` for `key` to a store.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no such store.
    ///
    /// ```
    /// # use kstate_processing::Work;
    /// let mut work: Work<'_, String> = Work::new(&[]);
    /// assert!(work.put(0, "word", "1").is_err());
    /// ```
    pub fn put(&mut self, store: usize, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Result<()> {
        let (key, value) = (key.into(), value.into());
        self.write(store, key.clone(), Some(value.clone()))?;
        self.effects.push(Effect::Put { store, key, value });
        Ok(())
    }

    /// Removes `key` from a store.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no such store.
    ///
    /// ```
    /// # use kstate_processing::Work;
    /// let mut work: Work<'_, String> = Work::new(&[]);
    /// assert!(work.delete(0, "word").is_err());
    /// ```
    pub fn delete(&mut self, store: usize, key: impl Into<Bytes>) -> Result<()> {
        let key = key.into();
        self.write(store, key.clone(), None)?;
        self.effects.push(Effect::Delete { store, key });
        Ok(())
    }

    /// Sends `output` on, between the writes before and after it.
    ///
    /// ```
    /// # use kstate_processing::Work;
    /// let mut work = Work::new(&[]);
    /// work.output("hello");
    /// ```
    pub fn output(&mut self, output: O) {
        self.effects.push(Effect::Output(output));
    }

    /// What was brought about, in order.
    ///
    /// ```
    /// # use kstate_processing::Work;
    /// let work: Work<'_, String> = Work::new(&[]);
    /// assert_eq!(work.into_effects(), []);
    /// ```
    #[must_use]
    pub fn into_effects(self) -> Vec<Effect<O>> {
        self.effects
    }
}

type Written<'w> = (&'w Bytes, &'w Option<Bytes>);

/// The next written row, if it does not come after `key`.
fn next_up_to<'w>(
    written: &mut Peekable<impl Iterator<Item = Written<'w>>>,
    key: &[u8],
    order: Order,
) -> Option<(&'w Bytes, Option<&'w Bytes>)> {
    let comes_after = match order {
        Order::Ascending => Ordering::Greater,
        Order::Descending => Ordering::Less,
    };
    written.next_if(|(own, _)| own[..].cmp(key) != comes_after).map(|(own, change)| (own, change.as_ref()))
}
