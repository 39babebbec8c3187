use std::{any::type_name, fmt, fs, path::Path};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use kstate_api::{Error, ErrorKind, Result, codec};
use parking_lot::RwLock;

/// What of fjall's has no `Debug`.
pub(crate) struct Opaque<T>(pub(crate) T);

impl<T> fmt::Debug for Opaque<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(type_name::<T>())
    }
}

/// fjall in a directory, until it is closed: views and cursors that live on find out here.
#[derive(Debug)]
pub(crate) struct Engine(Opaque<RwLock<Option<Open>>>);

pub(crate) struct Open {
    pub(crate) database: Database,
    pub(crate) rows: Keyspace,
    pub(crate) meta: Keyspace,
}

impl Open {
    /// fjall has a lock of its own: a second open is `Locked`.
    fn new(path: &Path) -> Result<Self> {
        let database = Database::builder(path).open().map_err(failed)?;
        let keyspace = |name| database.keyspace(name, KeyspaceCreateOptions::default).map_err(failed);
        Ok(Self { rows: keyspace("rows")?, meta: keyspace("meta")?, database })
    }
}

impl Engine {
    pub(crate) fn exists(directory: &Path) -> bool {
        directory.join("fjall").exists()
    }

    pub(crate) fn open(directory: &Path) -> Result<Self> {
        let io = |error| Error::io(format!("cannot make {}", directory.display()), error);
        let (path, new) = (directory.join("fjall"), directory.join("new"));
        if !path.exists() {
            // Made aside: fjall cannot go on from a database that a crash left half made.
            fs::create_dir_all(&new).and_then(|()| fs::remove_dir_all(&new)).map_err(io)?;
            let open = Open::new(&new)?;
            open.meta.insert("header", codec::encode_header("fjall")).map_err(failed)?;
            open.database.persist(PersistMode::SyncAll).map_err(failed)?;
            drop(open);
            fs::rename(&new, &path).and_then(|()| fs::File::open(directory)?.sync_all()).map_err(io)?;
        }
        let open = Open::new(&path)?;
        let header = open.meta.get("header").map_err(failed)?;
        codec::check_header(&header.unwrap_or_default(), "fjall")?;
        Ok(Self(Opaque(RwLock::new(Some(open)))))
    }

    pub(crate) fn with<T>(&self, work: impl FnOnce(&Open) -> Result<T>) -> Result<T> {
        let closed = || Error::new(ErrorKind::Closed, "the store is closed");
        self.0.0.read().as_ref().ok_or_else(closed).and_then(work)
    }

    pub(crate) fn close(&self) {
        *self.0.0.write() = None;
    }
}

/// fjall's error, by what a caller can do about it.
pub(crate) fn failed(error: fjall::Error) -> Error {
    let kind = match error {
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) => {
            return Error::io("fjall cannot read or write", error);
        }
        fjall::Error::Locked => ErrorKind::Locked,
        fjall::Error::Poisoned => ErrorKind::Poisoned,
        fjall::Error::InvalidVersion(_) => ErrorKind::NewerFormat,
        _ => ErrorKind::Corrupted,
    };
    Error::new(kind, error.to_string()).with_source(error)
}
