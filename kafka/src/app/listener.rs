use kstate_api::TaskId;
use kstate_checkpoint::{Committed, RestoreProgress, Restored, StandbyUpdate};
use kstate_processing::RecordFailure;

use super::SourceRecord;

/// What an app is doing.
///
/// ```
/// use kstate_kafka::app::AppState;
///
/// assert!(AppState::Failed.has_ended() && !AppState::Running.has_ended());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppState {
    /// Not every thread is a member of the group yet.
    Joining,
    /// Some task is not ready yet; the others run.
    Restoring,
    /// Every task that this app has runs.
    Running,
    /// It was told to stop, and takes its last checkpoint.
    Stopping,
    /// It has stopped; everything is committed and closed.
    Stopped,
    /// It has ended with an error, which [`RunningApp::join`](super::RunningApp::join) returns.
    Failed,
}

impl AppState {
    /// Whether nothing happens any more.
    #[must_use]
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Stopped | Self::Failed)
    }
}

/// What a task is doing here.
///
/// ```
/// use kstate_kafka::app::TaskState;
///
/// assert_ne!(TaskState::Running, TaskState::Closed);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// It was assigned; its directory may still have another owner in this process.
    Assigned,
    /// Its stores are open and catch up with their changelogs.
    Restoring,
    /// It processes records.
    Running,
    /// Its stores are closed: it was given up or lost, or the app stops.
    Closed,
}

/// Hears what an app does. Every method does nothing by default; they are called by the app's threads, which wait, and
/// must not call the [`RunningApp`](super::RunningApp).
///
/// ```
/// use kstate_api::TaskId;
/// use kstate_kafka::app::{Listener, TaskState};
///
/// struct Print;
///
/// impl Listener for Print {
///     fn task_changed(&self, task: TaskId, state: TaskState) {
///         println!("task {task} is {state:?}");
///     }
/// }
/// ```
pub trait Listener: Send + Sync {
    /// The app's state has changed.
    fn app_changed(&self, from: AppState, to: AppState) {
        let _ = (from, to);
    }

    /// A task's state has changed.
    fn task_changed(&self, task: TaskId, state: TaskState) {
        let _ = (task, state);
    }

    /// A store of a task has come so far. The last one of a restore says where it ends.
    fn restore_progressed(&self, task: TaskId, store: &str, progress: RestoreProgress) {
        let _ = (task, store, progress);
    }

    /// A store of a task has been restored.
    fn restored(&self, task: TaskId, store: &str, restored: &Restored) {
        let _ = (task, store, restored);
    }

    /// A store of a standby, a copy of a task that runs elsewhere, has followed it so far.
    fn standby_updated(&self, task: TaskId, store: &str, update: &StandbyUpdate) {
        let _ = (task, store, update);
    }

    /// A record failed for good, and counts as done: [`App::start_workers`](super::App::start_workers).
    fn dead_lettered(&self, task: TaskId, record: &SourceRecord<'_>, failure: &RecordFailure) {
        let _ = (task, record, failure);
    }

    /// A thread has taken a checkpoint of its tasks.
    fn checkpointed(&self, tasks: &[TaskId], committed: &Committed) {
        let _ = (tasks, committed);
    }
}

/// Nobody listens.
pub(crate) struct Silence;

impl Listener for Silence {}
