use std::{fs, io, path::PathBuf};

use kstate_api::{Result, TaskId};

use crate::{
    StateLayout,
    layout::{LOCK_FILE, PROCESS_FILE, TRASH, cannot},
};

/// What is in an application's directory.
///
/// ```
/// use kstate_api::TaskId;
/// use kstate_offset_cache::StateLayout;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let temporary = tempfile::tempdir()?;
/// let layout = StateLayout::new(temporary.path(), "word-count")?;
/// std::fs::create_dir_all(layout.task_directory(TaskId::new(0, 0)))?;
/// std::fs::create_dir_all(layout.store_directory(TaskId::new(0, 1), "counts")?)?;
/// std::fs::write(layout.store_directory(TaskId::new(0, 1), "counts")?.join("store.redb"), "")?;
/// std::fs::write(layout.application_directory().join("notes.txt"), "mine")?;
///
/// let listing = layout.list()?;
/// assert_eq!(listing.tasks(), [TaskId::new(0, 1)]);
/// assert_eq!(listing.empty(), [TaskId::new(0, 0)]);
/// assert!(listing.unfamiliar()[0].ends_with("notes.txt"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    tasks: Vec<TaskId>,
    empty: Vec<TaskId>,
    unfamiliar: Vec<PathBuf>,
}

/// Whether the application's directory has something of that name for bookkeeping.
fn is_ours(name: &str) -> bool {
    name == LOCK_FILE || name == TRASH || name.starts_with(PROCESS_FILE)
}

impl Listing {
    pub(crate) fn read(layout: &StateLayout) -> Result<Self> {
        let directory = layout.application_directory();
        let failed = |error| cannot("read", directory, error);
        let mut listing = Self::default();
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(listing),
            Err(error) => return Err(failed(error)),
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let (name, kind) = (entry.file_name(), entry.file_type().map_err(failed)?);
            let name = name.to_str().unwrap_or_default();
            match name.parse() {
                Ok(task) if kind.is_dir() => listing.add(layout, task),
                _ if is_ours(name) => {}
                _ => listing.unfamiliar.push(entry.path()),
            }
        }
        listing.tasks.sort_unstable();
        listing.empty.sort_unstable();
        listing.unfamiliar.sort_unstable();
        Ok(listing)
    }

    fn add(&mut self, layout: &StateLayout, task: TaskId) {
        match layout.contents(task) {
            Ok(contents) => {
                let tasks = if contents.is_empty() { &mut self.empty } else { &mut self.tasks };
                tasks.push(task);
                self.unfamiliar.extend_from_slice(contents.unfamiliar());
            }
            // Whoever opens it will say what is wrong with it.
            Err(error) => {
                tracing::warn!(%task, %error, "cannot look into a task's directory");
                self.tasks.push(task);
            }
        }
    }

    /// The tasks of which any store has anything, in order.
    ///
    /// ```
    /// # use kstate_offset_cache::Listing;
    /// assert!(Listing::default().tasks().is_empty());
    /// ```
    #[must_use]
    pub fn tasks(&self) -> &[TaskId] {
        &self.tasks
    }

    /// The tasks that have a directory and no state in it (clause D4), in order.
    ///
    /// ```
    /// # use kstate_offset_cache::Listing;
    /// assert!(Listing::default().empty().is_empty());
    /// ```
    #[must_use]
    pub fn empty(&self) -> &[TaskId] {
        &self.empty
    }

    /// Files and directories, among the tasks and in their directories, that are none of ours. They are never deleted.
    ///
    /// ```
    /// # use kstate_offset_cache::Listing;
    /// assert!(Listing::default().unfamiliar().is_empty());
    /// ```
    #[must_use]
    pub fn unfamiliar(&self) -> &[PathBuf] {
        &self.unfamiliar
    }
}
