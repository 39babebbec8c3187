use std::{path::PathBuf, time::Duration};

use kstate_api::{Error, ErrorKind, Result, TaskId};

use crate::{StateDirectory, TaskLock};

/// What one clean-up did: see [`StateDirectory::clean`].
///
/// ```
/// use std::time::Duration;
///
/// use kstate_api::TaskId;
/// use kstate_offset_cache::{OffsetCache, StateDirectory};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let temporary = tempfile::tempdir()?;
/// # let cache = OffsetCache::new();
/// let directory = StateDirectory::open(temporary.path(), "word-count")?;
/// directory.lock(TaskId::new(0, 1))?.store_directory("counts")?;
/// let owner = directory.lock(TaskId::new(0, 2))?;
/// owner.store_directory("counts")?;
///
/// let cleaned = directory.clean(Duration::ZERO, |lock| cache.forget(lock))?;
/// assert_eq!(cleaned.removed(), [TaskId::new(0, 1)]);
/// assert_eq!(cleaned.owned(), [TaskId::new(0, 2)]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct CleanUp {
    removed: Vec<TaskId>,
    owned: Vec<TaskId>,
    failed: Vec<(TaskId, Error)>,
    unfamiliar: Vec<PathBuf>,
}

impl CleanUp {
    pub(crate) fn run(
        directory: &StateDirectory,
        unused_for: Duration,
        mut before: impl FnMut(&TaskLock),
        is_stopped: impl Fn() -> bool,
    ) -> Result<Self> {
        let mut clean_up = Self::default();
        let listing = directory.layout().list()?;
        listing.unfamiliar().clone_into(&mut clean_up.unfamiliar);
        for task in listing.tasks().iter().chain(listing.empty()).copied() {
            if is_stopped() {
                break;
            }
            match clean(directory, task, unused_for, &mut before) {
                Ok(true) => clean_up.removed.push(task),
                Ok(false) => {}
                Err(error) if error.kind() == ErrorKind::Locked => clean_up.owned.push(task),
                Err(error) => {
                    tracing::warn!(%task, %error, "cannot delete the state of a task that nobody uses");
                    clean_up.failed.push((task, error));
                }
            }
        }
        Ok(clean_up)
    }

    /// The tasks whose stores were deleted.
    ///
    /// ```
    /// # use kstate_offset_cache::CleanUp;
    /// assert!(CleanUp::default().removed().is_empty());
    /// ```
    #[must_use]
    pub fn removed(&self) -> &[TaskId] {
        &self.removed
    }

    /// The tasks that have an owner, and so were not looked at.
    ///
    /// ```
    /// # use kstate_offset_cache::CleanUp;
    /// assert!(CleanUp::default().owned().is_empty());
    /// ```
    #[must_use]
    pub fn owned(&self) -> &[TaskId] {
        &self.owned
    }

    /// The tasks that were to be deleted and could not be, each with its error. What is left of them is whole stores;
    /// they are no longer in the cache.
    ///
    /// ```
    /// # use kstate_offset_cache::CleanUp;
    /// assert!(CleanUp::default().failed().is_empty());
    /// ```
    #[must_use]
    pub fn failed(&self) -> &[(TaskId, Error)] {
        &self.failed
    }

    /// What was found that is none of ours, and so was left.
    ///
    /// ```
    /// # use kstate_offset_cache::CleanUp;
    /// assert!(CleanUp::default().unfamiliar().is_empty());
    /// ```
    #[must_use]
    pub fn unfamiliar(&self) -> &[PathBuf] {
        &self.unfamiliar
    }
}

/// Deletes `task` if it is old enough; whether it did.
fn clean(
    directory: &StateDirectory,
    task: TaskId,
    unused_for: Duration,
    before: &mut impl FnMut(&TaskLock),
) -> Result<bool> {
    let lock = directory.lock_to_look(task)?;
    // Under the lock: whoever had it has told when, and nobody can take it now (case HO-35).
    if directory.unused_for(task)? <= unused_for {
        return Ok(false);
    }
    if directory.layout().contents(task)?.is_only_unfamiliar() {
        return Ok(false);
    }
    lock.wipe(before)?;
    directory.forget_release(task);
    Ok(true)
}
