use std::path::{Path, PathBuf};

use kstate_api::{Error, ErrorKind, TaskId};
use kstate_offset_cache::{StateDirectory, StateLayout};
use tempfile::TempDir;

use crate::failure::Failure;

/// The program's directory below the state directory.
const APPLICATION: &str = "word-count";

/// The directory of the stores, owned by this process (clauses D1, D2).
#[derive(Debug)]
pub(crate) struct StateDir {
    path: PathBuf,
    /// What keeps other processes out, while this one or a child of it counts.
    _owned: StateDirectory,
    /// Removed with all its files when it is dropped, after the lock.
    _temporary: Option<TempDir>,
}

impl StateDir {
    /// Takes the state directory `path`, which is made if it is not there; without one, a temporary one.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else {
            let temporary = tempfile::Builder::new().prefix("word-count-").tempdir();
            let temporary = temporary.map_err(|error| Failure::StateDir {
                path: std::env::temp_dir(),
                source: Error::io("cannot make a temporary directory", error),
            })?;
            return Self::own(temporary.path().to_owned(), Some(temporary));
        };
        Self::own(path.to_owned(), None)
    }

    fn own(path: PathBuf, temporary: Option<TempDir>) -> Result<Self, Failure> {
        match StateDirectory::open(&path, APPLICATION) {
            Ok(owned) => Ok(Self { path, _owned: owned, _temporary: temporary }),
            Err(error) if error.kind() == ErrorKind::Locked => Err(Failure::StateDirInUse(path)),
            Err(source) => Err(Failure::StateDir { path, source }),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Where the store `store` of `task` is. Its process, or the one that started it, owns the state directory.
pub(crate) fn store_directory(state_dir: &Path, task: TaskId, store: &str) -> Result<PathBuf, Error> {
    StateLayout::new(state_dir, APPLICATION)?.store_directory(task, store)
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
        let directory = store_directory(Path::new("s"), TaskId::new(0, 3), "counts").unwrap();
        assert_eq!(directory, Path::new("s/word-count/0_3/counts"));
    }
}
