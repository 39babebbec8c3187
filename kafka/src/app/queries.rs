use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use kstate_api::{Error, ErrorKind, KeyValueStore as _, Result, Snapshot, TaskId};

use super::task_stores::Stores;

/// Reads the stores of an app, from any thread: what is committed, and nothing else.
///
/// Only tasks that run in this process are there. A task is one partition of the source topics, so a key that the source
/// is partitioned by is in one task.
///
/// ```
/// use kstate_api::{Bytes, ReadOnlyKeyValueStoreExt as _, Result};
/// use kstate_kafka::app::Queries;
///
/// fn count(queries: &Queries, word: &[u8]) -> Result<u64> {
///     let mut sum = 0;
///     for (_task, counts) in queries.snapshots("counts")? {
///         let count = counts.get(word)?;
///         sum += count.map_or(0, |count| u64::from_be_bytes(count.as_ref().try_into().unwrap_or_default()));
///     }
///     Ok(sum)
/// }
/// ```
#[derive(Clone, Default)]
pub struct Queries {
    names: Arc<[String]>,
    tasks: Arc<RwLock<BTreeMap<TaskId, Arc<Stores>>>>,
}

impl Queries {
    pub(crate) fn new(names: Vec<String>) -> Self {
        Self { names: names.into(), tasks: Arc::default() }
    }

    /// The tasks that run here now, in order.
    #[must_use]
    pub fn tasks(&self) -> Vec<TaskId> {
        self.tasks.read().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }

    /// What `task` has committed in `store`: a stable view.
    ///
    /// # Errors
    /// `InvalidArgument` if the app has no such store; `Unavailable` if the task does not run here, or not yet; or what
    /// the store met.
    pub fn snapshot(&self, store: &str, task: TaskId) -> Result<Arc<dyn Snapshot>> {
        self.check(store)?;
        let stores = self.tasks.read().unwrap_or_else(PoisonError::into_inner).get(&task).cloned();
        let missing = || Error::new(ErrorKind::Unavailable, format!("task {task} does not run here")).with_store(store);
        stores.as_ref().and_then(|stores| stores.get(store)).ok_or_else(missing)?.snapshot()
    }

    /// What every task that runs here has committed in `store`.
    ///
    /// # Errors
    /// `InvalidArgument` if the app has no such store; or what a store met.
    pub fn snapshots(&self, store: &str) -> Result<Vec<(TaskId, Arc<dyn Snapshot>)>> {
        self.check(store)?;
        let mut snapshots = Vec::new();
        for task in self.tasks() {
            match self.snapshot(store, task) {
                Ok(snapshot) => snapshots.push((task, snapshot)),
                // It was closed just now.
                Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Closed) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(snapshots)
    }

    pub(crate) fn open(&self, task: TaskId, stores: Arc<Stores>) {
        self.tasks.write().unwrap_or_else(PoisonError::into_inner).insert(task, stores);
    }

    pub(crate) fn close(&self, task: TaskId) {
        self.tasks.write().unwrap_or_else(PoisonError::into_inner).remove(&task);
    }

    fn check(&self, store: &str) -> Result<()> {
        if self.names.iter().any(|name| name == store) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::InvalidArgument, format!("the app has no store `{store}`")))
    }
}

impl fmt::Debug for Queries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queries").field("stores", &self.names).field("tasks", &self.tasks()).finish()
    }
}
