use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use kstate_api::{Error, ErrorKind, Result, TaskId};
use uuid::Uuid;

use crate::{
    CleanUp, StateLayout, TaskLock, Wait,
    layout::{LOCK_FILE, PROCESS_FILE, cannot},
    lock_table::LockTable,
    permissions, process_id,
    process_lock::ProcessLock,
    removal,
};

/// An application's directory, which this process owns (clauses D1 to D4).
///
/// - **One process.** A second one, or a second open in this one, is `Locked` at once; waiting is opt-in, bounded and
///   can be cancelled. The operating system frees the lock of a process that dies.
/// - **One owner for each task** in the process: a [`TaskLock`], which frees itself.
/// - **Nothing unfamiliar is deleted.** What is deleted, by [`wipe`](Self::wipe) and [`clean`](Self::clean), disappears
///   in one step for each store, under the task's lock.
/// - **Owner only.** Directories and files are made for their owner alone, as far as the file system can; else a warning
///   is logged.
///
/// Clones are the same directory. It is given free when the last one and the last lock are dropped.
///
/// ```
/// use std::time::Duration;
///
/// use kstate_api::{ErrorKind, TaskId};
/// use kstate_offset_cache::{OffsetCache, StateDirectory};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let temporary = tempfile::tempdir()?;
/// let directory = StateDirectory::open(temporary.path(), "word-count")?;
/// let second = StateDirectory::open(temporary.path(), "word-count");
/// assert_eq!(second.unwrap_err().kind(), ErrorKind::Locked);
///
/// let lock = directory.lock(TaskId::new(0, 1))?;
/// let store = lock.store_directory("counts")?;
/// std::fs::write(store.join("store.redb"), "records")?;
/// drop(lock);
///
/// // The cleaner takes the task out of the cache before it deletes its files.
/// let cache = OffsetCache::new();
/// let cleaned = directory.clean(Duration::from_secs(600), |lock| cache.forget(lock))?;
/// assert!(cleaned.removed().is_empty(), "released just now");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct StateDirectory(Arc<Owned>);

/// What all clones and locks share, and with them the ownership.
#[derive(Debug)]
pub(crate) struct Owned {
    layout: StateLayout,
    locks: LockTable,
    process_id: Uuid,
    process_lock: ProcessLock,
}

impl Owned {
    pub(crate) const fn layout(&self) -> &StateLayout {
        &self.layout
    }

    pub(crate) const fn locks(&self) -> &LockTable {
        &self.locks
    }
}

impl StateDirectory {
    /// Takes the directory of the application `application_id` below `state_directory`. Both are made if they are not
    /// there.
    ///
    /// # Errors
    /// `Locked` if another owns it, `InvalidArgument` for an application id that is no legal name, `Unsupported` if the
    /// file system has no locks, `Io` or `DiskFull` if it cannot be made, read or written.
    ///
    /// ```
    /// # use kstate_offset_cache::StateDirectory;
    /// # let temporary = tempfile::tempdir().unwrap();
    /// let directory = StateDirectory::open(temporary.path(), "word-count").unwrap();
    /// ```
    pub fn open(state_directory: impl AsRef<Path>, application_id: &str) -> Result<Self> {
        Self::open_within(state_directory, application_id, &Wait::not())
    }

    /// The same, after waiting for another owner as `wait` says.
    ///
    /// # Errors
    /// As [`open`](Self::open); `Locked` if the owner is still there at the end.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kstate_offset_cache::{StateDirectory, Wait};
    /// # let temporary = tempfile::tempdir().unwrap();
    /// let wait = Wait::up_to(Duration::from_secs(10));
    /// let directory = StateDirectory::open_within(temporary.path(), "word-count", &wait).unwrap();
    /// ```
    pub fn open_within(state_directory: impl AsRef<Path>, application_id: &str, wait: &Wait) -> Result<Self> {
        let layout = StateLayout::new(state_directory, application_id)?;
        let directory = layout.application_directory();
        permissions::make_directory(directory).map_err(|error| cannot("make", directory, error))?;
        permissions::restrict(directory);
        let process_lock = ProcessLock::take(&directory.join(LOCK_FILE), wait)?;
        let process_id = process_id::load_or_make(&directory.join(PROCESS_FILE))?;
        removal::empty_trash(&layout);
        tracing::info!(directory = %directory.display(), %process_id, "took the state directory");
        let opened = Self(Arc::new(Owned { layout, locks: LockTable::default(), process_id, process_lock }));
        if opened.0.process_lock.predecessor_died() {
            opened.release_what_died()?;
        }
        Ok(opened)
    }

