use std::{
    fmt,
    path::Path,
    sync::{Arc, OnceLock},
};

use kstate_api::{BackendSupplier, ChangelogOffsets, Result, TopicPartition};
use rocksdb::Options;

use crate::{RocksDbBackend, RocksDbOptions, inspection::Inspection};

/// Supplies [`RocksDbBackend`]s of the same options, and so in one memory.
///
/// ```
/// use kstate_api::{ChangelogOffsets, KeyValueStoreSupplier, Offset, StagedSupplier, TopicPartition};
/// use kstate_store_rocksdb::{RocksDbBackends, RocksDbOptions};
///
/// # fn main() -> kstate_api::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let directory = directory.path().join("0_0").join("counts");
/// let changelog = [TopicPartition::new("counts-changelog", 0)];
/// let supplier = StagedSupplier::new("counts", RocksDbBackends::new(RocksDbOptions::new()))?;
/// let store = supplier.open(&directory, &changelog)?;
/// store.put(b"word", b"1")?;
/// store.commit(&ChangelogOffsets::new().with(changelog[0].clone(), Offset::ZERO))?;
/// store.close()?;
///
/// let offsets = supplier.read_offsets(&directory, &changelog)?;
/// assert_eq!(offsets.get(&changelog[0]), Some(Offset::ZERO));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct RocksDbBackends {
    options: RocksDbOptions,
    /// The engine's, of a look. A start looks into thousands of stores, and to make them takes as long as a part of that.
    look: Arc<OnceLock<Options>>,
}

impl RocksDbBackends {
    /// A supplier of stores with `options`.
    ///
    /// ```
    /// # use kstate_store_rocksdb::{RocksDbBackends, RocksDbOptions};
    /// let backends = RocksDbBackends::new(RocksDbOptions::new().timestamped(true));
    /// ```
    #[must_use]
    pub fn new(options: RocksDbOptions) -> Self {
        Self { options, look: Arc::default() }
    }
}

impl BackendSupplier for RocksDbBackends {
    type Backend = RocksDbBackend;

    fn persistent(&self) -> bool {
        true
    }

    fn open(&self, directory: &Path) -> Result<RocksDbBackend> {
        RocksDbBackend::open(directory, &self.options)
    }

    /// Opens the store read-only, which takes no lock: it works beside a live owner, and tells what a crash of that
    /// owner would leave.
    fn read_offsets(&self, directory: &Path, partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
        let look = self.look.get_or_init(|| self.options.read_only());
        let Some(found) = Inspection::of(directory, look)? else { return Ok(ChangelogOffsets::new()) };
        found.check(self.options.layout())?;
        found.offsets(partitions)
    }
}

impl fmt::Debug for RocksDbBackends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RocksDbBackends").field("options", &self.options).finish_non_exhaustive()
    }
}
