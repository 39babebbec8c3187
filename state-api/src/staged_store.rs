use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    thread,
};

use crate::{
    Backend, ChangelogOffsets, CommitOutcome, Error, ErrorKind, Result, StateStore, TopicPartition, WriteBatch,
    lifecycle::Lifecycle, name,
};

mod key_value_store;
mod owned_snapshot;
mod state_store;

/// The longest key of a [`StagedStore`], in bytes, unless its backend takes
/// [fewer](crate::Capabilities::with_max_key_len).
///
/// ```
/// use kstate_api::{KeyValueStore, MAX_KEY_LEN, StagedStore};
/// # use kstate_store_memory::MemoryBackend;
/// # let store = StagedStore::open("counts", MemoryBackend::new(), &[]).unwrap();
/// assert!(store.put(&vec![0; MAX_KEY_LEN], b"").is_ok());
/// assert!(store.put(&vec![0; MAX_KEY_LEN + 1], b"").is_err());
/// ```
pub const MAX_KEY_LEN: usize = 1 << 20;
/// The longest value of a [`StagedStore`], in bytes: 1 GiB. A changelog's records are far smaller.
///
/// ```
/// assert_eq!(kstate_api::MAX_VALUE_LEN, 1 << 30);
/// ```
pub const MAX_VALUE_LEN: usize = 1 << 30;

/// A key-value store over any [`Backend`].
///
/// What is written since the last commit is one sorted overlay: the owner reads through it, a
/// [`commit`](StateStore::commit) hands it to the backend as one batch, and the changelog gets each key once however
/// often it was written. [`rollback`](StateStore::rollback) drops it.
///
/// ```
/// use kstate_api::{
///     ChangelogOffsets, KeyValueStore, Offset, ReadOnlyKeyValueStoreExt, StagedStore, StateStore, TopicPartition,
/// };
/// use kstate_store_memory::MemoryBackend;
///
/// # fn main() -> kstate_api::Result<()> {
/// let changelog = TopicPartition::new("counts-changelog", 0);
/// let store = StagedStore::open("counts", MemoryBackend::new(), &[changelog.clone()])?;
///
/// store.put(b"word", b"1")?;
/// assert_eq!(store.get(b"word")?.unwrap(), "1", "the owner reads its own writes");
/// assert_eq!(store.snapshot()?.get(b"word")?, None, "nobody else does");
///
/// store.commit(&ChangelogOffsets::new().with(changelog.clone(), Offset::new(7).unwrap()))?;
/// assert_eq!(store.snapshot()?.get(b"word")?.unwrap(), "1");
/// assert_eq!(store.committed_offset(&changelog)?.map(Offset::get), Some(7));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct StagedStore<B: Backend> {
    name: Arc<str>,
    changelog_partitions: Arc<[TopicPartition]>,
    backend: B,
    /// Longer keys and bounds never reach the backend.
    max_key_len: usize,
    staged: RwLock<WriteBatch>,
    /// Writes and commits take turns: a write between the engine's commit and the emptying of the overlay would be
    /// lost. Readers need only `staged`, and go on while a commit runs.
    writer: Mutex<()>,
    lifecycle: Arc<Lifecycle>,
}

impl<B: Backend> StagedStore<B> {
    /// Opens the store `name` over `backend`, as the owner of `changelog_partitions` (clause O5).
    ///
    /// # Errors
    /// `InvalidArgument` for a store name or a partition that Kafka or a file system would refuse.
    ///
    /// ```
    /// # use kstate_api::{StagedStore, TopicPartition};
    /// # use kstate_store_memory::MemoryBackend;
    /// let changelog = [TopicPartition::new("counts-changelog", 0)];
    /// assert!(StagedStore::open("counts", MemoryBackend::new(), &changelog).is_ok());
    /// assert!(StagedStore::open("my store", MemoryBackend::new(), &changelog).is_err());
    /// ```
    pub fn open(name: &str, backend: B, changelog_partitions: &[TopicPartition]) -> Result<Self> {
        name::validate("store", name)?;
        changelog_partitions.iter().try_for_each(TopicPartition::validate).map_err(|error| error.with_store(name))?;
        let capabilities = backend.capabilities();
        tracing::debug!(store = name, ?capabilities, "store opened");
        Ok(Self {
            name: name.into(),
            changelog_partitions: changelog_partitions.into(),
            backend,
            max_key_len: capabilities.max_key_len(),
            staged: RwLock::default(),
            writer: Mutex::default(),
            lifecycle: Arc::default(),
        })
    }