    /// The process before this one died, and nobody knows when it used what it had: every task counts as released now,
    /// to this process and to those to come.
    fn release_what_died(&self) -> Result<()> {
        let listing = self.0.layout.list()?;
        listing.tasks().iter().chain(listing.empty()).try_for_each(|task| self.lock(*task).map(drop))
    }

    /// Where everything is.
    ///
    /// ```
    /// # use kstate_offset_cache::StateDirectory;
    /// # let temporary = tempfile::tempdir().unwrap();
    /// let directory = StateDirectory::open(temporary.path(), "word-count").unwrap();
    /// assert!(directory.layout().application_directory().ends_with("word-count"));
    /// ```
    #[must_use]
    pub fn layout(&self) -> &StateLayout {
        &self.0.layout
    }

    /// The identity of whoever uses this directory: the same after each restart, so that a group recognises a member
    /// that comes back to its state. It is kept in the file, the name and the format that Kafka Streams has for it.
    ///
    /// ```
    /// # use kstate_offset_cache::StateDirectory;
    /// # let temporary = tempfile::tempdir().unwrap();
    /// let id = StateDirectory::open(temporary.path(), "word-count").unwrap().process_id();
    /// assert_eq!(StateDirectory::open(temporary.path(), "word-count").unwrap().process_id(), id);
    /// ```
    #[must_use]
    pub fn process_id(&self) -> Uuid {
        self.0.process_id
    }

    /// Takes `task`, whether it has a directory yet or not.
    ///
    /// # Errors
    /// `Locked` if another in this process has it; `Io` if somebody deleted or replaced the directory since it was
    /// opened, for another process may own it then.
    ///
    /// ```
    /// # use kstate_api::TaskId;
    /// # use kstate_offset_cache::StateDirectory;
    /// # let temporary = tempfile::tempdir().unwrap();
    /// let directory = StateDirectory::open(temporary.path(), "word-count").unwrap();
    /// let lock = directory.lock(TaskId::new(0, 1)).unwrap();
    /// assert!(directory.lock(TaskId::new(0, 1)).is_err());
    /// ```
    pub fn lock(&self, task: TaskId) -> Result<TaskLock> {
        self.lock_within(task, &Wait::not())
    }

    /// The same, after waiting for another owner as `wait` says.
    ///
    /// # Errors
    /// As [`lock`](Self::lock); `Locked` if the owner still has it at the end.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kstate_api::TaskId;
    /// # use kstate_offset_cache::{StateDirectory, Wait};
    /// # let temporary = tempfile::tempdir().unwrap();
    /// let directory = StateDirectory::open(temporary.path(), "word-count").unwrap();
    /// let lock = directory.lock_within(TaskId::new(0, 1), &Wait::up_to(Duration::from_secs(1))).unwrap();
    /// ```
    pub fn lock_within(&self, task: TaskId, wait: &Wait) -> Result<TaskLock> {
        self.take(task, wait, true)
    }

    /// Takes `task` without using it: the cleaner goes on counting.
    pub(crate) fn lock_to_look(&self, task: TaskId) -> Result<TaskLock> {
        self.take(task, &Wait::not(), false)
    }

    fn take(&self, task: TaskId, wait: &Wait, used: bool) -> Result<TaskLock> {
        let waiting = wait.begin();
        if !self.0.locks.acquire(task, &waiting) {
            let message = format!("task {task} has another owner in this process{}", waiting.verdict());
            return Err(Error::new(ErrorKind::Locked, message));
        }
        // From here on whatever fails gives it free again; nothing was used yet.
        let lock = TaskLock::new(Arc::clone(&self.0), task, false);
        self.0.process_lock.check()?;
        Ok(lock.with_use(used))
    }

