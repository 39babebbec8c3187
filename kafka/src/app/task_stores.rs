use std::{collections::BTreeMap, fmt, slice, sync::Arc};

use kstate_api::{ErrorKind, KeyValueStore, Result, StateStore, TaskId, TopicPartition};
use kstate_checkpoint::LoggedStore;
use kstate_offset_cache::{OffsetCache, TaskLock};

use super::definition::Definition;

/// The stores of a task by their names.
pub(crate) type Stores = BTreeMap<String, Arc<dyn KeyValueStore>>;

/// The open stores of a task, and its directory: those of a task that runs here, or a copy of one that runs elsewhere.
pub(crate) struct TaskStores {
    by_name: Arc<Stores>,
    logged: Vec<LoggedStore>,
    // Last: it is given free after everything else.
    lock: TaskLock,
}

impl TaskStores {
    /// Opens every store of the task that `lock` is about. If one is damaged all begin anew: their changelogs have
    /// everything.
    pub(crate) fn open(definition: &Definition, lock: TaskLock) -> Result<Self> {
        let opened = match open_all(definition, &lock) {
            // All are closed by now.
            Err(error) if error.kind() == ErrorKind::Corrupted => {
                tracing::warn!(task = %lock.task(), %error, "a store is damaged: the task is wiped and restored");
                let left = lock.wipe(|lock| definition.cache.forget(lock))?;
                if !left.is_empty() {
                    tracing::warn!(task = %lock.task(), ?left, "unfamiliar files were left where they are");
                }
                open_all(definition, &lock)
            }
            opened => opened,
        };
        let (stores, logged) = opened?;
        Ok(Self { by_name: Arc::new(stores), logged, lock })
    }

    pub(crate) fn task(&self) -> TaskId {
        self.lock.task()
    }

    pub(crate) fn by_name(&self) -> &Arc<Stores> {
        &self.by_name
    }

    /// In the order in which the app was given them.
    pub(crate) fn in_order<'s>(
        &'s self,
        definition: &'s Definition,
    ) -> impl Iterator<Item = &'s Arc<dyn KeyValueStore>> {
        definition.stores().filter_map(|(supplier, _)| self.by_name.get(supplier.name()))
    }

    pub(crate) fn logged(&self) -> &[LoggedStore] {
        &self.logged
    }

    /// They are up to date, and live from now on.
    pub(crate) fn restored(&self, definition: &Definition) {
        for logged in &self.logged {
            definition.cache.restored(&self.lock, logged.store());
        }
    }

    /// `logged` of them has come further, as a copy.
    pub(crate) fn updated(&self, definition: &Definition, logged: &LoggedStore) -> Result<()> {
        definition.cache.committed(&self.lock, logged.store())
    }

    /// Drops what is staged.
    pub(crate) fn roll_back(&self) -> Result<()> {
        self.by_name.values().try_for_each(StateStore::rollback)
    }

    /// How many keys the next checkpoint has to settle.
    pub(crate) fn unsettled_keys(&self) -> usize {
        self.logged.iter().map(LoggedStore::unsettled_keys).sum()
    }

    /// Whether every store answers.
    pub(crate) fn is_sound(&self) -> bool {
        self.by_name.values().all(StateStore::is_open)
    }

    /// Closes everything; what is staged is dropped.
    pub(crate) fn close(self, definition: &Definition) {
        for store in self.by_name.values() {
            close_store(&definition.cache, &self.lock, &**store);
        }
    }
}

impl fmt::Debug for TaskStores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskStores").field("task", &self.task()).finish_non_exhaustive()
    }
}

/// Opens every store. If one fails, those before it are closed again.
fn open_all(definition: &Definition, lock: &TaskLock) -> Result<(Stores, Vec<LoggedStore>)> {
    let mut stores = Stores::new();
    match open_into(&mut stores, definition, lock) {
        Ok(logged) => Ok((stores, logged)),
        Err(error) => {
            for store in stores.values() {
                close_store(&definition.cache, lock, &**store);
            }
            Err(error)
        }
    }
}

fn open_into(stores: &mut Stores, definition: &Definition, lock: &TaskLock) -> Result<Vec<LoggedStore>> {
    let mut logged = Vec::new();
    for (supplier, changelog) in definition.stores() {
        let changelog = TopicPartition::new(changelog, lock.task().partition().cast_signed());
        let store = supplier.open(&lock.store_directory(supplier.name())?, slice::from_ref(&changelog))?;
        stores.insert(supplier.name().to_owned(), Arc::clone(&store));
        definition.cache.opened(lock, &*store as &dyn StateStore)?;
        logged.push(LoggedStore::new(store as Arc<dyn StateStore>, changelog)?);
    }
    Ok(logged)
}

fn close_store(cache: &OffsetCache, lock: &TaskLock, store: &dyn KeyValueStore) {
    let store: &dyn StateStore = store;
    if let Err(error) = cache.close(lock, store) {
        tracing::warn!(task = %lock.task(), store = store.name(), %error, "a store did not close well");
    }
}
