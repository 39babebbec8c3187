use std::{
    collections::{BTreeMap, BTreeSet},
    sync::PoisonError,
    time::Instant,
};

use kstate_api::TaskId;

use crate::{
    sync::{Condvar, Mutex, lock},
    wait::Waiting,
};

/// Which tasks of one state directory have an owner in this process, and when the others were last released.
#[derive(Debug, Default)]
pub(crate) struct LockTable {
    tasks: Mutex<Tasks>,
    released: Condvar,
}

#[derive(Debug, Default)]
struct Tasks {
    held: BTreeSet<TaskId>,
    last_released: BTreeMap<TaskId, Instant>,
}

impl LockTable {
    /// Whether the caller owns `task` from now on, after waiting for it as `waiting` says.
    pub(crate) fn acquire(&self, task: TaskId, waiting: &Waiting<'_>) -> bool {
        let mut tasks = lock(&self.tasks);
        while !tasks.held.insert(task) {
            let Some(slice) = waiting.slice() else { return false };
            tasks = self.released.wait_timeout(tasks, slice).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Ends the ownership of `task`. The cleaner counts from here if the owner used it, and did not just look.
    pub(crate) fn release(&self, task: TaskId, used: bool) {
        let mut tasks = lock(&self.tasks);
        tasks.held.remove(&task);
        if used {
            tasks.last_released.insert(task, Instant::now());
        }
        drop(tasks);
        // All: they wait for different tasks.
        self.released.notify_all();
    }

    /// When an owner in this process last released `task` after use.
    pub(crate) fn last_released(&self, task: TaskId) -> Option<Instant> {
        lock(&self.tasks).last_released.get(&task).copied()
    }

    /// The tasks that have an owner.
    pub(crate) fn held(&self) -> Vec<TaskId> {
        lock(&self.tasks).held.iter().copied().collect()
    }

    /// Forgets when `task` was released: there is nothing of it any more.
    pub(crate) fn forget(&self, task: TaskId) {
        lock(&self.tasks).last_released.remove(&task);
    }
}
