use std::{path::Path, sync::Arc};

use kstate_api::{
    Backend, BackendSupplier, ChangelogOffsets, Durability, KeyValueStore, KeyValueStoreSupplier, Result, StagedStore,
    TopicPartition,
};

use crate::{Faults, FaultyBackend, Harness, Told};

/// The name of the stores that the suite opens.
const STORE: &str = "conformance";

/// Runs the suite on a [`StagedStore`] over the backends of a [`BackendSupplier`].
///
/// It declares `manages_offsets`, `closed_offsets` and `faults`.
///
/// ```
/// use kstate_conformance_tests::BackendHarness;
/// use kstate_store_memory::MemoryBackends;
///
/// let harness = BackendHarness::new(MemoryBackends::new());
/// ```
#[derive(Clone, Debug)]
pub struct BackendHarness<S> {
    backends: S,
}

impl<S: BackendSupplier> BackendHarness<S> {
    /// A harness for what `backends` opens.
    ///
    /// ```
    /// # use kstate_conformance_tests::BackendHarness;
    /// # use kstate_store_memory::MemoryBackends;
    /// let harness = BackendHarness::new(MemoryBackends::new());
    /// ```
    #[must_use]
    pub const fn new(backends: S) -> Self {
        Self { backends }
    }
}

fn open_faulty<B: Backend + 'static>(
    backend: B,
    changelog_partitions: &[TopicPartition],
    faults: &Faults,
) -> Result<Arc<dyn KeyValueStore>> {
    let backend = FaultyBackend::new(backend, faults.clone());
    Ok(Arc::new(StagedStore::open(STORE, backend, changelog_partitions)?))
}

impl<S: BackendSupplier> Harness for BackendHarness<S> {
    type Store = StagedStore<S::Backend>;

    fn open(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<Self::Store> {
        StagedStore::open(STORE, self.backends.open(directory)?, changelog_partitions)
    }

    fn durability(&self, store: &Self::Store) -> Told<Option<Durability>> {
        Told::This(store.backend().capabilities().durability())
    }

    fn supplier_persistent(&self) -> Told<bool> {
        Told::This(self.backends.persistent())
    }

    fn read_offsets(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
        self.backends.read_offsets(directory, changelog_partitions)
    }

    fn open_faulty(
        &self,
        directory: &Path,
        changelog_partitions: &[TopicPartition],
        faults: &Faults,
    ) -> Result<Arc<dyn KeyValueStore>> {
        open_faulty(self.backends.open(directory)?, changelog_partitions, faults)
    }
}

/// As [`BackendHarness`], with the backend behind `Arc<dyn Backend>` and the store behind `Arc<dyn KeyValueStore>`:
/// what an application does that chooses its engine at run time.
///
/// ```
/// use kstate_conformance_tests::DynBackendHarness;
/// use kstate_store_memory::MemoryBackends;
///
/// let harness = DynBackendHarness::new(MemoryBackends::new());
/// ```
#[derive(Clone, Debug)]
pub struct DynBackendHarness<S> {
    backends: S,
}

impl<S: BackendSupplier> DynBackendHarness<S> {
    /// A harness for what `backends` opens.
    ///
    /// ```
    /// # use kstate_conformance_tests::DynBackendHarness;
    /// # use kstate_store_memory::MemoryBackends;
    /// let harness = DynBackendHarness::new(MemoryBackends::new());
    /// ```
    #[must_use]
    pub const fn new(backends: S) -> Self {
        Self { backends }
    }

    fn backend(&self, directory: &Path) -> Result<Arc<dyn Backend>> {
        Ok(Arc::new(self.backends.open(directory)?))
    }
}

impl<S: BackendSupplier> Harness for DynBackendHarness<S> {
    type Store = Arc<dyn KeyValueStore>;

    fn open(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<Self::Store> {
        Ok(Arc::new(StagedStore::open(STORE, self.backend(directory)?, changelog_partitions)?))
    }

    fn supplier_persistent(&self) -> Told<bool> {
        Told::This(self.backends.persistent())
    }

    fn read_offsets(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
        self.backends.read_offsets(directory, changelog_partitions)
    }

    fn open_faulty(
        &self,
        directory: &Path,
        changelog_partitions: &[TopicPartition],
        faults: &Faults,
    ) -> Result<Arc<dyn KeyValueStore>> {
        open_faulty(self.backend(directory)?, changelog_partitions, faults)
    }
}

/// Runs the suite on what a [`KeyValueStoreSupplier`] opens.
///
/// It declares `closed_offsets`, and not `faults`.
///
/// ```
/// use kstate_api::StagedSupplier;
/// use kstate_conformance_tests::SupplierHarness;
/// use kstate_store_memory::MemoryBackends;
///
/// # fn main() -> kstate_api::Result<()> {
/// let harness = SupplierHarness::new(StagedSupplier::new("counts", MemoryBackends::new())?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SupplierHarness<S> {
    stores: S,
}

impl<S: KeyValueStoreSupplier> SupplierHarness<S> {
    /// A harness for what `stores` opens.
    ///
    /// ```
    /// # use kstate_api::StagedSupplier;
    /// # use kstate_conformance_tests::SupplierHarness;
    /// # use kstate_store_memory::MemoryBackends;
    /// # fn main() -> kstate_api::Result<()> {
    /// let harness = SupplierHarness::new(StagedSupplier::new("counts", MemoryBackends::new())?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn new(stores: S) -> Self {
        Self { stores }
    }
}

impl<S: KeyValueStoreSupplier> Harness for SupplierHarness<S> {
    type Store = Arc<dyn KeyValueStore>;

    fn open(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<Self::Store> {
        self.stores.open(directory, changelog_partitions)
    }

    fn supplier_persistent(&self) -> Told<bool> {
        Told::This(self.stores.persistent())
    }

    fn read_offsets(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
        self.stores.read_offsets(directory, changelog_partitions)
    }
}
