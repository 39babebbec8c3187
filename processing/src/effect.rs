use kstate_api::{Bytes, Error, ErrorKind, KeyValueStore, Result};

/// One thing that processing a record brings about. They are applied in the order in which they were made.
///
/// ```
/// use kstate_processing::Effect;
///
/// let effect: Effect<String> = Effect::Put { store: 0, key: "word".into(), value: "1".into() };
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<O> {
    /// A value for a key.
    Put {
        /// The store, by its place among those of the task.
        store: usize,
        /// The key.
        key: Bytes,
        /// Its new value.
        value: Bytes,
    },
    /// The removal of a key.
    Delete {
        /// The store, by its place among those of the task.
        store: usize,
        /// The key.
        key: Bytes,
    },
    /// Something to send on.
    Output(O),
}

impl<O> Effect<O> {
    /// Applies it: writes to one of `stores`, or gives the output to `send`.
    ///
    /// # Errors
    /// What the store or `send` answers; `InvalidArgument` if there is no such store.
    ///
    /// ```
    /// use kstate_api::{KeyValueStore, ReadOnlyKeyValueStoreExt, StagedStore};
    /// use kstate_processing::Effect;
    /// # use kstate_store_memory::MemoryBackend;
    /// # fn main() -> kstate_api::Result<()> {
    /// let counts = StagedStore::open("counts", MemoryBackend::new(), &[])?;
    /// let effect = Effect::Put { store: 0, key: "word".into(), value: "1".into() };
    /// effect.apply(&[&counts], |output: String| Ok(println!("{output}")))?;
    /// assert_eq!(counts.get(b"word")?.unwrap(), "1");
    /// # Ok(())
    /// # }
    /// ```
    pub fn apply(self, stores: &[&dyn KeyValueStore], send: impl FnOnce(O) -> Result<()>) -> Result<()> {
        let find = |index: usize| stores.get(index).ok_or_else(|| no_such_store(index, stores.len()));
        match self {
            Self::Put { store, key, value } => find(store)?.put(&key, &value),
            Self::Delete { store, key } => find(store)?.delete(&key),
            Self::Output(output) => send(output),
        }
    }
}

pub(crate) fn no_such_store(index: usize, count: usize) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("there is no store {index}: the task has {count}, counted from 0"))
}
