use std::{path::PathBuf, time::Duration};

use kstate_api::TaskId;

use crate::{LeftOut, TaskScan};

/// What a [`StartupScan`](crate::StartupScan) found: every task that has anything on the disk, the ones it left out with
/// the reason.
///
/// ```
/// use kstate_offset_cache::ScanReport;
///
/// fn tell(report: &ScanReport) {
///     for task in report.left_out() {
///         let error = task.error().map(ToString::to_string).unwrap_or_default();
///         eprintln!("task {} is left out: {}: {error}", task.task(), task.left_out().unwrap());
///     }
/// }
/// ```
#[derive(Debug, Default)]
pub struct ScanReport {
    tasks: Vec<TaskScan>,
    unfamiliar: Vec<PathBuf>,
    duration: Duration,
}

impl ScanReport {
    pub(crate) fn new(mut tasks: Vec<TaskScan>, unfamiliar: Vec<PathBuf>, duration: Duration) -> Self {
        tasks.sort_unstable_by_key(TaskScan::task);
        Self { tasks, unfamiliar, duration }
    }

    /// All tasks that have anything on the disk, in order.
    ///
    /// ```
    /// # use kstate_offset_cache::ScanReport;
    /// assert!(ScanReport::default().tasks().is_empty());
    /// ```
    #[must_use]
    pub fn tasks(&self) -> &[TaskScan] {
        &self.tasks
    }

    /// What was found of `task`; `None` if it has nothing on the disk.
    ///
    /// ```
    /// # use kstate_api::TaskId;
    /// # use kstate_offset_cache::ScanReport;
    /// assert!(ScanReport::default().task(TaskId::new(0, 0)).is_none());
    /// ```
    #[must_use]
    pub fn task(&self, task: TaskId) -> Option<&TaskScan> {
        self.tasks.iter().find(|scan| scan.task() == task)
    }

    /// The tasks that were left out of the cache, in order.
    ///
    /// ```
    /// # use kstate_offset_cache::ScanReport;
    /// assert_eq!(ScanReport::default().left_out().count(), 0);
    /// ```
    pub fn left_out(&self) -> impl Iterator<Item = &TaskScan> {
        self.tasks.iter().filter(|task| task.left_out().is_some())
    }

    /// Whether it came to every task: neither its deadline nor a cancellation ended it before.
    ///
    /// ```
    /// # use kstate_offset_cache::ScanReport;
    /// assert!(ScanReport::default().is_complete());
    /// ```
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let cut_off = |task: &TaskScan| matches!(task.left_out(), Some(LeftOut::DeadlinePassed | LeftOut::Cancelled));
        !self.tasks.iter().any(cut_off)
    }

    /// Files and directories that are none of ours. They are left as they are.
    ///
    /// ```
    /// # use kstate_offset_cache::ScanReport;
    /// assert!(ScanReport::default().unfamiliar().is_empty());
    /// ```
    #[must_use]
    pub fn unfamiliar(&self) -> &[PathBuf] {
        &self.unfamiliar
    }

    /// How long the scan took.
    ///
    /// ```
    /// # use kstate_offset_cache::ScanReport;
    /// assert!(ScanReport::default().duration().is_zero());
    /// ```
    #[must_use]
    pub const fn duration(&self) -> Duration {
        self.duration
    }
}

/// How far a scan has come, as a [`StartupScan::progress`](crate::StartupScan::progress) hears it after each task.
///
/// ```
/// use kstate_offset_cache::ScanProgress;
///
/// fn show(progress: ScanProgress) {
///     eprintln!("{} of {} tasks ({} just now)", progress.done, progress.total, progress.task);
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanProgress {
    /// How many tasks are done. With several threads, two calls may overtake each other.
    pub done: usize,
    /// How many there are.
    pub total: usize,
    /// The task that is done.
    pub task: TaskId,
}
