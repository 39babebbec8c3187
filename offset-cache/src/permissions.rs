use std::{fs, io, path::Path};

/// Makes the directory `path`, and those above it that are missing, for their owner alone. What is there stays as it is.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, OWNER_ONLY);
    builder.create(path)
}

/// How to open a file that is made for its owner alone.
pub(crate) fn file_options() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, OWNER_ONLY_FILE);
    options
}

#[cfg(unix)]
const OWNER_ONLY: u32 = 0o700;
#[cfg(unix)]
const OWNER_ONLY_FILE: u32 = 0o600;

/// Takes the directory `path` away from everyone but its owner, as far as the file system knows of owners. If it does
/// not, or refuses, a warning says so; that is no reason not to start (case HO-38).
pub(crate) fn restrict(path: &Path) {
    if let Err(error) = try_restrict(path) {
        tracing::warn!(
            directory = %path.display(), %error,
            "cannot make the directory accessible to its owner only; others may read or change the state"
        );
    }
}

#[cfg(unix)]
fn try_restrict(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    let mode = |path| fs::metadata(path).map(|metadata| metadata.permissions().mode() & 0o777);
    if mode(path)? & !OWNER_ONLY == 0 {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(OWNER_ONLY))?;
    // Some file systems accept it and do nothing.
    match mode(path)? & !OWNER_ONLY {
        0 => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::Unsupported, "the file system does not keep permissions")),
    }
}

/// A directory has the permissions of the one above it.
#[cfg(not(unix))]
fn try_restrict(_: &Path) -> io::Result<()> {
    Ok(())
}
