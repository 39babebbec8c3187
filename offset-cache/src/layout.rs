use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use kstate_api::{Error, Result, TaskId, validate_name};

use crate::{Listing, TaskContents};

/// The process's lock, beside the tasks' directories and never in one that is deleted.
pub(crate) const LOCK_FILE: &str = ".lock";
/// The process's identity: Kafka Streams' name and format.
pub(crate) const PROCESS_FILE: &str = "kafka-streams-process-metadata";
/// Where a store is moved before it is deleted, so that no half of one is ever found in its place.
pub(crate) const TRASH: &str = ".trash";

/// Where everything of one application is below a state directory (clause D1):
/// `<state directory>/<application id>/<subtopology>_<partition>/<store>/`, as in Kafka Streams.
///
/// It only looks: it owns nothing, locks nothing and makes nothing, so it can be used beside a process that owns the
/// directory. [`StateDirectory`](crate::StateDirectory) is that owner.
///
/// ```
/// use std::path::Path;
///
/// use kstate_api::TaskId;
/// use kstate_offset_cache::StateLayout;
///
/// # fn main() -> kstate_api::Result<()> {
/// let layout = StateLayout::new("state", "word-count")?;
/// let store = layout.store_directory(TaskId::new(0, 3), "counts")?;
/// assert_eq!(store, Path::new("state/word-count/0_3/counts"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateLayout {
    application: PathBuf,
}

impl StateLayout {
    /// The layout of the application `application_id` below `state_directory`. Neither need be there.
    ///
    /// # Errors
    /// `InvalidArgument` for an application id that is no legal name (clause D1).
    ///
    /// ```
    /// # use kstate_offset_cache::StateLayout;
    /// assert!(StateLayout::new("state", "word-count").is_ok());
    /// assert!(StateLayout::new("state", "../elsewhere").is_err());
    /// ```
    pub fn new(state_directory: impl AsRef<Path>, application_id: &str) -> Result<Self> {
        validate_name("application", application_id)?;
        Ok(Self { application: state_directory.as_ref().join(application_id) })
    }

    /// The application's directory, with all its tasks.
    ///
    /// ```
    /// # use kstate_offset_cache::StateLayout;
    /// let layout = StateLayout::new("state", "word-count").unwrap();
    /// assert_eq!(layout.application_directory(), std::path::Path::new("state/word-count"));
    /// ```
    #[must_use]
    pub fn application_directory(&self) -> &Path {
        &self.application
    }

    /// The directory of `task`.
    ///
    /// ```
    /// # use kstate_offset_cache::StateLayout;
    /// let layout = StateLayout::new("state", "word-count").unwrap();
    /// assert!(layout.task_directory(kstate_api::TaskId::new(1, 0)).ends_with("word-count/1_0"));
    /// ```
    #[must_use]
    pub fn task_directory(&self, task: TaskId) -> PathBuf {
        self.application.join(task.to_string())
    }

    /// The directory of the store `store` of `task`.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that is not legal, or that bookkeeping files have.
    ///
    /// ```
    /// # use kstate_offset_cache::StateLayout;
    /// let layout = StateLayout::new("state", "word-count").unwrap();
    /// assert!(layout.store_directory(kstate_api::TaskId::new(1, 0), "my store").is_err());
    /// ```
    pub fn store_directory(&self, task: TaskId, store: &str) -> Result<PathBuf> {
        validate_store_name(store)?;
        Ok(self.task_directory(task).join(store))
    }

    /// What is there: tasks that have something, tasks that have nothing, and what is none of ours (clause D4).
    ///
    /// A missing directory has nothing in it. A task's directory that cannot be read counts as one that has something.
    ///
    /// # Errors
    /// `Io` if the application's directory cannot be read.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use kstate_offset_cache::StateLayout;
    /// # let temporary = tempfile::tempdir()?;
    /// let layout = StateLayout::new(temporary.path(), "word-count")?;
    /// assert!(layout.list()?.tasks().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn list(&self) -> Result<Listing> {
        Listing::read(self)
    }

    /// What is in the directory of `task`; nothing if there is none.
    ///
    /// # Errors
    /// `Io` if it cannot be read.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use kstate_offset_cache::StateLayout;
    /// # let temporary = tempfile::tempdir()?;
    /// let layout = StateLayout::new(temporary.path(), "word-count")?;
    /// assert!(layout.contents(kstate_api::TaskId::new(0, 0))?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn contents(&self, task: TaskId) -> Result<TaskContents> {
        let directory = self.task_directory(task);
        TaskContents::read(&directory).map_err(|error| cannot("read", &directory, error))
    }

    /// Whether a process owns the directory just now. What it was an instant ago, it need not be now.
    ///
    /// # Errors
    /// `Io` if the lock file is there and cannot be read.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use kstate_offset_cache::{StateDirectory, StateLayout};
    /// # let temporary = tempfile::tempdir()?;
    /// let layout = StateLayout::new(temporary.path(), "word-count")?;
    /// assert!(!layout.is_owned()?);
    /// let owner = StateDirectory::open(temporary.path(), "word-count")?;
    /// assert!(layout.is_owned()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_owned(&self) -> Result<bool> {
        let path = self.application.join(LOCK_FILE);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(cannot("open", &path, error)),
        };
        // Shared, for an instant: an owner that comes just then looks twice.
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(cannot("look at the lock of", &path, error)),
        }
    }
}

/// The error of the operating system while doing `what` to `path`.
pub(crate) fn cannot(what: &str, path: &Path, error: io::Error) -> Error {
    Error::io(format_args!("cannot {what} {}", path.display()), error)
}

/// Removes the file `path`; one that is not there is removed already.
pub(crate) fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot("delete", path, error)),
        _ => Ok(()),
    }
}

/// Refuses a store's name that is not legal, or that a file of our own may have in a task's directory (clause D1).
pub(crate) fn validate_store_name(store: &str) -> Result<()> {
    validate_name("store", store)?;
    if is_bookkeeping(store) {
        let message = format!("store name `{store}` is one that bookkeeping files have");
        return Err(Error::new(kstate_api::ErrorKind::InvalidArgument, message));
    }
    Ok(())
}

/// Whether a file of that name says nothing of state (clause D4): locks, offsets of stores that do not keep their own,
/// and an engine's lock and log of events, which it leaves where it found no store.
pub(crate) fn is_bookkeeping(name: &str) -> bool {
    name.starts_with(".checkpoint")
        || name.as_bytes().ends_with(b".lock")
        || matches!(name, "LOCK" | "LOG")
        || name.starts_with("LOG.old.")
}
