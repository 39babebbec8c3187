use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use kstate_api::{Bytes, CommitOutcome, Result, WriteBatch};

use super::{Rows, rows_file, view::View};
use crate::directory;

/// What an open [`LegacyStore`](super::LegacyStore) holds.
#[derive(Debug)]
pub(super) struct State {
    path: PathBuf,
    lock: Arc<File>,
    pub(super) committed: Arc<Rows>,
    /// With what is staged; copied by the first write after a commit.
    pub(super) rows: Arc<Rows>,
    pub(super) staged: WriteBatch,
    /// Nobody can tell whether the last step happened.
    pub(super) poisoned: bool,
}

impl State {
    pub(super) fn open(directory: &Path) -> Result<Self> {
        let (lock, path) = (Arc::new(directory::lock(directory)?), directory.join("rows"));
        let rows = Arc::new(rows_file::read(&path)?);
        let committed = Arc::clone(&rows);
        Ok(Self { path, lock, committed, rows, staged: WriteBatch::new(), poisoned: false })
    }

    pub(super) fn view(&self, rows: &Arc<Rows>) -> View {
        View { rows: Arc::clone(rows), lock: Arc::downgrade(&self.lock) }
    }

    pub(super) fn rollback(&mut self) {
        self.rows = Arc::clone(&self.committed);
        self.staged = WriteBatch::new();
    }

    pub(super) fn stage(&mut self, entries: &[(&[u8], Option<&[u8]>)]) {
        let rows = Arc::make_mut(&mut self.rows);
        for (key, value) in entries {
            if let Some(value) = value {
                let value = Bytes::copy_from_slice(value);
                rows.insert(Bytes::copy_from_slice(key), value.clone());
                self.staged.put(key, value);
            } else {
                rows.remove(*key);
                self.staged.delete(key);
            }
        }
    }

    /// One step: afterwards `rows` are committed, and nothing is staged.
    pub(super) fn replace(&mut self, rows: Arc<Rows>) -> Result<()> {
        rows_file::write(&self.path, &rows).inspect_err(|error| {
            self.poisoned = error.commit_outcome() != Some(CommitOutcome::NotApplied);
        })?;
        self.committed = rows;
        self.rollback();
        Ok(())
    }
}
