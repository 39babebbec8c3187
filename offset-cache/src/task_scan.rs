use kstate_api::{Error, Offset, TaskId, TopicPartition};

/// What the scan found in one store.
///
/// ```
/// use kstate_offset_cache::StoreScan;
///
/// fn describe(store: &StoreScan) -> String {
///     match &store.committed {
///         Ok(Some(offset)) => format!("{} is at {offset} of {}", store.store, store.changelog),
///         Ok(None) => format!("{} has nothing committed", store.store),
///         Err(error) => format!("{} cannot be read: {error}", store.store),
///     }
/// }
/// ```
#[derive(Debug)]
pub struct StoreScan {
    /// The store's name.
    pub store: String,
    /// The changelog partition it is logged to.
    pub changelog: TopicPartition,
    /// The offset it has committed, `None` if there is none, or why it cannot be read: `Corrupted`, `Locked`,
    /// `NewerFormat`, or what else the engine met.
    pub committed: Result<Option<Offset>, Error>,
}

/// Why the scan left a task out of the cache.
///
/// ```
/// use kstate_offset_cache::LeftOut;
///
/// assert_eq!(LeftOut::Cancelled.to_string(), "the scan was cancelled before it came to it");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LeftOut {
    /// A store of it cannot be read: see [`TaskScan::error`].
    Unreadable,
    /// It has an owner in this process, which knows more.
    Owned,
    /// Its directory could not be locked or listed: see [`TaskScan::error`].
    Inaccessible,
    /// The topology has no persistent store with a changelog in its sub-topology, so nothing in it can be resumed.
    NotInTopology,
    /// It was deleted between the listing and its turn.
    Gone,
    /// The deadline passed before it was its turn.
    DeadlinePassed,
    /// The scan was cancelled before it was its turn.
    Cancelled,
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Unreadable => "a store of it cannot be read",
            Self::Owned => "it has an owner in this process",
            Self::Inaccessible => "its directory cannot be locked or read",
            Self::NotInTopology => "the topology has no persistent store with a changelog for it",
            Self::Gone => "it was deleted meanwhile",
            Self::DeadlinePassed => "the deadline passed before the scan came to it",
            Self::Cancelled => "the scan was cancelled before it came to it",
        })
    }
}

/// What the scan found of one task.
///
/// ```
/// use kstate_offset_cache::TaskScan;
///
/// fn is_known(task: &TaskScan) -> bool {
///     task.left_out().is_none()
/// }
/// ```
#[derive(Debug)]
pub struct TaskScan {
    task: TaskId,
    stores: Vec<StoreScan>,
    leftovers: Vec<String>,
    left_out: Option<LeftOut>,
    /// The error that is no store's.
    error: Option<Error>,
}

impl TaskScan {
    pub(crate) fn found(task: TaskId, stores: Vec<StoreScan>, leftovers: Vec<String>) -> Self {
        let unreadable = stores.iter().any(|store| store.committed.is_err());
        Self { task, stores, leftovers, left_out: unreadable.then_some(LeftOut::Unreadable), error: None }
    }

    pub(crate) const fn left(task: TaskId, why: LeftOut) -> Self {
        Self { task, stores: Vec::new(), leftovers: Vec::new(), left_out: Some(why), error: None }
    }

    pub(crate) fn with_error(mut self, error: Error) -> Self {
        self.error = Some(error);
        self
    }

    pub(crate) fn with_leftovers(mut self, leftovers: Vec<String>) -> Self {
        self.leftovers = leftovers;
        self
    }

    /// The task.
    ///
    /// ```
    /// # use kstate_offset_cache::TaskScan;
    /// fn partition(scan: &TaskScan) -> u32 {
    ///     scan.task().partition()
    /// }
    /// ```
    #[must_use]
    pub const fn task(&self) -> TaskId {
        self.task
    }

    /// What was found in each persistent store with a changelog; the ones that can be read are told even if the task was
    /// left out because of others.
    ///
    /// ```
    /// # use kstate_offset_cache::TaskScan;
    /// fn is_whole(scan: &TaskScan) -> bool {
    ///     scan.stores().iter().all(|store| store.committed.is_ok())
    /// }
    /// ```
    #[must_use]
    pub fn stores(&self) -> &[StoreScan] {
        &self.stores
    }

    /// The stores on the disk that the topology does not know: what an earlier one left.
    ///
    /// ```
    /// # use kstate_offset_cache::TaskScan;
    /// fn has_leftovers(scan: &TaskScan) -> bool {
    ///     !scan.leftovers().is_empty()
    /// }
    /// ```
    #[must_use]
    pub fn leftovers(&self) -> &[String] {
        &self.leftovers
    }

    /// Why the task is not in the cache; `None` if it is.
    ///
    /// ```
    /// # use kstate_offset_cache::{LeftOut, TaskScan};
    /// fn is_broken(scan: &TaskScan) -> bool {
    ///     scan.left_out() == Some(LeftOut::Unreadable)
    /// }
    /// ```
    #[must_use]
    pub const fn left_out(&self) -> Option<LeftOut> {
        self.left_out
    }

    /// The first error that was met; it names the store if it is one's.
    ///
    /// ```
    /// # use kstate_api::ErrorKind;
    /// # use kstate_offset_cache::TaskScan;
    /// fn must_restore(scan: &TaskScan) -> bool {
    ///     scan.error().is_some_and(|error| error.kind() == ErrorKind::Corrupted)
    /// }
    /// ```
    #[must_use]
    pub fn error(&self) -> Option<&Error> {
        self.error.as_ref().or_else(|| self.stores.iter().find_map(|store| store.committed.as_ref().err()))
    }
}