    /// The tasks that have an owner in this process just now, in order.
    ///
    /// ```
    /// # use kstate_api::TaskId;
    /// # use kstate_offset_cache::StateDirectory;
    /// # let temporary = tempfile::tempdir().unwrap();
    /// let directory = StateDirectory::open(temporary.path(), "word-count").unwrap();
    /// let lock = directory.lock(TaskId::new(0, 1)).unwrap();
    /// assert_eq!(directory.locked(), [TaskId::new(0, 1)]);
    /// ```
    #[must_use]
    pub fn locked(&self) -> Vec<TaskId> {
        self.0.locks.held()
    }

    /// Deletes everything of `task`, under its lock: see [`TaskLock::wipe`], which a task's owner calls.
    ///
    /// # Errors
    /// `Locked` if the task has an owner; else as [`TaskLock::wipe`].
    ///
    /// ```
    /// # use kstate_api::TaskId;
    /// # use kstate_offset_cache::{OffsetCache, StateDirectory};
    /// # let temporary = tempfile::tempdir().unwrap();
    /// # let cache = OffsetCache::new();
    /// let directory = StateDirectory::open(temporary.path(), "word-count").unwrap();
    /// assert!(directory.wipe(TaskId::new(0, 1), |lock| cache.forget(lock)).unwrap().is_empty());
    /// ```
    pub fn wipe(&self, task: TaskId, before: impl FnOnce(&TaskLock)) -> Result<Vec<PathBuf>> {
        self.lock_to_look(task)?.wipe(before)
    }

    /// Deletes the tasks that nobody has used for longer than `unused_for` and nobody owns (clause D3).
    ///
    /// The time is counted from a task's last release by whoever used it, in this process or an earlier one; the start-up
    /// scan does not count as use. If a process died, nobody knows when it used what it had, so nothing is older than the
    /// open that came next. It is checked under the task's lock, and `before` is called with that lock to take the task
    /// out of the cache before its files go.
    ///
    /// A task that cannot be deleted is reported and does not keep the others.
    ///
    /// # Errors
    /// `Io` if the directory cannot be read, or somebody deleted or replaced it.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kstate_offset_cache::{OffsetCache, StateDirectory};
    /// # let temporary = tempfile::tempdir().unwrap();
    /// # let cache = OffsetCache::new();
    /// let directory = StateDirectory::open(temporary.path(), "word-count").unwrap();
    /// let cleaned = directory.clean(Duration::from_secs(600), |lock| cache.forget(lock)).unwrap();
    /// assert!(cleaned.removed().is_empty());
    /// ```
    pub fn clean(&self, unused_for: Duration, before: impl FnMut(&TaskLock)) -> Result<CleanUp> {
        self.clean_until(unused_for, before, || false)
    }

    /// The same, which begins no further task once `is_stopped` says so.
    pub(crate) fn clean_until(
        &self,
        unused_for: Duration,
        before: impl FnMut(&TaskLock),
        is_stopped: impl Fn() -> bool,
    ) -> Result<CleanUp> {
        self.0.process_lock.check()?;
        CleanUp::run(self, unused_for, before, is_stopped)
    }

    /// How long nobody has used `task`.
    pub(crate) fn unused_for(&self, task: TaskId) -> Result<Duration> {
        if let Some(released) = self.0.locks.last_released(task) {
            return Ok(released.elapsed());
        }
        let directory = self.0.layout.task_directory(task);
        let modified = fs::metadata(&directory).and_then(|metadata| metadata.modified());
        let modified = modified.map_err(|error| cannot("read the time of", &directory, error))?;
        // A time to come is that of a clock that was wrong.
        Ok(SystemTime::now().duration_since(modified).unwrap_or_default())
    }

    pub(crate) fn forget_release(&self, task: TaskId) {
        self.0.locks.forget(task);
    }
}
