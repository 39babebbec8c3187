use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::layout::{is_bookkeeping, validate_store_name};

/// What is in the directory of one task.
///
/// Every directory with a name that a store can have is taken for a store's own, with all that is in it, as the contract
/// of [`KeyValueStoreSupplier::open`](kstate_api::KeyValueStoreSupplier::open) says. Links are never followed.
///
/// ```
/// use kstate_api::TaskId;
/// use kstate_offset_cache::StateLayout;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let temporary = tempfile::tempdir()?;
/// let layout = StateLayout::new(temporary.path(), "word-count")?;
/// let task = TaskId::new(0, 1);
/// let store = layout.store_directory(task, "counts")?;
/// std::fs::create_dir_all(&store)?;
/// // Case HO-33: a directory that was made and never used is no state.
/// assert!(layout.contents(task)?.is_empty());
///
/// std::fs::write(store.join("store.redb"), "records")?;
/// assert_eq!(layout.contents(task)?.stores(), ["counts"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskContents {
    stores: Vec<String>,
    empty_stores: Vec<String>,
    bookkeeping: Vec<PathBuf>,
    unfamiliar: Vec<PathBuf>,
}

impl TaskContents {
    pub(crate) fn read(directory: &Path) -> io::Result<Self> {
        let mut contents = Self::default();
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(contents),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let (path, name, kind) = (entry.path(), entry.file_name(), entry.file_type()?);
            match name.into_string() {
                Ok(name) if kind.is_dir() && validate_store_name(&name).is_ok() => {
                    let stores = if is_empty(&path)? { &mut contents.empty_stores } else { &mut contents.stores };
                    stores.push(name);
                }
                Ok(name) if kind.is_file() && is_bookkeeping(&name) => contents.bookkeeping.push(path),
                _ => contents.unfamiliar.push(path),
            }
        }
        // In an order that does not depend on the file system.
        contents.stores.sort_unstable();
        contents.empty_stores.sort_unstable();
        contents.bookkeeping.sort_unstable();
        contents.unfamiliar.sort_unstable();
        Ok(contents)
    }

    /// The stores that have anything, by name, in order.
    ///
    /// ```
    /// # use kstate_offset_cache::TaskContents;
    /// assert!(TaskContents::default().stores().is_empty());
    /// ```
    #[must_use]
    pub fn stores(&self) -> &[String] {
        &self.stores
    }

    /// The stores that have a directory and nothing in it, by name, in order.
    ///
    /// ```
    /// # use kstate_offset_cache::TaskContents;
    /// assert!(TaskContents::default().empty_stores().is_empty());
    /// ```
    #[must_use]
    pub fn empty_stores(&self) -> &[String] {
        &self.empty_stores
    }

    /// What is no store's and none of our own files. Nobody here ever deletes it.
    ///
    /// ```
    /// # use kstate_offset_cache::TaskContents;
    /// assert!(TaskContents::default().unfamiliar().is_empty());
    /// ```
    #[must_use]
    pub fn unfamiliar(&self) -> &[PathBuf] {
        &self.unfamiliar
    }

    /// Whether no store has anything: at most lock and bookkeeping files (clause D4), and what is none of ours.
    ///
    /// ```
    /// # use kstate_offset_cache::TaskContents;
    /// assert!(TaskContents::default().is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stores.is_empty()
    }

    /// Whether there is something, and nothing of it is ours.
    pub(crate) fn is_only_unfamiliar(&self) -> bool {
        let ours = self.stores.len() + self.empty_stores.len() + self.bookkeeping.len();
        ours == 0 && !self.unfamiliar.is_empty()
    }

    pub(crate) fn bookkeeping(&self) -> &[PathBuf] {
        &self.bookkeeping
    }
}

/// Whether there is nothing but bookkeeping in a store's directory, however deep.
fn is_empty(directory: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let empty = if entry.file_type()?.is_dir() {
            is_empty(&entry.path())?
        } else {
            entry.file_name().to_str().is_some_and(is_bookkeeping)
        };
        if !empty {
            return Ok(false);
        }
    }
    Ok(true)
}
