use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

use kstate_api::TaskId;
use tempfile::TempDir;

use crate::failure::Failure;

/// The program's directory below the state directory.
const APPLICATION: &str = "word-count";

/// The directory of the stores, owned by this process (clauses D1, D2).
#[derive(Debug)]
pub(crate) struct StateDir {
    path: PathBuf,
    /// Locked while it is open: the lock of a process that dies is free at once.
    _lock: File,
    /// Removed with all its files when it is dropped, after the lock.
    _temporary: Option<TempDir>,
}

impl StateDir {
    /// Takes the state directory `path`, which is made if it is not there; without one, a temporary one.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else {
            let temporary = tempfile::Builder::new().prefix("word-count-").tempdir();
            let temporary = temporary.map_err(|source| Failure::StateDir { path: std::env::temp_dir(), source })?;
            return Self::lock(temporary.path().to_owned(), Some(temporary));
        };
        Self::lock(path.to_owned(), None)
    }

    fn lock(path: PathBuf, temporary: Option<TempDir>) -> Result<Self, Failure> {
        let failure = |source| Failure::StateDir { path: path.clone(), source };
        let application = path.join(APPLICATION);
        fs::create_dir_all(&application).map_err(failure)?;
        let options = File::options().create(true).truncate(false).write(true).clone();
        let lock = options.open(application.join(".lock")).map_err(failure)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, _lock: lock, _temporary: temporary }),
            Err(TryLockError::WouldBlock) => Err(Failure::StateDirInUse(path)),
            Err(TryLockError::Error(source)) => Err(failure(source)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Where the store `store` of `task` is.
pub(crate) fn store_directory(state_dir: &Path, task: TaskId, store: &str) -> PathBuf {
    state_dir.join(APPLICATION).join(task.to_string()).join(store)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_owner_at_a_time() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("deep/state");
        let first = StateDir::open(Some(&path)).unwrap();
        assert!(matches!(StateDir::open(Some(&path)), Err(Failure::StateDirInUse(used)) if used == path));
        drop(first);
        StateDir::open(Some(&path)).unwrap();
    }

    #[test]
    fn a_temporary_one_is_removed() {
        let state_dir = StateDir::open(None).unwrap();
        let path = state_dir.path().to_owned();
        assert!(path.join("word-count/.lock").exists());
        drop(state_dir);
        assert!(!path.exists());
    }

    #[test]
    fn a_file_is_no_directory() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(matches!(StateDir::open(Some(file.path())), Err(Failure::StateDir { .. })));
    }

    #[test]
    fn a_store_lies_below_its_task() {
        let directory = store_directory(Path::new("s"), TaskId::new(0, 3), "counts");
        assert_eq!(directory, Path::new("s/word-count/0_3/counts"));
    }
}
