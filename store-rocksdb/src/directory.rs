use std::{
    fs,
    path::{Path, PathBuf},
};

use kstate_api::{Error, ErrorKind, Result, sync_path};

/// Makes `directory` if it is not there and returns its one true name.
///
/// The engine knows a directory that is open in this process by its name only: by another name, through a link, say, it
/// would open it a second time.
pub(crate) fn prepare(directory: &Path) -> Result<PathBuf> {
    let made = fs::create_dir_all(directory).and_then(|()| fs::canonicalize(directory));
    let directory =
        made.map_err(|error| Error::io(format_args!("cannot make the directory {}", directory.display()), error))?;
    // Before there is a store in it: one that is there has its path on the disk. The engine sees to what is in it.
    if !holds_store(&directory)? {
        sync_path(&directory)?;
    }
    Ok(directory)
}

/// Whether there is a store in `directory`.
///
/// # Errors
/// `Corrupted` if there are tables or logs but not the file that leads to them: the engine would begin anew and delete
/// them.
pub(crate) fn holds_store(directory: &Path) -> Result<bool> {
    let failed = |error| Error::io(format_args!("cannot read the directory {}", directory.display()), error);
    if directory.join("CURRENT").try_exists().map_err(failed)? {
        return Ok(true);
    }
    if !directory.try_exists().map_err(failed)? {
        return Ok(false);
    }
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = PathBuf::from(entry.map_err(failed)?.file_name());
        if name.extension().is_some_and(|extension| extension == "sst" || extension == "log") {
            let message = format!("{} has files of a store but no CURRENT that leads to them", directory.display());
            return Err(Error::new(ErrorKind::Corrupted, message));
        }
    }
    Ok(false)
}
