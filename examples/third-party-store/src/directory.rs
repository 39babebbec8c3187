use std::{
    fs::{self, File, TryLockError},
    path::Path,
};

use kstate_api::{Error, ErrorKind, Result, sync_path};

/// Makes `directory`, and owns it until what this returns is dropped.
pub(crate) fn lock(directory: &Path) -> Result<File> {
    let io = |error| Error::io(format!("cannot open {}", directory.display()), error);
    let lock = fs::create_dir_all(directory).and_then(|()| File::create(directory.join("lock"))).map_err(io)?;
    lock.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => Error::new(ErrorKind::Locked, "the directory has another owner"),
        TryLockError::Error(error) => io(error),
    })?;
    Ok(lock)
}

/// Lets `make` make the directory `path` under another name, so that a crash leaves all of it or nothing.
pub(crate) fn make_whole(path: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let io = |error| Error::io(format!("cannot make {}", path.display()), error);
    let unfinished = path.with_extension("unfinished");
    fs::create_dir_all(&unfinished).and_then(|()| fs::remove_dir_all(&unfinished)).map_err(io)?;
    make(&unfinished)?;
    fs::rename(&unfinished, path).map_err(io)?;
    sync_path(path)
}
