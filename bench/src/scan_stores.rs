//! The stores that are scanned.

use std::{path::Path, sync::Arc};

use kstate_api::{BackendSupplier, ChangelogOffsets, KeyValueStoreSupplier, Offset, StagedSupplier, TaskId};
use kstate_offset_cache::{StateDirectory, TopologyStores};
use kstate_store_redb::{RedbBackends, RedbOptions};

use crate::{
    Result,
    arguments::EngineName,
    data,
    scan::{STORE, ScanArguments, copy_files},
};

/// An engine, what opens its stores, and the largest ratio of the scan's time that is good enough.
type Subject = (EngineName, Arc<dyn KeyValueStoreSupplier>, f64);

/// The engines that keep stores on a disk, with the options that a user has who chooses none.
pub(crate) fn suppliers() -> Result<Vec<Subject>> {
    Ok(vec![
        (EngineName::Redb, staged(RedbBackends::new(RedbOptions::new()))?, 1.0 / 10.0),
        #[cfg(feature = "rocksdb")]
        (
            EngineName::Rocksdb,
            staged(kstate_store_rocksdb::RocksDbBackends::new(kstate_store_rocksdb::RocksDbOptions::new()))?,
            1.0 / 15.0,
        ),
    ])
}

fn staged<S: BackendSupplier + 'static>(backends: S) -> Result<Arc<dyn KeyValueStoreSupplier>> {
    Ok(Arc::new(StagedSupplier::new(STORE, backends)?))
}

/// Makes a store for each of `tasks`: a copy of one that was loaded in `template`, to which it commits its own offset.
pub(crate) fn make(
    arguments: &ScanArguments,
    supplier: &dyn KeyValueStoreSupplier,
    topology: &TopologyStores,
    directory: &StateDirectory,
    tasks: &[TaskId],
    template: &Path,
) -> Result<()> {
    let store = supplier.open(template, &[])?;
    for index in 0..arguments.records {
        store.put(&data::key(index), &data::value(index))?;
    }
    store.commit(&ChangelogOffsets::new())?;
    store.close()?;
    for task in tasks {
        let path = directory.lock(*task)?.store_directory(STORE)?;
        copy_files(template, &path)?;
        let changelogs = topology.changelogs(*task);
        let store = supplier.open(&path, &changelogs)?;
        let offset = Offset::new(i64::from(task.partition())).ok_or("a negative offset")?;
        store.put(b"last", &task.partition().to_be_bytes())?;
        store.commit(&changelogs.into_iter().map(|changelog| (changelog, offset)).collect())?;
        store.close()?;
    }
    Ok(())
}
