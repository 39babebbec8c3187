use std::{collections::BTreeMap, sync::Arc};

use kstate_api::{Result, StateStore, TaskId, TopicPartition};

use crate::{CachedOffset, OffsetSnapshot, TaskLock, known_offsets::KnownOffsets};

/// How far each task on this machine's disk has come: one for each process, shared by all its threads (clause C2).
///
/// It knows every task of which the [`StartupScan`](crate::StartupScan) or an owner told it, also those that nobody
/// owns now. Lags and assignments are answered from it, and no store is opened for that.
///
/// - **Only an owner tells.** Each change takes the [`TaskLock`], so nothing old can overwrite what is newer.
/// - **Only persistent stores with a changelog enter.** Others are passed over: their copies here do not survive, or
///   there is nothing to be behind of.
/// - **Entries are per partition**: [`Running`](CachedOffset::Running), [`At`](CachedOffset::At) an offset, or
///   [`Unknown`](CachedOffset::Unknown).
/// - **`Running` ends with its owner.** A [`TaskLock`] that goes before its stores are closed, in a panic say, leaves
///   them `Unknown`.
/// - **A [`snapshot`](Self::snapshot) is one moment**, over all tasks. Readers and writers wait for each other no longer
///   than it takes to copy one task's entry.
///
/// The life of a store's entry: [`opened`](Self::opened), [`committed`](Self::committed) while it catches up,
/// [`restored`](Self::restored) once it is live, [`close`](Self::close); [`wipe`](Self::wipe) or
/// [`forget`](Self::forget) end it.
///
/// ```
/// use kstate_api::{ChangelogOffsets, KeyValueStoreSupplier, Offset, StagedSupplier, StateStore, TaskId, TopicPartition};
/// use kstate_offset_cache::{CachedOffset, OffsetCache, StateDirectory};
/// use kstate_store_redb::{RedbBackends, RedbOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let temporary = tempfile::tempdir()?;
/// let directory = StateDirectory::open(temporary.path(), "word-count")?;
/// let cache = OffsetCache::new();
/// let (task, changelog) = (TaskId::new(0, 1), TopicPartition::new("word-count-counts-changelog", 1));
///
/// let lock = directory.lock(task)?;
/// let supplier = StagedSupplier::new("counts", RedbBackends::new(RedbOptions::new()))?;
/// let store = supplier.open(&lock.store_directory("counts")?, &[changelog.clone()])?;
/// cache.opened(&lock, &*store)?;
/// assert_eq!(cache.get(task, &changelog), Some(CachedOffset::Unknown));
///
/// // ... the changelog is restored ...
/// cache.restored(&lock, &*store);
/// assert_eq!(cache.get(task, &changelog), Some(CachedOffset::Running));
///
/// store.commit(&ChangelogOffsets::new().with(changelog.clone(), Offset::new(41).unwrap()))?;
/// cache.committed(&lock, &*store)?;
/// cache.close(&lock, &*store)?;
/// assert_eq!(cache.get(task, &changelog), Some(CachedOffset::At(Offset::new(41).unwrap())));
///
/// lock.wipe(|lock| cache.forget(lock))?;
/// assert_eq!(cache.get(task, &changelog), None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct OffsetCache {
    known: Arc<KnownOffsets>,
}

impl OffsetCache {
    /// One that knows nothing yet.
    ///
    /// ```
    /// # use kstate_offset_cache::OffsetCache;
    /// assert_eq!(OffsetCache::new().snapshot().iter().count(), 0);
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What is known of `partition` of `task` now; `None` if there is no copy here that could be resumed.
    ///
    /// ```
    /// # use kstate_api::{TaskId, TopicPartition};
    /// # use kstate_offset_cache::OffsetCache;
    /// assert_eq!(OffsetCache::new().get(TaskId::new(0, 1), &TopicPartition::new("counts-changelog", 1)), None);
    /// ```
    #[must_use]
    pub fn get(&self, task: TaskId, partition: &TopicPartition) -> Option<CachedOffset> {
        self.known.get(task, partition)
    }

    /// All that is known now, of all tasks at the same moment. It costs the same however much that is.
    ///
    /// ```
    /// # use kstate_offset_cache::OffsetCache;
    /// let snapshot = OffsetCache::new().snapshot();
    /// ```
    #[must_use]
    pub fn snapshot(&self) -> OffsetSnapshot {
        OffsetSnapshot::new(self.known.snapshot())
    }

    /// `store` was opened and is not live: what it has committed is what is known. The same for a task that was active
    /// and goes on as a standby.
    ///
    /// # Errors
    /// What the store answers when it is asked for its offsets; they are `Unknown` then.
    ///
    /// ```
    /// # use kstate_api::{StateStore, TopicPartition};
    /// # use kstate_offset_cache::{OffsetCache, TaskLock};
    /// fn open(cache: &OffsetCache, lock: &TaskLock, store: &dyn StateStore) -> kstate_api::Result<()> {
    ///     cache.opened(lock, store)
    /// }
    /// ```
    pub fn opened(&self, lock: &TaskLock, store: &dyn StateStore) -> Result<()> {
        let (offsets, read) = committed_offsets(store);
        self.known.change(lock.task(), |known| known.extend(offsets));
        read
    }

