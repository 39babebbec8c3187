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
    ///
    /// ```
    /// # use kstate_api::{KeyValueStoreSupplier, StagedSupplier};
    /// # let supplier = StagedSupplier::new("counts", kstate_store_memory::MemoryBackends::new())?;
    /// assert_eq!(supplier.name(), "counts");
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn name(&self) -> &str;

    /// Whether the stores it opens keep what was committed over a clean close.
    ///
    /// ```
    /// # use kstate_api::{KeyValueStoreSupplier, StagedSupplier};
    /// # let supplier = StagedSupplier::new("counts", kstate_store_memory::MemoryBackends::new())?;
    /// assert!(!supplier.persistent(), "there is nothing on disk to look for");
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn persistent(&self) -> bool;

    /// Opens the store in `directory`, which is the store's own and is made if it is not there, as the owner of
    /// `changelog_partitions` (clause O5).
    ///
    /// # Errors
    /// `Locked`, `Corrupted`, `NewerFormat`, `DiskFull`, `InvalidArgument` for a bad name, or what the engine met.
    ///
    /// ```
    /// # use kstate_api::{KeyValueStoreSupplier, StagedSupplier, StateStore, TopicPartition};
    /// # let supplier = StagedSupplier::new("counts", kstate_store_memory::MemoryBackends::new())?;
    /// let changelog = [TopicPartition::new("app-counts-changelog", 3)];
    /// let store = supplier.open("state/app/0_3/counts".as_ref(), &changelog)?;
    /// assert_eq!((store.name(), store.changelog_partitions()), ("counts", changelog.as_slice()));
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn open(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<Arc<dyn KeyValueStore>>;

    /// The offsets of `changelog_partitions` in the store in `directory`, without keeping it open. No store there
    /// means no offsets (clause O4), and none is made.
    ///
    /// # Errors
    /// As [`open`](KeyValueStoreSupplier::open).
    ///
    /// ```
    /// # use kstate_api::{KeyValueStoreSupplier, StagedSupplier, TopicPartition};
    /// # let supplier = StagedSupplier::new("counts", kstate_store_memory::MemoryBackends::new())?;
    /// let changelog = [TopicPartition::new("app-counts-changelog", 3)];
    /// let offsets = supplier.read_offsets("state/app/0_3/counts".as_ref(), &changelog)?;
    /// assert!(offsets.is_empty(), "nothing was stored there");
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn read_offsets(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<ChangelogOffsets>;
}

/// Opens backends of one kind with one set of options.
///
/// What a backend's crate implements once; [`StagedSupplier`] makes suppliers of stores from it.
///
/// ```
/// use std::path::Path;
///
/// use kstate_api::{BackendSupplier, ChangelogOffsets, Result, StagedSupplier, TopicPartition};
/// use kstate_store_memory::MemoryBackend;
///
/// /// A new, empty backend each time. One on disk would open the files in `directory`.
/// #[derive(Debug)]
/// struct Volatile;
///
/// impl BackendSupplier for Volatile {
///     type Backend = MemoryBackend;
///
///     fn persistent(&self) -> bool {
///         false
///     }
///     fn open(&self, _directory: &Path) -> Result<MemoryBackend> {
///         Ok(MemoryBackend::new())
///     }
///     fn read_offsets(&self, _directory: &Path, _partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
///         Ok(ChangelogOffsets::new())
///     }
/// }
///
/// assert!(StagedSupplier::new("counts", Volatile).is_ok());
/// ```
pub trait BackendSupplier: Debug + Send + Sync {
    /// The backend it opens.
    ///
    /// ```
    /// # use kstate_api::{BackendSupplier, Result, StagedStore};
    /// # use kstate_store_memory::MemoryBackends;
    /// fn open<S: BackendSupplier>(backends: &S, directory: &std::path::Path) -> Result<StagedStore<S::Backend>> {
    ///     StagedStore::open("counts", backends.open(directory)?, &[])
    /// }
    /// # open(&MemoryBackends::new(), "unused".as_ref()).unwrap();
    /// ```
    type Backend: Backend + 'static;

    /// Whether its backends keep what was committed over a clean close, as the
    /// [capabilities](Backend::capabilities) of each say too.
    ///
    /// ```
    /// # use kstate_api::{Backend, BackendSupplier};
    /// # let backends = kstate_store_memory::MemoryBackends::new();
    /// let backend = backends.open("unused".as_ref())?;
    /// assert_eq!(backends.persistent(), backend.capabilities().persistent());
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn persistent(&self) -> bool;

    /// Opens the backend in `directory`, which is made if it is not there. A backend that is not persistent leaves
    /// the disk alone.
    ///
    /// # Errors
    /// `Locked`, `Corrupted`, `NewerFormat`, `DiskFull`, or what the engine met.
    ///
    /// ```
    /// # use kstate_api::{Backend, BackendSupplier};
    /// # use kstate_store_memory::MemoryBackends;
    /// fn wipe<S: BackendSupplier>(backends: &S, directory: &std::path::Path) -> kstate_api::Result<()> {
    ///     let backend = backends.open(directory)?;
    ///     backend.wipe()?;
    ///     backend.close()
    /// }
    /// # wipe(&MemoryBackends::new(), "unused".as_ref()).unwrap();
    /// ```
    fn open(&self, directory: &Path) -> Result<Self::Backend>;

    /// The offsets stored in `directory` for `partitions`, read as cheaply as the engine can; nothing is made or
    /// changed where there is no store.
    ///
    /// # Errors
    /// As [`open`](BackendSupplier::open).
    ///
    /// ```
    /// # use kstate_api::{BackendSupplier, TopicPartition};
    /// # let backends = kstate_store_memory::MemoryBackends::new();
    /// let changelog = [TopicPartition::new("app-counts-changelog", 3)];
    /// assert!(backends.read_offsets("state/never-made".as_ref(), &changelog)?.is_empty());
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
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
