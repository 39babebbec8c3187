use std::{fmt::Debug, path::Path, sync::Arc};

use crate::{Backend, ChangelogOffsets, KeyValueStore, Result, StagedStore, TopicPartition, name};

/// Opens the stores of one name: one for each task, in the task's directory.
///
/// A topology holds suppliers, not stores, because tasks come and go with the assignment.
///
/// ```
/// use kstate_api::{KeyValueStoreSupplier, StagedSupplier, TaskId, TopicPartition};
/// use kstate_store_memory::MemoryBackends;
///
/// # fn main() -> kstate_api::Result<()> {
/// let topology: Vec<Box<dyn KeyValueStoreSupplier>> =
///     vec![Box::new(StagedSupplier::new("counts", MemoryBackends::new())?)];
/// let task = TaskId::new(0, 3);
/// for supplier in &topology {
///     let changelog = TopicPartition::new(format!("app-{}-changelog", supplier.name()), 3);
///     let directory = std::env::temp_dir().join("app").join(task.to_string()).join(supplier.name());
///     let store = supplier.open(&directory, &[changelog])?;
///     assert_eq!(store.name(), "counts");
/// }
/// # Ok(())
/// # }
/// ```
pub trait KeyValueStoreSupplier: Debug + Send + Sync {
    /// The name of the stores it opens.
    fn name(&self) -> &str;

    /// Whether the stores it opens keep what was committed over a clean close.
    fn persistent(&self) -> bool;

    /// Opens the store in `directory`, which is the store's own and is made if it is not there, as the owner of
    /// `changelog_partitions`.
    ///
    /// # Errors
    /// `Locked`, `Corrupted`, `NewerFormat`, `DiskFull`, `InvalidArgument` for a bad name, or what the engine met.
    fn open(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<Arc<dyn KeyValueStore>>;

    /// The offsets of `changelog_partitions` in the store in `directory`, without keeping it open. No store there
    /// means no offsets, and none is made.
    ///
    /// # Errors
    /// As [`open`](KeyValueStoreSupplier::open).
    fn read_offsets(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<ChangelogOffsets>;
}

/// Opens backends of one kind with one set of options.
///
/// What a backend's crate implements once; [`StagedSupplier`] makes suppliers of stores from it.
///
/// ```
/// use kstate_api::{Backend, BackendSupplier};
/// use kstate_store_memory::MemoryBackends;
///
/// fn open_and_close<S: BackendSupplier>(backends: &S) -> kstate_api::Result<()> {
///     backends.open("unused".as_ref())?.close()
/// }
/// # open_and_close(&MemoryBackends::new()).unwrap();
/// ```
pub trait BackendSupplier: Debug + Send + Sync {
    /// The backend it opens.
    type Backend: Backend + 'static;

    /// Whether its backends keep what was committed over a clean close.
    fn persistent(&self) -> bool;

    /// Opens the backend in `directory`, which is made if it is not there. A backend that is not persistent leaves
    /// the disk alone.
    ///
    /// # Errors
    /// `Locked`, `Corrupted`, `NewerFormat`, `DiskFull`, or what the engine met.
    fn open(&self, directory: &Path) -> Result<Self::Backend>;

    /// The offsets stored in `directory` for `partitions`, read as cheaply as the engine can; nothing is made or
    /// changed where there is no store.
    ///
    /// # Errors
    /// As [`open`](BackendSupplier::open).
    fn read_offsets(&self, directory: &Path, partitions: &[TopicPartition]) -> Result<ChangelogOffsets>;
}

/// Supplies [`StagedStore`]s over the backends of a [`BackendSupplier`].
///
/// ```
/// use kstate_api::{KeyValueStoreSupplier, StagedSupplier};
/// use kstate_store_memory::MemoryBackends;
///
/// # fn main() -> kstate_api::Result<()> {
/// let supplier = StagedSupplier::new("counts", MemoryBackends::new())?;
/// let store = supplier.open("unused".as_ref(), &[])?;
/// assert_eq!(store.name(), "counts");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct StagedSupplier<S> {
    name: Arc<str>,
    backends: S,
}

impl<S: BackendSupplier> StagedSupplier<S> {
    /// Supplies stores called `name`.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that is no legal topic and directory name.
    ///
    /// ```
    /// # use kstate_api::StagedSupplier;
    /// # use kstate_store_memory::MemoryBackends;
    /// assert!(StagedSupplier::new("a/b", MemoryBackends::new()).is_err());
    /// ```
    pub fn new(name: &str, backends: S) -> Result<Self> {
        name::validate("store", name)?;
        Ok(Self { name: name.into(), backends })
    }
}

impl<S: BackendSupplier> KeyValueStoreSupplier for StagedSupplier<S> {
    fn name(&self) -> &str {
        &self.name
    }

    fn persistent(&self) -> bool {
        self.backends.persistent()
    }

    fn open(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<Arc<dyn KeyValueStore>> {
        let backend = self.backends.open(directory).map_err(|error| error.with_store(&self.name))?;
        Ok(Arc::new(StagedStore::open(&self.name, backend, changelog_partitions)?))
    }

    fn read_offsets(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
        self.backends.read_offsets(directory, changelog_partitions).map_err(|error| error.with_store(&self.name))
    }
}
