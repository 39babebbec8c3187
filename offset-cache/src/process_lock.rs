use std::{
    fs::{self, File, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    path::{Path, PathBuf},
    process, thread,
    time::Duration,
};

use kstate_api::{Error, ErrorKind, Result};

use crate::{Wait, layout::cannot, permissions, wait::Waiting};

/// Whoever only looks whether there is an owner has the lock for an instant: one more look after this long tells.
const LOOK: Duration = Duration::from_millis(5);
/// Longer than a process id.
const MAX_OWNER: u64 = 32;

/// The lock of a state directory: the operating system frees it when its owner dies, however it dies.
///
/// The file has the owner's process id while it is owned and nothing after a release; so an owner that died is known
/// from what it left. It is never deleted: another may have it open and wait for it.
#[derive(Debug)]
pub(crate) struct ProcessLock {
    file: File,
    path: PathBuf,
    predecessor_died: bool,
}

impl ProcessLock {
    /// Takes the lock in the file `path`, which is made if it is not there.
    pub(crate) fn take(path: &Path, wait: &Wait) -> Result<Self> {
        let waiting = wait.begin();
        loop {
            let options = permissions::file_options().read(true).write(true).create(true).truncate(false).clone();
            let file = options.open(path).map_err(|error| cannot("open the lock file", path, error))?;
            lock(&file, path, &waiting)?;
            // Someone may have deleted the whole directory meanwhile: then this lock keeps nobody out.
            if is_same(&file, path) {
                return Ok(Self::taken(file, path.to_owned()));
            }
        }
    }

    fn taken(mut file: File, path: PathBuf) -> Self {
        let predecessor_died = !read_owner(&mut file).is_empty();
        let mut lock = Self { file, path, predecessor_died };
        if let Err(error) = lock.write(process::id().to_string().as_bytes()) {
            // On a full disk, say. The lock is in force all the same.
            tracing::debug!(file = %lock.path.display(), %error, "cannot write the owner into the lock file");
        }
        lock
    }

    /// Whether the owner before did not live to release it.
    pub(crate) const fn predecessor_died(&self) -> bool {
        self.predecessor_died
    }

    /// An error if the lock's file is no longer the one that others would lock.
    pub(crate) fn check(&self) -> Result<()> {
        if is_same(&self.file, &self.path) {
            return Ok(());
        }
        let directory = self.path.parent().unwrap_or(&self.path).display();
        let message = format!("the state directory {directory} was deleted or replaced while this process used it");
        Err(Error::new(ErrorKind::Io, message))
    }

    fn write(&mut self, owner: &[u8]) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(owner)
    }
}

impl Drop for ProcessLock {
    fn drop(&mut self) {
        // Closing the file frees the lock.
        if let Err(error) = self.write(b"") {
            tracing::debug!(file = %self.path.display(), %error, "cannot clear the lock file");
        }
    }
}

fn lock(file: &File, path: &Path, waiting: &Waiting<'_>) -> Result<()> {
    let mut looked = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if !looked => {
                looked = true;
                thread::sleep(LOOK);
            }
            Err(TryLockError::WouldBlock) => match waiting.slice() {
                Some(slice) => thread::sleep(slice),
                None => return Err(in_use(path, waiting)),
            },
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                let message = format!("the file system of {} has no locks, so it cannot hold state", path.display());
                return Err(Error::new(ErrorKind::Unsupported, message).with_source(error));
            }
            Err(TryLockError::Error(error)) => return Err(cannot("lock", path, error)),
        }
    }
}

fn in_use(path: &Path, waiting: &Waiting<'_>) -> Error {
    let directory = path.parent().unwrap_or(path).display();
    let owner = File::open(path).map(|mut file| read_owner(&mut file)).unwrap_or_default();
    let owner = match owner.parse::<u32>() {
        Ok(owner) if owner == process::id() => "by this process".to_owned(),
        Ok(owner) => format!("by process {owner}"),
        Err(_) => "by another process".to_owned(),
    };
    let message = format!("the state directory {directory} is in use {owner}{}", waiting.verdict());
    Error::new(ErrorKind::Locked, message)
}

fn read_owner(file: &mut File) -> String {
    let mut owner = String::new();
    // What cannot be read tells of an owner, too.
    match file.take(MAX_OWNER).read_to_string(&mut owner) {
        Ok(_) => owner,
        Err(error) => error.to_string(),
    }
}

#[cfg(unix)]
fn is_same(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(opened), Ok(named)) => identity(opened) == identity(named),
        _ => false,
    }
}

/// A file that is open cannot be deleted.
#[cfg(not(unix))]
fn is_same(_: &File, path: &Path) -> bool {
    fs::metadata(path).is_ok()
}
