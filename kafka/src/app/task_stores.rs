use std::{collections::BTreeMap, fmt, slice, sync::Arc};

use kstate_api::{ErrorKind, KeyValueStore, KeyValueStoreSupplier, Result, StateStore, TaskId, TopicPartition};
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
    /// Opens every store of the task that `lock` is about. If one fails, those before it are closed again.
    pub(crate) fn open(definition: &Definition, lock: TaskLock) -> Result<Self> {
        let mut stores = Stores::new();
        match open_stores(definition, &lock, &mut stores) {
            Ok(logged) => Ok(Self { by_name: Arc::new(stores), logged, lock }),
            Err(error) => {
                for store in stores.values() {
                    close_store(&definition.cache, &lock, &**store);
                }
                Err(error)
            }
        }
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
