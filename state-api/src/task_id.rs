use std::{fmt, str::FromStr};

use crate::{Error, ErrorKind, Result};

/// The identity of a task: a sub-topology and the partition of its source topics, written `subtopology_partition`.
///
/// ```
/// use kstate_api::TaskId;
///
/// let task: TaskId = "0_3".parse().unwrap();
/// assert_eq!(task, TaskId::new(0, 3));
/// assert_eq!(task.to_string(), "0_3");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    subtopology: u32,
    partition: u32,
}

impl TaskId {
    /// The task of `partition` in `subtopology`.
    ///
    /// ```
    /// # use kstate_api::TaskId;
    /// let task = TaskId::new(0, 1);
    /// ```
    #[must_use]
    pub const fn new(subtopology: u32, partition: u32) -> Self {
        Self { subtopology, partition }
    }

    /// The number of the sub-topology.
    ///
    /// ```
    /// # use kstate_api::TaskId;
    /// assert_eq!(TaskId::new(2, 1).subtopology(), 2);
    /// ```
    #[must_use]
    pub const fn subtopology(self) -> u32 {
        self.subtopology
    }

    /// The partition of the source topics.
    ///
    /// ```
    /// # use kstate_api::TaskId;
    /// assert_eq!(TaskId::new(2, 1).partition(), 1);
    /// ```
    #[must_use]
    pub const fn partition(self) -> u32 {
        self.partition
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.subtopology, self.partition)
    }
}

impl FromStr for TaskId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        text.split_once('_')
            .and_then(|(subtopology, partition)| Some(Self::new(subtopology.parse().ok()?, partition.parse().ok()?)))
            // `0_01` and `0_1` would be two directories of one task.
            .filter(|task| task.to_string() == text)
            .ok_or_else(|| Error::new(ErrorKind::InvalidArgument, format!("`{text}` is not a task id")))
    }
}
