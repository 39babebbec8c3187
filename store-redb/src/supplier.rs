use std::{
    fs::{File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use kstate_api::{BackendSupplier, ChangelogOffsets, Error, Result, TopicPartition};
use redb::{ReadTransaction, ReadableDatabase, backends::FileBackend};

use crate::{
    RedbBackend, RedbOptions,
    cache::CacheGrant,
    error::{caught, engine},
    held::HeldStorage,
    layout::{self, Found, OFFSETS},
    open::{FILE_NAME, newer_format},
};

/// The cache for reading a few offsets, in bytes.
const SCAN_CACHE: usize = 256 << 10;

/// Supplies [`RedbBackend`]s of the same options.
///
/// ```
/// use kstate_api::{KeyValueStoreSupplier, StagedSupplier};
/// use kstate_store_redb::{RedbBackends, RedbOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let temporary = tempfile::tempdir()?;
/// let supplier = StagedSupplier::new("counts", RedbBackends::new(RedbOptions::new()))?;
/// assert!(supplier.persistent());
/// let store = supplier.open(&temporary.path().join("0_0/counts"), &[])?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct RedbBackends {
    options: RedbOptions,
}

impl RedbBackends {
    /// A supplier of stores with `options`.
    ///
    /// ```
    /// # use kstate_store_redb::{RedbBackends, RedbOptions};
    /// let backends = RedbBackends::new(RedbOptions::new().cache_size(8 << 20));
    /// ```
    #[must_use]
    pub const fn new(options: RedbOptions) -> Self {
        Self { options }
    }
}

impl BackendSupplier for RedbBackends {
    type Backend = RedbBackend;

    fn persistent(&self) -> bool {
        true
    }

    fn open(&self, directory: &Path) -> Result<RedbBackend> {
        RedbBackend::open(directory, &self.options)
    }

    /// Reads them without writing to the file, not even after a crash: what redb recovers then, it recovers in memory.
    /// A store that was closed can be read where nothing can be written, too.
    fn read_offsets(&self, directory: &Path, partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
        let path = directory.join(FILE_NAME);
        let Some(held) = open_held(&path)? else { return Ok(ChangelogOffsets::new()) };
        let what = "cannot read the store's offsets";
        let cache = CacheGrant::fixed(SCAN_CACHE);
        let read_only =
            caught(what, || match self.options.builder(&cache).open_read_only_with_backend(held.handle()) {
                Ok(database) => {
                    let transaction = database.begin_read().map_err(|error| engine(what, error))?;
                    pick(&transaction, partitions).map(Some)
                }
                _ if held.is_new() => Ok(Some(ChangelogOffsets::new())),
                // It was not closed.
                Err(redb::DatabaseError::RepairAborted) => Ok(None),
                Err(error) => Err(newer_format(&held).unwrap_or_else(|| engine(what, error))),
            })?;
        if let Some(offsets) = read_only {
            return Ok(offsets);
        }
        let Some(held) = open_held(&path)? else { return Ok(ChangelogOffsets::new()) };
        caught(what, || {
            let opened = self.options.builder(&cache).create_with_backend(held.handle());
            let database = opened.map_err(|error| newer_format(&held).unwrap_or_else(|| engine(what, error)))?;
            let transaction = database.begin_read().map_err(|error| engine(what, error))?;
            pick(&transaction, partitions)
        })
    }
}

/// The storage of the store in `path`, if there is one, never to be released.
fn open_held(path: &PathBuf) -> Result<Option<std::sync::Arc<HeldStorage<FileBackend>>>> {
    let what = || format!("cannot open {}", path.display());
    // For writing, or it could not be locked as its owner would, which a recovery needs.
    let opened = OpenOptions::new().read(true).write(true).open(path).or_else(|error| match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => File::open(path),
        _ => Err(error),
    });
    match opened {
        Ok(file) => {
            let storage = FileBackend::new(file).map_err(|error| engine(&what(), error))?;
            Ok(Some(HeldStorage::new(storage)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(what(), error)),
    }
}

fn pick(transaction: &ReadTransaction, partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
    match layout::inspect(transaction)? {
        Found::Nothing => Ok(ChangelogOffsets::new()),
        Found::Store => {
            let offsets = layout::open(transaction, OFFSETS)?;
            let stored = partitions.iter().filter_map(|partition| {
                let offset = layout::read_offset(&offsets, partition).transpose()?;
                Some(offset.map(|offset| (partition.clone(), offset)))
            });
            stored.collect()
        }
    }
}
