use std::path::Path;

use kstate_api::{BackendSupplier, ChangelogOffsets, Result, TopicPartition};

use crate::MemoryBackend;

/// Supplies a new, empty [`MemoryBackend`] each time. The directory is not used.
///
/// ```
/// use kstate_api::{KeyValueStoreSupplier, StagedSupplier};
/// use kstate_store_memory::MemoryBackends;
///
/// # fn main() -> kstate_api::Result<()> {
/// let supplier = StagedSupplier::new("counts", MemoryBackends::new())?;
/// assert!(!supplier.persistent());
/// let store = supplier.open("never-made".as_ref(), &[])?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryBackends(());

impl MemoryBackends {
    /// The supplier; there is nothing to set.
    ///
    /// ```
    /// # use kstate_store_memory::MemoryBackends;
    /// let backends = MemoryBackends::new();
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self(())
    }
}

impl BackendSupplier for MemoryBackends {
    type Backend = MemoryBackend;

    fn persistent(&self) -> bool {
        false
    }

    fn open(&self, _directory: &Path) -> Result<MemoryBackend> {
        Ok(MemoryBackend::new())
    }

    /// None: nothing is kept.
    fn read_offsets(&self, _directory: &Path, _partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
        Ok(ChangelogOffsets::new())
    }
}
