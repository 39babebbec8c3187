use std::{
    any::type_name,
    fmt,
    fs::{self, File},
    path::Path,
};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, LsmError, PersistMode};
use kstate_api::{Error, ErrorKind, Result, codec, sync_path};
use parking_lot::RwLock;

use crate::directory_lock;

/// What of others has no `Debug`.
pub(super) struct Opaque<T>(pub(super) T);

impl<T> fmt::Debug for Opaque<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(type_name::<T>())
    }
}

/// fjall, open.
pub(super) struct Engine {
    pub(super) database: Database,
    pub(super) rows: Keyspace,
    /// The header, the changelog offsets and the source position.
    pub(super) meta: Keyspace,
}

impl Engine {
    fn open(path: &Path) -> Result<Self> {
        let database = Database::builder(path).open().map_err(failed)?;
        let keyspace = |name| database.keyspace(name, KeyspaceCreateOptions::default).map_err(failed);
        Ok(Self { rows: keyspace("rows")?, meta: keyspace("meta")?, database })
    }
}

/// The engine and the directory's lock until it is closed. Cursors and snapshots that live on find out here.
#[derive(Debug)]
pub(super) struct Shared(Opaque<RwLock<Option<(Engine, File)>>>);

impl Shared {
    pub(super) fn open(directory: &Path) -> Result<Self> {
        let lock = directory_lock::lock(directory)?;
        let io = |error| Error::io(format!("cannot make {}", directory.display()), error);
        let (path, unfinished) = (directory.join("fjall"), directory.join("unfinished"));
        if !path.exists() {
            // Made aside: fjall cannot go on from a database that a crash left half made.
            fs::create_dir_all(&unfinished).and_then(|()| fs::remove_dir_all(&unfinished)).map_err(io)?;
            let new = Engine::open(&unfinished)?;
            new.meta.insert("header", codec::encode_header("fjall")).map_err(failed)?;
            new.database.persist(PersistMode::SyncAll).map_err(failed)?;
            drop(new);
            fs::rename(&unfinished, &path).map_err(io)?;
            sync_path(&path)?;
        }
        let engine = Engine::open(&path)?;
        codec::check_header(&engine.meta.get("header").map_err(failed)?.unwrap_or_default(), "fjall")?;
        Ok(Self(Opaque(RwLock::new(Some((engine, lock))))))
    }

    pub(super) fn with<T>(&self, work: impl FnOnce(&Engine) -> Result<T>) -> Result<T> {
        let closed = || Error::new(ErrorKind::Closed, "the store is closed");
        self.0.0.read().as_ref().ok_or_else(closed).and_then(|(engine, _)| work(engine))
    }

    pub(super) fn close(&self) {
        *self.0.0.write() = None;
    }
}

/// fjall's error, by what a caller can do about it.
pub(super) fn failed(error: fjall::Error) -> Error {
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(LsmError::Io(error)) => Error::io("fjall failed", error),
        fjall::Error::Locked => Error::new(ErrorKind::Locked, "the directory has another owner"),
        fjall::Error::Poisoned => Error::new(ErrorKind::Poisoned, "fjall has failed before"),
        fjall::Error::InvalidVersion(_) => Error::new(ErrorKind::NewerFormat, error.to_string()),
        _ => Error::new(ErrorKind::Corrupted, error.to_string()).with_source(error),
    }
}