    /// The backend below, for what only it can tell.
    ///
    /// ```
    /// # use kstate_api::{Backend, StagedStore};
    /// # use kstate_store_memory::MemoryBackend;
    /// # fn main() -> kstate_api::Result<()> {
    /// let store = StagedStore::open("counts", MemoryBackend::new(), &[])?;
    /// assert!(!store.backend().capabilities().persistent());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn backend(&self) -> &B {
        &self.backend
    }

    // Every change to the batch is one call, and a panic in the backend poisons the store itself; so a thread that
    // panicked with one of these locks left nothing half done that anybody can see: their poisoning carries no news.
    fn writer(&self) -> MutexGuard<'_, ()> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn staged(&self) -> RwLockReadGuard<'_, WriteBatch> {
        self.staged.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn staged_mut(&self) -> RwLockWriteGuard<'_, WriteBatch> {
        self.staged.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_open(&self) -> Result<()> {
        self.lifecycle.check().map_err(|error| error.with_store(&self.name))
    }

    /// The backend's answer as this store's. A backend that refuses everything poisons its store.
    fn answer<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| {
            if error.kind() == ErrorKind::Poisoned {
                self.lifecycle.poison();
            }
            error.with_store(&self.name)
        })
    }

    fn refuse<T>(&self, message: String) -> Result<T> {
        Err(Error::new(ErrorKind::InvalidArgument, message).with_store(&self.name))
    }

    fn owns(&self, partition: &TopicPartition) -> bool {
        self.changelog_partitions.contains(partition)
    }

    fn check_owned(&self, offsets: &ChangelogOffsets) -> Result<()> {
        match offsets.iter().find(|(partition, _)| !self.owns(partition)) {
            Some((foreign, _)) => self.refuse(format!("changelog partition {foreign} is not this store's")),
            None => Ok(()),
        }
    }

    fn check_len(&self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        if key.len() > self.max_key_len {
            return self.refuse(format!("a key of {} bytes; {} are allowed", key.len(), self.max_key_len));
        }
        match value.map(<[u8]>::len) {
            Some(len) if len > MAX_VALUE_LEN => {
                self.refuse(format!("a value of {len} bytes; {MAX_VALUE_LEN} are allowed"))
            }
            _ => Ok(()),
        }
    }

    /// Runs one atomic step of the backend and poisons the store if nobody can tell whether it happened.
    fn step(&self, step: impl FnOnce(&B) -> Result<()>) -> Result<()> {
        let poison = PoisonOnDrop(&self.lifecycle);
        let done = step(&self.backend);
        mem::forget(poison);
        self.answer(done).map_err(|error| {
            let outcome = error.commit_outcome().unwrap_or(CommitOutcome::Unknown);
            if outcome == CommitOutcome::Unknown {
                self.lifecycle.poison();
            }
            error.with_commit_outcome(outcome)
        })
    }

    fn stage(&self, write: impl FnOnce(&mut WriteBatch)) -> Result<()> {
        let _turn = self.writer();
        self.check_open()?;
        write(&mut self.staged_mut());
        Ok(())
    }
}

/// Dropped by a step that panics: nobody can tell whether it happened (clause O7).
struct PoisonOnDrop<'s>(&'s Lifecycle);

impl Drop for PoisonOnDrop<'_> {
    fn drop(&mut self) {
        self.0.poison();
    }
}

impl<B: Backend> Drop for StagedStore<B> {
    fn drop(&mut self) {
        // While panicking the backend drops without a word, as in a crash: a close could mark damage as clean.
        if thread::panicking() {
            // Only cursors that outlive the store are told.
            self.lifecycle.close();
        } else if let Err(error) = self.close() {
            tracing::warn!(store = &*self.name, %error, "closing a dropped store failed");
        }
    }
}
