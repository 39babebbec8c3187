use std::{
    fmt,
    fs::File,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::SystemTime,
};

use kstate_api::{Result, TaskId};

use crate::{
    known_offsets::KnownOffsets,
    layout::{cannot, validate_store_name},
    permissions, removal,
    state_directory::Owned,
    sync::{Mutex, lock},
};

/// The ownership of one task in a state directory (clause D2). Dropping it gives the task free.
///
/// The process stays the directory's owner as long as any of these lives. Whoever has it may open the task's stores, and
/// tells the [`OffsetCache`](crate::OffsetCache) what becomes of them. Close the stores before dropping it.
///
/// ```
/// use kstate_api::TaskId;
/// use kstate_offset_cache::StateDirectory;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let temporary = tempfile::tempdir()?;
/// let directory = StateDirectory::open(temporary.path(), "word-count")?;
/// let lock = directory.lock(TaskId::new(0, 1))?;
/// assert_eq!(lock.task(), TaskId::new(0, 1));
/// assert!(lock.store_directory("counts")?.ends_with("word-count/0_1/counts"));
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it gives the task free"]
pub struct TaskLock {
    owned: Arc<Owned>,
    task: TaskId,
    /// Whether its owner may use the task's stores, not only look at them. The cleaner counts from the last use.
    used: bool,
    /// The caches that call a store of the task running: it does so no longer than this lives.
    runs_in: Mutex<Vec<Weak<KnownOffsets>>>,
}

impl TaskLock {
    pub(crate) fn new(owned: Arc<Owned>, task: TaskId, used: bool) -> Self {
        Self { owned, task, used, runs_in: Mutex::default() }
    }

    pub(crate) const fn with_use(mut self, used: bool) -> Self {
        self.used = used;
        self
    }

    /// The task that is owned.
    ///
    /// ```
    /// # use kstate_api::TaskId;
    /// # let temporary = tempfile::tempdir().unwrap();
    /// # let directory = kstate_offset_cache::StateDirectory::open(temporary.path(), "app").unwrap();
    /// assert_eq!(directory.lock(TaskId::new(0, 1)).unwrap().task(), TaskId::new(0, 1));
    /// ```
    #[must_use]
    pub const fn task(&self) -> TaskId {
        self.task
    }

    /// The directory for the task's store `store`, made for its owner only: what to open the store with.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that no store can have; `Io` or `DiskFull` if it cannot be made.
    ///
    /// ```
    /// # use kstate_api::TaskId;
    /// # let temporary = tempfile::tempdir().unwrap();
    /// # let directory = kstate_offset_cache::StateDirectory::open(temporary.path(), "app").unwrap();
    /// let lock = directory.lock(TaskId::new(0, 1)).unwrap();
    /// assert!(lock.store_directory("counts").unwrap().is_dir());
    /// assert!(lock.store_directory("../counts").is_err());
    /// ```
    pub fn store_directory(&self, store: &str) -> Result<PathBuf> {
        validate_store_name(store)?;
        let directory = self.directory().join(store);
        permissions::make_directory(&directory).map_err(|error| cannot("make", &directory, error))?;
        permissions::restrict(&self.directory());
        Ok(directory)
    }

    /// Deletes everything of the task: its stores and what says how far they have come. They must be closed.
    ///
    /// `before` is called first, to take the task out of the cache before its files go (clause D3). What is unfamiliar is
    /// left, and returned.
    ///
    /// # Errors
    /// `Io` if something cannot be deleted. What is left is whole stores.
    ///
    /// ```
    /// # use kstate_api::TaskId;
    /// # use kstate_offset_cache::{OffsetCache, StateDirectory};
    /// # let temporary = tempfile::tempdir().unwrap();
    /// # let directory = StateDirectory::open(temporary.path(), "app").unwrap();
    /// let cache = OffsetCache::new();
    /// let lock = directory.lock(TaskId::new(0, 1)).unwrap();
    /// let path = lock.store_directory("counts").unwrap();
    /// let left = lock.wipe(|lock| cache.forget(lock)).unwrap();
    /// assert!(left.is_empty() && !path.exists());
    /// ```
    pub fn wipe(&self, before: impl FnOnce(&Self)) -> Result<Vec<PathBuf>> {
        before(self);
        let left = removal::remove_task(self.owned.layout(), self.task)?;
        tracing::info!(task = %self.task, "wiped the task's state");
        Ok(left)
    }

    /// `known` calls a store of the task running from now on.
    pub(crate) fn runs_in(&self, known: &Arc<KnownOffsets>) {
        let mut caches = lock(&self.runs_in);
        let weak = Arc::downgrade(known);
        if !caches.iter().any(|cache| cache.ptr_eq(&weak)) {
            caches.push(weak);
        }
    }

    fn directory(&self) -> PathBuf {
        self.owned.layout().task_directory(self.task)
    }
}

impl Drop for TaskLock {
    fn drop(&mut self) {
        for cache in lock(&self.runs_in).iter().filter_map(Weak::upgrade) {
            cache.end_running(self.task);
        }
        if self.used {
            // For the processes to come; this one remembers the moment itself.
            touch(&self.directory());
        }
        self.owned.locks().release(self.task, self.used);
    }
}

impl fmt::Debug for TaskLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskLock").field("task", &self.task).field("used", &self.used).finish_non_exhaustive()
    }
}

/// Makes now the time when `directory` was last modified, if there is such a directory and the system lets us.
fn touch(directory: &Path) {
    let touched = File::open(directory).and_then(|opened| opened.set_modified(SystemTime::now()));
    if let Err(error) = touched {
        tracing::trace!(directory = %directory.display(), %error, "cannot keep the time of a task's release");
    }
}
