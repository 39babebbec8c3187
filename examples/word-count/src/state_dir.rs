use std::{
    path::{Path, PathBuf},
    slice,
};

use kstate_api::{Error, ErrorKind, KeyValueStoreSupplier, TaskId};
use kstate_offset_cache::{StateDirectory, StateLayout};
use tempfile::TempDir;

use crate::{failure::Failure, job::Job, tally::partition_of};

/// The program's directory below the state directory.
const APPLICATION: &str = "word-count";

/// Where each counting process has a directory of its own. It belongs to this run as long as this lives, whichever of
/// them live (clause D1).
#[derive(Debug)]
pub(crate) struct StateDir {
    owned: StateDirectory,
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
            Ok(owned) => Ok(Self { owned, _temporary: temporary }),
            Err(error) if error.kind() == ErrorKind::Locked => Err(Failure::StateDirInUse(path)),
            Err(source) => Err(Failure::StateDir { path, source }),
        }
    }

    /// What the counting processes take for the state directory.
    pub(crate) fn path(&self) -> &Path {
        self.owned.layout().application_directory()
    }
}

/// Looks at every store of the process before any is touched: if one cannot be opened, the others are left as they are.
pub(crate) fn look_at_stores(job: &Job, supplier: &dyn KeyValueStoreSupplier) -> Result<(), Failure> {
    let layout = StateLayout::new(&job.state_dir, &job.directory_name())?;
    for partition in 0..job.partitions.unsigned_abs() {
        let task = TaskId::new(0, partition);
        let path = layout.store_directory(task, supplier.name())?;
        let changelog = partition_of(task, &job.names.changelog);
        if let Err(source) = supplier.read_offsets(&path, slice::from_ref(&changelog)) {
            return Err(Failure::StoreOpen { path, source });
        }
    }
    Ok(())
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
        assert!(path.ends_with("word-count") && path.join(".lock").exists());
        drop(state_dir);
        assert!(!path.exists());
    }

    #[test]
    fn a_file_is_no_directory() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(matches!(StateDir::open(Some(file.path())), Err(Failure::StateDir { .. })));
    }
}
