use std::{
    fs, io,
    path::{Path, PathBuf},
};

use kstate_api::{Error, ErrorKind, Result};

/// Makes `directory` if it is not there and returns its one true name.
///
/// The engine knows a directory that is open in this process by its name only: by another name, through a link, say, it
/// would open it a second time.
pub(crate) fn prepare(directory: &Path) -> Result<PathBuf> {
    create(directory)
        .and_then(|()| fs::canonicalize(directory))
        .map_err(|error| Error::io(format_args!("cannot make the directory {}", directory.display()), error))
}

/// Makes `directory` and what is missing above it, so that they are still there after a power loss.
fn create(directory: &Path) -> io::Result<()> {
    if directory.try_exists()? {
        return Ok(());
    }
    if let Some(parent) = directory.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        create(parent)?;
    }
    match fs::create_dir(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => sync_parent(directory),
    }
}

#[cfg(unix)]
fn sync_parent(directory: &Path) -> io::Result<()> {
    match fs::canonicalize(directory)?.parent() {
        Some(parent) => fs::File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// Elsewhere a directory cannot be synchronised.
#[cfg(not(unix))]
fn sync_parent(_directory: &Path) -> io::Result<()> {
    Ok(())
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
