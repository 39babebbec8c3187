use std::{
    fs::{self, OpenOptions},
    path::Path,
};

use kstate_api::{Durability, Error, ErrorKind, Result, sync_path};
use redb::{Database, ReadableDatabase, StorageBackend, backends::FileBackend};

use crate::{
    RedbOptions,
    cache::CacheGrant,
    error::{caught, engine},
    held::HeldStorage,
    layout::{self, Found, Offsets},
    view::View,
};

/// The store's file in its directory.
pub(crate) const FILE_NAME: &str = "store.redb";

/// The file of the store in `directory`, both made if they are not there.
pub(crate) fn file(directory: &Path) -> Result<FileBackend> {
    let cannot = |what: &str| format!("cannot {what} {}", directory.display());
    fs::create_dir_all(directory).map_err(|error| Error::io(cannot("create the directory"), error))?;
    let path = directory.join(FILE_NAME);
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(|error| Error::io(cannot("open the store in"), error))?;
    // Before anything is in it: a file that has something in it has its name on the disk.
    if file.metadata().map_err(|error| Error::io(cannot("open the store in"), error))?.len() == 0 {
        sync_path(&path)?;
    }
    FileBackend::new(file).map_err(|error| engine(&cannot("open the store in"), error))
}

/// The store in `storage`, made if that is empty, and the offsets that are durable in it.
///
/// The offsets are read for `Eventual` only: elsewhere each commit is durable.
pub(crate) fn store(
    storage: impl StorageBackend,
    options: &RedbOptions,
    cache: &CacheGrant,
) -> Result<(Database, Offsets)> {
    let held = HeldStorage::new(storage);
    let what = "cannot open the store";
    caught(what, || {
        let opened = options.builder(cache).create_with_backend(held.handle());
        let database = opened.map_err(|error| newer_format(&held).unwrap_or_else(|| engine(what, error)))?;
        let transaction = database.begin_read().map_err(|error| engine(what, error))?;
        let found = layout::inspect(&transaction)?;
        drop(transaction);
        held.release().map_err(|error| Error::io(what, error))?;
        if matches!(found, Found::Nothing) {
            layout::create(&database)?;
        }
        let durable_offsets = match options.durability {
            Durability::Eventual => View::begin(&database)?.offsets()?,
            _ => Offsets::new(),
        };
        Ok((database, durable_offsets))
    })
}

/// The engine's own format, which it cannot name itself.
pub(crate) fn newer_format<S: StorageBackend>(held: &HeldStorage<S>) -> Option<Error> {
    let version = held.newer_format()?;
    let message = format!("the store's file has version {version} of redb's format, which this program cannot read");
    Some(Error::new(ErrorKind::NewerFormat, message))
}