    /// `store` has committed: a restored batch, a standby's records, or a checkpoint. A store that is live stays
    /// `Running`.
    ///
    /// # Errors
    /// What the store answers when it is asked for its offsets; they are `Unknown` then.
    ///
    /// ```
    /// # use kstate_api::{StateStore, TopicPartition, WriteBatch};
    /// # use kstate_offset_cache::{OffsetCache, TaskLock};
    /// fn restore(cache: &OffsetCache, lock: &TaskLock, store: &dyn StateStore, batch: &WriteBatch) -> kstate_api::Result<()> {
    ///     store.restore(batch)?;
    ///     cache.committed(lock, store)
    /// }
    /// ```
    pub fn committed(&self, lock: &TaskLock, store: &dyn StateStore) -> Result<()> {
        // A checkpoint of a live store is the usual call, and needs no look into the store.
        if self.known.are_running(lock.task(), store.changelog_partitions()) {
            Ok(())
        } else {
            self.opened(lock, store)
        }
    }

    /// `store` has been restored and its task is active here: it is live, and caught up by definition.
    ///
    /// ```
    /// # use kstate_api::StateStore;
    /// # use kstate_offset_cache::{OffsetCache, TaskLock};
    /// fn run(cache: &OffsetCache, lock: &TaskLock, store: &dyn StateStore) {
    ///     cache.restored(lock, store);
    /// }
    /// ```
    pub fn restored(&self, lock: &TaskLock, store: &dyn StateStore) {
        let running = entering(store).iter().map(|partition| (partition.clone(), CachedOffset::Running));
        lock.runs_in(&self.known);
        self.known.change(lock.task(), |known| known.extend(running));
    }

    /// Closes `store`, and knows from then on what it had committed, which is what a reopen shows. What is staged in it
    /// is dropped, as by any close.
    ///
    /// # Errors
    /// What the store met. It is closed nevertheless, and its offsets are `Unknown`.
    ///
    /// ```
    /// # use kstate_api::StateStore;
    /// # use kstate_offset_cache::{OffsetCache, TaskLock};
    /// fn revoke(cache: &OffsetCache, lock: TaskLock, store: &dyn StateStore) -> kstate_api::Result<()> {
    ///     // Closed first; the lock goes at the end.
    ///     cache.close(&lock, store)
    /// }
    /// ```
    pub fn close(&self, lock: &TaskLock, store: &dyn StateStore) -> Result<()> {
        let (mut offsets, read) = committed_offsets(store);
        let closed = store.close();
        if closed.is_err() {
            for offset in offsets.values_mut() {
                *offset = CachedOffset::Unknown;
            }
        }
        self.known.change(lock.task(), |known| known.extend(offsets));
        closed.and(read)
    }

    /// Wipes `store`, which stays open and begins anew. Its entries go before its records do.
    ///
    /// # Errors
    /// What the store met.
    ///
    /// ```
    /// # use kstate_api::StateStore;
    /// # use kstate_offset_cache::{OffsetCache, TaskLock};
    /// fn start_over(cache: &OffsetCache, lock: &TaskLock, store: &dyn StateStore) -> kstate_api::Result<()> {
    ///     cache.wipe(lock, store)
    /// }
    /// ```
    pub fn wipe(&self, lock: &TaskLock, store: &dyn StateStore) -> Result<()> {
        let ends = |partition: &TopicPartition| store.changelog_partitions().contains(partition);
        self.known.change(lock.task(), |known| known.retain(|partition, _| !ends(partition)));
        store.wipe()
    }

    /// Nothing is known of the task any more: what to call before its files are deleted (clause D3).
    ///
    /// ```
    /// # use kstate_api::TaskId;
    /// # use kstate_offset_cache::{OffsetCache, StateDirectory};
    /// # let temporary = tempfile::tempdir().unwrap();
    /// # let directory = StateDirectory::open(temporary.path(), "app").unwrap();
    /// let cache = OffsetCache::new();
    /// directory.wipe(TaskId::new(0, 1), |lock| cache.forget(lock)).unwrap();
    /// ```
    pub fn forget(&self, lock: &TaskLock) {
        self.known.change(lock.task(), BTreeMap::clear);
    }

    /// What the scan found in the task's stores.
    pub(crate) fn scanned(&self, lock: &TaskLock, offsets: impl IntoIterator<Item = (TopicPartition, CachedOffset)>) {
        self.known.change(lock.task(), |known| known.extend(offsets));
    }
}

/// The partitions of `store` that have a place in the cache.
fn entering(store: &dyn StateStore) -> &[TopicPartition] {
    if store.persistent() { store.changelog_partitions() } else { &[] }
}

/// What `store` has committed for each partition that has a place in the cache, and the first error of asking.
fn committed_offsets(store: &dyn StateStore) -> (BTreeMap<TopicPartition, CachedOffset>, Result<()>) {
    let mut read = Ok(());
    let mut offsets = BTreeMap::new();
    for partition in entering(store) {
        let committed = store.committed_offset(partition).unwrap_or_else(|error| {
            if read.is_ok() {
                read = Err(error);
            }
            None
        });
        offsets.insert(partition.clone(), committed.into());
    }
    (offsets, read)
}
