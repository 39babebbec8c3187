use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use kstate_api::{Error, ErrorKind, Result, TaskId};
use kstate_offset_cache::Wait;

use super::{definition::Definition, task_stores::TaskStores};

/// The copies that this process has of tasks that run elsewhere.
///
/// One thread keeps them up to date. A thread that is given a task takes its copy over, stores and all.
#[derive(Default)]
pub(crate) struct Standbys(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// The copies that nobody works on at the moment.
    idle: BTreeMap<TaskId, TaskStores>,
    /// The task whose copy is being opened or updated.
    busy: Option<TaskId>,
    /// The tasks that threads of this process have. No more than a hint: whoever has a task has its lock.
    active: BTreeSet<TaskId>,
}

impl Standbys {
    /// The stores of `task`, for a thread that was given it and has it from now on: those of its copy, or opened from its
    /// directory.
    ///
    /// # Errors
    /// `Locked` as long as its copy is worked on, which ends soon now, or another thread of this process has it; or what
    /// opening met.
    pub(crate) fn take_stores(&self, definition: &Definition, task: TaskId) -> Result<TaskStores> {
        match self.claim(task)? {
            Some(copy) => Ok(copy),
            None => TaskStores::open(definition, definition.directory.lock_within(task, &Wait::not())?),
        }
    }

    fn claim(&self, task: TaskId) -> Result<Option<TaskStores>> {
        let mut inner = self.inner();
        inner.active.insert(task);
        if inner.busy == Some(task) {
            return Err(Error::new(ErrorKind::Locked, format!("the standby of task {task} is at work")));
        }
        Ok(inner.idle.remove(&task))
    }

    /// No thread of this process has `task` any more.
    pub(crate) fn release(&self, task: TaskId) {
        self.inner().active.remove(&task);
    }

    /// The turn to open a copy of `task`, if there is none and the task does not run here.
    pub(super) fn begin_open(&self, task: TaskId) -> Option<Turn<'_>> {
        let mut inner = self.inner();
        if inner.active.contains(&task) || inner.idle.contains_key(&task) {
            return None;
        }
        inner.busy = Some(task);
        Some(Turn(self))
    }

    /// The copy of `task` to work on, if there is one.
    pub(super) fn take(&self, task: TaskId) -> Option<(Turn<'_>, TaskStores)> {
        let mut inner = self.inner();
        let copy = inner.idle.remove(&task)?;
        inner.busy = Some(task);
        Some((Turn(self), copy))
    }

    /// The tasks of which there are copies, in order.
    pub(super) fn tasks(&self) -> Vec<TaskId> {
        self.inner().idle.keys().copied().collect()
    }

    /// # Errors
    /// `Aborted` once a thread of this process has claimed `task`.
    pub(super) fn check(&self, task: TaskId) -> Result<()> {
        if self.inner().active.contains(&task) {
            return Err(Error::new(ErrorKind::Aborted, format!("task {task} runs here from now on")));
        }
        Ok(())
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Every change is whole before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The work on one copy, until it is dropped; a claim of its task waits so long. There is one at a time.
#[must_use]
pub(super) struct Turn<'s>(&'s Standbys);

impl Turn<'_> {
    /// Ends it: `copy` is there for whoever claims its task.
    pub(super) fn put(self, copy: TaskStores) {
        self.0.inner().idle.insert(copy.task(), copy);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.inner().busy = None;
    }
}

impl fmt::Debug for Standbys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standbys").field("tasks", &self.tasks()).finish_non_exhaustive()
    }
}
