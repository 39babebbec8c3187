use std::{ffi::OsString, num::NonZeroUsize, time::Duration};

use kstate_kafka::{Cluster, app::Guarantee};
use serde::{Deserialize, Serialize};

use crate::cli::{GuaranteeKind, StoreKind};

/// The number of the counting process that tells the counts at the end.
pub(crate) const FIRST_PROCESS: u32 = 1;

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
    pub(crate) commit_interval: Duration,
    pub(crate) guarantee: GuaranteeKind,
    pub(crate) threads: NonZeroUsize,
    /// Whether two processes share the tasks, and each has copies of the other's.
    pub(crate) standby: bool,
    /// Which of the processes this is.
    pub(crate) process: u32,
}

impl Job {
    /// How many processes do it.
    pub(crate) const fn processes(&self) -> usize {
        if self.standby { 2 } else { 1 }
    }

    /// The directory of the process below the state directory.
    pub(crate) fn directory_name(&self) -> String {
        format!("process-{}", self.process)
    }

    /// How the tasks are dealt out.
    pub(crate) const fn membership(&self) -> Membership {
        match (self.standby, self.embedded) {
            (true, _) => Membership::Dynamic,
            (false, true) => Membership::Alone,
            (false, false) => Membership::Static,
        }
    }

    pub(crate) const fn guarantee(&self) -> Guarantee {
        match self.guarantee {
            GuaranteeKind::AtLeastOnce => Guarantee::AtLeastOnce,
            GuaranteeKind::ExactlyOnce => Guarantee::ExactlyOnce,
        }
    }

    /// How to reach the brokers.
    pub(crate) fn cluster(&self) -> Cluster {
        if self.embedded {
            return Cluster::embedded(&self.brokers);
        }
        let cluster = Cluster::new(&self.brokers).with("heartbeat.interval.ms", "500");
        // How long a dead process's tasks wait to be taken over: the least that brokers allow by default.
        if self.standby { cluster.with("session.timeout.ms", "6000") } else { cluster }
    }
}

/// What a counting process is to its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Membership {
    /// Nothing: it has all tasks. An embedded cluster, which nobody else uses, would take 3 s to deal them out.
    Alone,
    /// A member that has its tasks back at once after a kill, since it comes back under its name.
    Static,
    /// A member whose tasks another process takes over after a kill.
    Dynamic,
}

/// The names that belong to one run, so that runs on one cluster do not meet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Names {
    pub(crate) source: String,
    pub(crate) changelog: String,
    /// The consumer group, which is the app's id.
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
