use std::{
    fs::{self, File, TryLockError},
    path::Path,
};

use kstate_api::{Error, ErrorKind, Result};

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
