use std::{path::Path, sync::Arc};

use kstate_api::{ChangelogOffsets, Durability, Error, ErrorKind, KeyValueStore, Result, TopicPartition};

use crate::Faults;

/// How the suite opens the store under test: what someone with a store of their own writes.
///
/// For a [`Backend`](kstate_api::Backend) there is [`BackendHarness`](crate::BackendHarness), for a store without a
/// key-value interface [`StateStoreHarness`](crate::StateStoreHarness).
///
/// ```
/// use std::path::Path;
///
/// use kstate_api::{Result, StagedStore, TopicPartition};
/// use kstate_conformance_tests::Harness;
/// use kstate_store_memory::MemoryBackend;
///
/// struct MyHarness;
///
/// impl Harness for MyHarness {
///     type Store = StagedStore<MemoryBackend>;
///
///     fn open(&self, _directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<Self::Store> {
///         StagedStore::open("my-store", MemoryBackend::new(), changelog_partitions)
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not tell the suite how to open a store",
    label = "no `Harness`",
    note = "`BackendHarness::new(<your BackendSupplier>)` is one for a `Backend`, `SupplierHarness::new(..)` one for a \
            `KeyValueStoreSupplier`; for a `KeyValueStore` of your own implement `Harness`; a store that is a \
            `StateStore` only takes `state_store_only: true` and a `StateStoreHarness`"
)]
pub trait Harness: Send + Sync {
    /// What it opens.
    type Store: KeyValueStore + 'static;

    /// Opens the store in `directory` as the owner of `changelog_partitions`.
    ///
    /// The suite calls this again and again on one directory, from this process and from others that it starts. The
    /// first time, the directory does not exist.
    ///
    /// # Errors
    /// What the store says; `Locked` if the directory is open already.
    fn open(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<Self::Store>;

    /// What each commit of `store` survives, if the store tells; `None` for a store that is not persistent. It is
    /// compared with what is declared.
    fn durability(&self, store: &Self::Store) -> Told<Option<Durability>> {
        let _ = store;
        Told::Nothing
    }

    /// Whether the store's supplier says that what it opens is persistent, if there is a supplier. It is compared with
    /// what is declared.
    fn supplier_persistent(&self) -> Told<bool> {
        Told::Nothing
    }

    /// The offsets of `changelog_partitions` in the closed store in `directory`. Needed if `closed_offsets: true` is
    /// declared.
    ///
    /// # Errors
    /// What the store says.
    fn read_offsets(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
        let _ = (directory, changelog_partitions);
        Err(Error::new(ErrorKind::Unsupported, "this harness does not read the offsets of closed stores"))
    }

    /// Opens the store like [`open`](Harness::open), so that what it stands on fails as `faults` say. Needed if
    /// `faults: true` is declared.
    ///
    /// # Errors
    /// What the store says.
    fn open_faulty(
        &self,
        directory: &Path,
        changelog_partitions: &[TopicPartition],
        faults: &Faults,
    ) -> Result<Arc<dyn KeyValueStore>> {
        let _ = (directory, changelog_partitions, faults);
        Err(Error::new(ErrorKind::Unsupported, "this harness cannot make its store fail"))
    }

    /// Whether what the suite reads and writes is not the store's own interface.
    #[doc(hidden)]
    fn is_state_store_only(&self) -> bool {
        false
    }
}

/// What a store tells of itself, beyond the traits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told<T> {
    /// It does not say.
    Nothing,
    /// It says this.
    This(T),
}

/// A [`Harness`] whose store's type is forgotten, so that cases are plain functions.
pub(crate) trait AnyHarness: Send + Sync {
    fn is_state_store_only(&self) -> bool;
    fn supplier_persistent(&self) -> Told<bool>;
    fn open(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<Opened>;
    fn read_offsets(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<ChangelogOffsets>;
    fn open_faulty(
        &self,
        directory: &Path,
        changelog_partitions: &[TopicPartition],
        faults: &Faults,
    ) -> Result<Arc<dyn KeyValueStore>>;
}

/// A store and what it told while its type was known.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn KeyValueStore>,
    pub(crate) durability: Told<Option<Durability>>,
}

impl<H: Harness> AnyHarness for H {
    fn is_state_store_only(&self) -> bool {
        Harness::is_state_store_only(self)
    }

    fn supplier_persistent(&self) -> Told<bool> {
        Harness::supplier_persistent(self)
    }

    fn open(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<Opened> {
        let store = Harness::open(self, directory, changelog_partitions)?;
        Ok(Opened { durability: self.durability(&store), store: Arc::new(store) })
    }

    fn read_offsets(&self, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
        Harness::read_offsets(self, directory, changelog_partitions)
    }

    fn open_faulty(
        &self,
        directory: &Path,
        changelog_partitions: &[TopicPartition],
        faults: &Faults,
    ) -> Result<Arc<dyn KeyValueStore>> {
        Harness::open_faulty(self, directory, changelog_partitions, faults)
    }
}
