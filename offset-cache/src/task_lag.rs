use std::fmt;

use kstate_api::TopicPartition;

use crate::{Lag, PartitionLag};

/// The lag of one task: the saturating sum over its changelog partitions, and what a sum hides.
///
/// Kafka has the sum only, in which one store far behind looks like many stores a little behind. Restores of a task's
/// stores go on side by side, so the largest partition is named beside the sum.
///
/// ```
/// use kstate_api::TopicPartition;
/// use kstate_offset_cache::{Lag, PartitionLag, TaskLag};
///
/// let (a, b) = (TopicPartition::new("a-changelog", 0), TopicPartition::new("b-changelog", 0));
/// let lag = TaskLag::new([(&a, PartitionLag::Behind(3)), (&b, PartitionLag::Behind(40))]);
/// assert_eq!(lag.total(), Lag::Behind(43));
/// assert_eq!(lag.largest(), Some((&b, PartitionLag::Behind(40))));
/// assert_eq!(lag.to_string(), "43, of which b-changelog-0 has 40");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskLag {
    total: Lag,
    known: u64,
    largest: Option<(TopicPartition, PartitionLag)>,
    unknown: Vec<TopicPartition>,
    diverged: Vec<TopicPartition>,
}

impl TaskLag {
    /// The lag of a task with these partitions.
    ///
    /// - A task without changelogs has nothing to restore: `Behind(0)`.
    /// - It is `Running` if all its partitions are.
    /// - One unknown partition makes the total unknown; [`known`](Self::known) still says what is known.
    ///
    /// ```
    /// use kstate_offset_cache::{Lag, TaskLag};
    ///
    /// assert_eq!(TaskLag::new([]).total(), Lag::Behind(0));
    /// ```
    pub fn new<'p>(partitions: impl IntoIterator<Item = (&'p TopicPartition, PartitionLag)>) -> Self {
        let mut known = 0_u64;
        let mut largest: Option<(&TopicPartition, PartitionLag, u64)> = None;
        let (mut unknown, mut diverged) = (Vec::new(), Vec::new());
        let (mut running, mut count) = (0_usize, 0_usize);
        for (partition, lag) in partitions {
            count += 1;
            match lag {
                PartitionLag::Running => running += 1,
                PartitionLag::Behind(_) => {}
                PartitionLag::Diverged(_) => diverged.push(partition.clone()),
                PartitionLag::Unknown => unknown.push(partition.clone()),
            }
            let Some(offsets) = lag.offsets() else { continue };
            known = known.saturating_add(offsets);
            // The first of equals is named, so that the answer does not change from look to look.
            if largest.is_none_or(|(_, _, most)| offsets > most) {
                largest = Some((partition, lag, offsets));
            }
        }
        let total = if !unknown.is_empty() {
            Lag::Unknown
        } else if count > 0 && running == count {
            Lag::Running
        } else {
            Lag::Behind(known)
        };
        let largest = largest.map(|(partition, lag, _)| (partition.clone(), lag));
        Self { total, known, largest, unknown, diverged }
    }

    /// The sum over all partitions; it stops at `u64::MAX` instead of wrapping.
    ///
    /// ```
    /// use kstate_api::TopicPartition;
    /// use kstate_offset_cache::{Lag, PartitionLag, TaskLag};
    ///
    /// let partition = TopicPartition::new("counts-changelog", 0);
    /// assert_eq!(TaskLag::new([(&partition, PartitionLag::Running)]).total(), Lag::Running);
    /// ```
    #[must_use]
    pub const fn total(&self) -> Lag {
        self.total
    }

    /// The sum over the partitions whose lag is known: the least that the task has to restore.
    ///
    /// ```
    /// use kstate_api::TopicPartition;
    /// use kstate_offset_cache::{Lag, PartitionLag, TaskLag};
    ///
    /// let (a, b) = (TopicPartition::new("a-changelog", 0), TopicPartition::new("b-changelog", 0));
    /// let lag = TaskLag::new([(&a, PartitionLag::Behind(3)), (&b, PartitionLag::Unknown)]);
    /// assert_eq!((lag.total(), lag.known()), (Lag::Unknown, 3));
    /// ```
    #[must_use]
    pub const fn known(&self) -> u64 {
        self.known
    }

    /// The partition with the largest known lag, the first one of equals.
    ///
    /// ```
    /// assert_eq!(kstate_offset_cache::TaskLag::new([]).largest(), None);
    /// ```
    #[must_use]
    pub fn largest(&self) -> Option<(&TopicPartition, PartitionLag)> {
        self.largest.as_ref().map(|(partition, lag)| (partition, *lag))
    }

    /// The partitions whose lag is unknown.
    ///
    /// ```
    /// assert!(kstate_offset_cache::TaskLag::new([]).unknown().is_empty());
    /// ```
    #[must_use]
    pub fn unknown(&self) -> &[TopicPartition] {
        &self.unknown
    }

    /// The partitions of which the store has more than the log.
    ///
    /// ```
    /// assert!(kstate_offset_cache::TaskLag::new([]).diverged().is_empty());
    /// ```
    #[must_use]
    pub fn diverged(&self) -> &[TopicPartition] {
        &self.diverged
    }
}

impl fmt::Display for TaskLag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.total {
            Lag::Unknown => write!(f, "at least {}, unknown for {} partitions", self.known, self.unknown.len()),
            Lag::Running => f.write_str("running"),
            Lag::Behind(offsets) => match &self.largest {
                Some((partition, lag)) if offsets > 0 => write!(f, "{offsets}, of which {partition} has {lag}"),
                _ => offsets.fmt(f),
            },
        }
    }
}
