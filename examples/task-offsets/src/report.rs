use kstate_api::ErrorKind;
use kstate_offset_cache::{AllLogEnds, CachedOffset, PartitionLag, StoreScan, TaskLag, TaskScan};
use serde::Serialize;

/// What was found, in the form that is printed as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) applications: Vec<ApplicationReport>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ApplicationReport {
    pub(crate) application: String,
    /// Whether a process owns the directory.
    pub(crate) in_use: bool,
    pub(crate) tasks: Vec<TaskReport>,
    /// Tasks that have a directory and no state.
    pub(crate) empty: Vec<String>,
    /// What is none of ours.
    pub(crate) unfamiliar: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct TaskReport {
    pub(crate) task: String,
    pub(crate) stores: Vec<StoreReport>,
    /// How many offsets the task has to restore; `None` if that is not known or was not asked for.
    pub(crate) lag: Option<u64>,
    /// Why nothing is known of the task, if it could not be looked at.
    pub(crate) error: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct StoreReport {
    pub(crate) store: String,
    pub(crate) changelog: String,
    /// The offset of the last record in the store.
    pub(crate) committed: Option<i64>,
    pub(crate) status: Status,
    /// What is wrong, in words.
    pub(crate) error: Option<String>,
    /// What the brokers say of the changelog, if they were asked.
    pub(crate) log: Option<LogReport>,
}

#[derive(Debug, Serialize)]
pub(crate) struct LogReport {
    /// The first offset that is still there.
    pub(crate) start: Option<i64>,
    /// One past the last offset.
    pub(crate) end: Option<i64>,
    /// How many offsets the store has to restore; `None` if that is not known.
    pub(crate) lag: Option<u64>,
    /// Whether the store is beyond the end: then it must start over.
    pub(crate) diverged: bool,
    /// Why the ends are not known: the topic is gone, say.
    pub(crate) error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// It can be resumed.
    Ok,
    /// There is a store, and nothing was ever committed for that changelog.
    NothingCommitted,
    /// It is open elsewhere, and its engine lets nobody else read.
    Locked,
    /// It must be wiped and restored.
    Corrupted,
    /// A newer version wrote it.
    NewerFormat,
    /// It cannot be read for another reason.
    Unreadable,
}

impl Status {
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NothingCommitted => "nothing committed",
            Self::Locked => "locked",
            Self::Corrupted => "corrupted",
            Self::NewerFormat => "newer format",
            Self::Unreadable => "unreadable",
        }
    }
}

impl TaskReport {
    pub(crate) fn new(scan: &TaskScan, ends: Option<&AllLogEnds>) -> Self {
        let stores: Vec<_> = scan.stores().iter().map(|store| StoreReport::new(store, ends)).collect();
        let lags = scan.stores().iter().map(|store| (&store.changelog, partition_lag(store, ends)));
        let lag = TaskLag::new(lags).total().offsets().filter(|_| !stores.is_empty());
        let why = scan.left_out().filter(|_| stores.is_empty());
        let error = why.map(|why| scan.error().map_or_else(|| why.to_string(), ToString::to_string));
        Self { task: scan.task().to_string(), stores, lag, error }
    }
}

impl StoreReport {
    fn new(scan: &StoreScan, ends: Option<&AllLogEnds>) -> Self {
        let (committed, status, error) = match &scan.committed {
            Ok(Some(offset)) => (Some(offset.get()), Status::Ok, None),
            Ok(None) => (None, Status::NothingCommitted, None),
            Err(error) => {
                let status = match error.kind() {
                    ErrorKind::Locked => Status::Locked,
                    ErrorKind::Corrupted => Status::Corrupted,
                    ErrorKind::NewerFormat => Status::NewerFormat,
                    _ => Status::Unreadable,
                };
                (None, status, Some(error.to_string()))
            }
        };
        let log = ends.map(|ends| LogReport::new(scan, ends));
        Self { store: scan.store.clone(), changelog: scan.changelog.to_string(), committed, status, error, log }
    }
}

impl LogReport {
    fn new(scan: &StoreScan, ends: &AllLogEnds) -> Self {
        let lag = partition_lag(scan, Some(ends));
        let known = ends.get(&scan.changelog);
        let error = ends.errors().find(|(partition, _)| **partition == scan.changelog);
        Self {
            start: known.map(|ends| ends.start.get()),
            end: known.map(|ends| ends.end.get()),
            lag: lag.offsets(),
            diverged: matches!(lag, PartitionLag::Diverged(_)),
            error: error.map(|(_, error)| error.to_string()),
        }
    }
}

/// A store that cannot be read has its whole log to restore.
fn partition_lag(scan: &StoreScan, ends: Option<&AllLogEnds>) -> PartitionLag {
    let committed = scan.committed.as_ref().ok().copied().flatten();
    let known = ends.and_then(|ends| ends.get(&scan.changelog));
    PartitionLag::new(&scan.changelog, Some(CachedOffset::from(committed)), known)
}
