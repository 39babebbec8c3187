use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kstate_api::{Error, ErrorKind, Position, Result, StateStore, TaskId, TopicPartition};

use crate::unsettled::Unsettled;

/// A store and the changelog partition that logs it.
///
/// Keep it, or a clone, for as long as the store is open: it remembers what a failed checkpoint left in the changelog.
#[derive(Clone)]
pub struct LoggedStore {
    store: Arc<dyn StateStore>,
    changelog: TopicPartition,
    unsettled: Arc<Mutex<Unsettled>>,
}

impl LoggedStore {
    /// Logs `store` to `changelog`.
    ///
    /// # Errors
    /// `Config` if the store was not opened with that partition, for its offset could never be committed; or if it keeps
    /// its records and not their offset, for nobody could tell after a restart what they belong to: wrap it in a
    /// [`FileCheckpoint`](crate::FileCheckpoint).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use kstate_api::{StagedStore, TopicPartition};
    /// use kstate_checkpoint::LoggedStore;
    /// use kstate_store_memory::MemoryBackend;
    ///
    /// # fn main() -> kstate_api::Result<()> {
    /// let changelog = TopicPartition::new("counts-changelog", 0);
    /// let store = StagedStore::open("counts", MemoryBackend::new(), &[changelog.clone()])?;
    /// let logged = LoggedStore::new(Arc::new(store), changelog)?;
    /// assert_eq!(logged.changelog().partition(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(store: Arc<dyn StateStore>, changelog: TopicPartition) -> Result<Self> {
        if !store.changelog_partitions().contains(&changelog) {
            let message = format!("the store was not opened with its changelog partition {changelog}");
            return Err(Error::new(ErrorKind::Config, message).with_store(store.name()));
        }
        if store.persistent() && !store.manages_offsets() {
            let message = "the store is persistent and does not manage offsets: wrap it in a FileCheckpoint";
            return Err(Error::new(ErrorKind::Config, message).with_store(store.name()));
        }
        Ok(Self { store, changelog, unsettled: Arc::default() })
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &dyn StateStore {
        &*self.store
    }

    /// The changelog partition.
    #[must_use]
    pub fn changelog(&self) -> &TopicPartition {
        &self.changelog
    }

    /// How many keys the next checkpoint has to heal or to repeat: those whose last changelog record belongs to a
    /// checkpoint that did not end. A task that has any should take a checkpoint even if nothing else is to do.
    #[must_use]
    pub fn unsettled_keys(&self) -> usize {
        let unsettled = self.unsettled();
        unsettled.uncommitted.union(&unsettled.owed).count()
    }

    pub(crate) fn unsettled(&self) -> MutexGuard<'_, Unsettled> {
        // Every change to it is one call, so a thread that panicked left nothing half done.
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for LoggedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The store's own form may be as long as its contents.
        f.debug_struct("LoggedStore")
            .field("store", &self.store.name())
            .field("changelog", &self.changelog)
            .finish_non_exhaustive()
    }
}

/// What one task owns: its source partitions and its stores.
///
/// ```
/// use kstate_api::{TaskId, TopicPartition};
/// use kstate_checkpoint::Task;
///
/// let task = Task::new(TaskId::new(0, 3), vec![TopicPartition::new("lines", 3)], Vec::new());
/// assert_eq!(task.id().to_string(), "0_3");
/// ```
#[derive(Clone, Debug)]
pub struct Task {
    id: TaskId,
    sources: Vec<TopicPartition>,
    stores: Vec<LoggedStore>,
}

impl Task {
    /// The task `id`, which reads `sources` and writes `stores`.
    #[must_use]
    pub fn new(id: TaskId, sources: Vec<TopicPartition>, stores: Vec<LoggedStore>) -> Self {
        Self { id, sources, stores }
    }

    /// Which task it is.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// The source partitions it reads.
    #[must_use]
    pub fn sources(&self) -> &[TopicPartition] {
        &self.sources
    }

    /// The stores it writes.
    #[must_use]
    pub fn stores(&self) -> &[LoggedStore] {
        &self.stores
    }

    /// The part of `position` that is about this task's sources.
    #[must_use]
    pub fn position_in(&self, position: &Position) -> Position {
        self.sources.iter().filter_map(|source| Some((source.clone(), position.get(source)?.clone()))).collect()
    }

    /// About how many bytes of memory the staged writes of its stores take.
    #[must_use]
    pub fn uncommitted_bytes(&self) -> u64 {
        self.stores.iter().map(|logged| logged.store.uncommitted_bytes()).fold(0, u64::saturating_add)
    }
}
