use std::path::Path;

use crate::{Error, Result};

/// Makes `path`, which is there, survive a power loss: its own name and that of every directory above it. What it
/// holds is left to whoever writes it.
///
/// A new file or directory is only sure to be found after a power loss once the directory that has its name is
/// synchronised. Which of the directories above a store are new nobody knows: a process may have died right after it
/// made them. So call this whenever a store is made, after its directory and before anything that tells that it was
/// made; not when a store is opened again.
///
/// Directories that this process may not read are passed over, as are those on file systems that take no such order.
/// On Windows there is nothing to do.
///
/// # Errors
/// `Io` or `DiskFull` if the path is not there or a directory cannot be synchronised: it is not known then what a power
/// loss would leave.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let state_directory = std::env::temp_dir().join(format!("kstate-sync-path-{}", std::process::id()));
/// let directory = state_directory.join("app/0_1/counts");
/// std::fs::create_dir_all(&directory)?;
/// kstate_api::sync_path(&directory)?;
/// # std::fs::remove_dir_all(state_directory)?;
/// # Ok(())
/// # }
/// ```
pub fn sync_path(path: &Path) -> Result<()> {
    sync(path).map_err(|error| Error::io(format_args!("cannot make {} survive a power loss", path.display()), error))
}

/// The directories that have the names which lead to `path`, the nearest first. `path` is absolute, without links.
#[cfg(unix)]
fn directories_above(path: &Path) -> impl Iterator<Item = &Path> {
    path.ancestors().skip(1)
}

#[cfg(unix)]
fn sync(path: &Path) -> std::io::Result<()> {
    // Not by the words of the path: a name lies in the directory that a link leads to.
    for directory in directories_above(&path.canonicalize()?) {
        match std::fs::File::open(directory).and_then(|opened| opened.sync_all()) {
            Ok(()) => tracing::trace!(directory = %directory.display(), "synchronised a directory"),
            Err(error) if is_none_of_ours(error.kind()) => {
                tracing::debug!(directory = %directory.display(), %error, "passed over a directory above a store");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether a directory that answers so was here before us, or is on a file system that sees to its names itself.
#[cfg(unix)]
fn is_none_of_ours(error: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind;
    matches!(
        error,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::InvalidInput | ErrorKind::Unsupported
    )
}

#[cfg(not(unix))]
fn sync(path: &Path) -> std::io::Result<()> {
    path.try_exists().and_then(|there| if there { Ok(()) } else { Err(std::io::ErrorKind::NotFound.into()) })
}

#[cfg(all(test, unix))]
mod tests {
    use std::{io, path::Path};

    use super::{directories_above, is_none_of_ours, sync};

    #[test]
    fn every_directory_up_to_the_root_has_a_name_that_leads_there() {
        let above: Vec<&Path> = directories_above(Path::new("/state/app/0_1/counts/store.redb")).collect();
        assert_eq!(above, ["/state/app/0_1/counts", "/state/app/0_1", "/state/app", "/state", "/"].map(Path::new));
        assert_eq!(directories_above(Path::new("/")).count(), 0);
    }

    #[test]
    fn only_what_cannot_be_new_is_passed_over() {
        let passed_over = |error: i32| is_none_of_ours(io::Error::from_raw_os_error(error).kind());
        let (eio, eacces, einval, enospc, erofs) = (5, 13, 22, 28, 30);
        assert!([eacces, einval, erofs].into_iter().all(passed_over));
        assert!(![eio, enospc].into_iter().any(passed_over));
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let error = sync(Path::new("/nowhere/at/all")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
