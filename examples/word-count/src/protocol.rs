//! What is said between the process that feeds and those that count: one JSON object a line.

use serde::{Deserialize, Serialize};

use crate::job::Job;

/// What a counting process is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Command {
    /// First: count this.
    Count(Job),
    /// The source ends: one past the last offset of each partition. Whoever is told so tells the counts.
    End(Vec<i64>),
    /// Another process finishes the work.
    Leave,
}

/// What the counting side tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Event {
    /// Every task that the group gave it counts, or not any more.
    Running(bool),
    /// A task has come, and its store is restored.
    Restored(TaskRestored),
    /// A task is closed, and may be another process's soon.
    Closed(String),
    /// There is a copy of a task that another process has.
    Copied(String),
    /// It has counted the first chunk since it was started.
    Counting,
    /// A checkpoint was committed.
    Checkpoint(Vec<TaskCommitted>),
    /// Some of the words and their counts, each word once in all of them.
    Counts(Vec<(String, u64)>),
    /// All words were told.
    Finished,
    /// It has left the work to the other process.
    Left,
    /// It cannot go on, for this reason.
    Failed(String),
}

/// How one task's store came to the end of its changelog.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskRestored {
    pub(crate) task: String,
    /// The changelog offset that the store held; `None` if it held nothing of this changelog.
    pub(crate) held: Option<i64>,
    /// Records applied.
    pub(crate) applied: u64,
    /// Records left out since the group never committed their checkpoint.
    pub(crate) uncommitted: u64,
    /// The end of the changelog.
    pub(crate) end: i64,
    /// The next source record to count.
    pub(crate) source_next: i64,
}

/// What a checkpoint committed of one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskCommitted {
    pub(crate) task: String,
    /// The next source record to count.
    pub(crate) source_next: i64,
    /// The changelog offset in the store.
    pub(crate) changelog_offset: Option<i64>,
}
