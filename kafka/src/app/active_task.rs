use std::{
    collections::BTreeMap,
    fmt, slice,
    sync::Arc,
    time::{Duration, Instant},
};

use kstate_api::{ErrorKind, KeyValueStore, KeyValueStoreSupplier, Result, StateStore, TaskId, TopicPartition};
use kstate_checkpoint::{LoggedStore, Task};
use kstate_offset_cache::{OffsetCache, TaskLock};

use super::{Processor, TaskContext, TaskState, definition::Definition, outputs::Outputs, restorer::Job};

/// The stores of a task by their names.
pub(crate) type Stores = BTreeMap<String, Arc<dyn KeyValueStore>>;

/// A task that the group has assigned to this thread.
#[derive(Debug)]
pub(crate) struct ActiveTask {
    pub(crate) id: TaskId,
    pub(crate) sources: Vec<TopicPartition>,
    pub(crate) state: TaskState,
    /// What it has once its directory is its own.
    pub(crate) open: Option<OpenTask>,
    /// Its restore, while it is under way.
    pub(crate) job: Option<Arc<Job>>,
    /// Since when it waits: for its directory, or for a restore to succeed.
    since: Option<Instant>,
}

impl ActiveTask {
    pub(crate) fn new(id: TaskId, sources: Vec<TopicPartition>) -> Self {
        Self { id, sources, state: TaskState::Assigned, open: None, job: None, since: None }
    }

    /// Whether it may go on waiting, if it may wait for `limit` in all.
    pub(crate) fn waits_within(&mut self, limit: Duration) -> bool {
        self.since.get_or_insert_with(Instant::now).elapsed() < limit
    }

    /// What it has, if it processes records.
    pub(crate) fn running(&self) -> Option<&OpenTask> {
        self.open.as_ref().filter(|_| self.state == TaskState::Running)
    }

    /// The same, to work with.
    pub(crate) fn running_mut(&mut self) -> Option<&mut OpenTask> {
        self.open.as_mut().filter(|_| self.state == TaskState::Running)
    }
}

/// The directory, stores and processor of a task.
pub(crate) struct OpenTask {
    pub(crate) task: Task,
    pub(crate) stores: Arc<Stores>,
    pub(crate) processor: Box<dyn Processor>,
    /// The bytes that its stores had staged after the last record.
    pub(crate) staged: u64,
    // Last: it is given free after everything else.
    lock: TaskLock,
}

impl OpenTask {
    /// Opens every store of the task that `lock` is about. If one fails, those before it are closed again.
    pub(crate) fn open(definition: &Definition, lock: TaskLock, sources: Vec<TopicPartition>) -> Result<Self> {
        let id = lock.task();
        let mut stores = Stores::new();
        match open_stores(definition, &lock, &mut stores) {
            Ok(logged) => {
                let processor = definition.processors.processor(id);
                let task = Task::new(id, sources, logged);
                Ok(Self { task, stores: Arc::new(stores), processor, staged: 0, lock })
            }
            Err(error) => {
                for store in stores.values() {
                    close_store(&definition.cache, &lock, &**store);
                }
                Err(error)
            }
        }
    }

    /// Its processor, and what that works with.
    pub(crate) fn parts<'t>(&'t mut self, outputs: &'t Outputs) -> (&'t mut dyn Processor, TaskContext<'t>) {
        (&mut *self.processor, TaskContext { task: self.task.id(), stores: &self.stores, outputs })
    }

    /// Its stores are up to date, and live from now on.
    pub(crate) fn restored(&self, definition: &Definition) {
        for logged in self.task.stores() {
            definition.cache.restored(&self.lock, logged.store());
        }
    }

    /// Takes back everything since the last checkpoint.
    pub(crate) fn roll_back(&mut self, definition: &Definition) -> Result<()> {
        self.processor = definition.processors.processor(self.task.id());
        self.staged = 0;
        self.stores.values().try_for_each(StateStore::rollback)
    }

    /// How many keys the next checkpoint has to settle.
    pub(crate) fn unsettled_keys(&self) -> usize {
        self.task.stores().iter().map(LoggedStore::unsettled_keys).sum()
    }

    /// Whether every store answers.
    pub(crate) fn is_sound(&self) -> bool {
        self.stores.values().all(StateStore::is_open)
    }

    /// Closes everything; what is staged is dropped.
    pub(crate) fn close(self, definition: &Definition) {
        for store in self.stores.values() {
            close_store(&definition.cache, &self.lock, &**store);
        }
    }
}

impl fmt::Debug for OpenTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenTask").field("task", &self.task).field("staged", &self.staged).finish_non_exhaustive()
    }
}

fn open_stores(definition: &Definition, lock: &TaskLock, stores: &mut Stores) -> Result<Vec<LoggedStore>> {
    let mut logged = Vec::new();
    for (supplier, changelog) in definition.stores() {
        let changelog = TopicPartition::new(changelog, lock.task().partition().cast_signed());
        let store = open_store(definition, supplier, lock, &changelog)?;
        stores.insert(supplier.name().to_owned(), Arc::clone(&store));
        definition.cache.opened(lock, &*store as &dyn StateStore)?;
        logged.push(LoggedStore::new(store as Arc<dyn StateStore>, changelog)?);
    }
    Ok(logged)
}

/// Opens one store. One that is damaged begins anew: its changelog has everything.
fn open_store(
    definition: &Definition,
    supplier: &dyn KeyValueStoreSupplier,
    lock: &TaskLock,
    changelog: &TopicPartition,
) -> Result<Arc<dyn KeyValueStore>> {
    let open = || supplier.open(&lock.store_directory(supplier.name())?, slice::from_ref(changelog));
    match open() {
        Err(error) if error.kind() == ErrorKind::Corrupted => {
            tracing::warn!(task = %lock.task(), %error, "a store is damaged: the task is wiped and restored");
            let left = lock.wipe(|lock| definition.cache.forget(lock))?;
            if !left.is_empty() {
                tracing::warn!(task = %lock.task(), ?left, "unfamiliar files were left where they are");
            }
            open()
        }
        opened => opened,
    }
}

fn close_store(cache: &OffsetCache, lock: &TaskLock, store: &dyn KeyValueStore) {
    let store: &dyn StateStore = store;
    if let Err(error) = cache.close(lock, store) {
        tracing::warn!(task = %lock.task(), store = store.name(), %error, "a store did not close well");
    }
}
