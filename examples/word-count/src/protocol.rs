//! What is said between the process that feeds and the one that counts: one JSON object a line.

use std::ffi::OsString;

use kstate_kafka::Cluster;
use serde::{Deserialize, Serialize};

use crate::cli::StoreKind;

/// What is to be counted and how.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) brokers: String,
    /// Whether the brokers are those of an embedded cluster, with its small logs.
    pub(crate) embedded: bool,
    pub(crate) names: Names,
    pub(crate) partitions: i32,
    pub(crate) store: StoreKind,
    pub(crate) state_dir: OsString,
    pub(crate) commit_interval_ms: u64,
}

impl Job {
    /// How to reach the brokers.
    pub(crate) fn cluster(&self) -> Cluster {
        if self.embedded { Cluster::embedded(&self.brokers) } else { Cluster::new(&self.brokers) }
    }
}

/// The names that belong to one run, so that runs on one cluster do not meet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Names {
    pub(crate) source: String,
    pub(crate) changelog: String,
    pub(crate) group: String,
}

impl Names {
    pub(crate) fn of_run(run: u64) -> Self {
        Self {
            source: format!("word-count-{run:016x}-input"),
            changelog: format!("word-count-{run:016x}-counts-changelog"),
            group: format!("word-count-{run:016x}"),
        }
    }
}

/// What the counting process is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Command {
    /// First: count this.
    Count(Job),
    /// The source ends: one past the last offset of each partition.
    End(Vec<i64>),
}

/// What the counting side tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Event {
    /// Its stores are restored.
    Restored(Vec<TaskRestored>),
    /// It has counted the first chunk since it was started.
    Counting,
    /// A checkpoint was committed.
    Checkpoint(Vec<TaskCommitted>),
    /// Some of the words and their counts, each word once in all of them.
    Counts(Vec<(String, u64)>),
    /// All words were told.
    Finished,
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
