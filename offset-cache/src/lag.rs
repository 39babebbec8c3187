use std::fmt;

use kstate_api::{Offset, TopicPartition};

use crate::{CachedOffset, LogEnds, log_ends::distance};

/// How much of a task's or a partition's changelog a member still has to restore: `Running`, then numbers, then
/// `Unknown`, from the cheapest to take over to the dearest.
///
/// Kafka keeps this in one `i64` beside the sentinels −2 and −3, where "unknown" sorts as the *most* caught up. Here the
/// order of the variants is the order of preference.
///
/// ```
/// use kstate_offset_cache::Lag;
///
/// assert!(Lag::Running < Lag::Behind(0));
/// assert!(Lag::Behind(0) < Lag::Behind(10_000));
/// assert!(Lag::Behind(u64::MAX) < Lag::Unknown);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lag {
    /// Active and live: nothing to restore.
    Running,
    /// This many offsets are to be passed, which is at least the number of records: compacted records and transaction
    /// markers occupy offsets too.
    Behind(u64),
    /// Nobody could say. It may be anything, so it counts as more than every number.
    Unknown,
}

impl Lag {
    /// The number of offsets to pass: 0 for what is running, `None` for what is unknown.
    ///
    /// ```
    /// use kstate_offset_cache::Lag;
    ///
    /// assert_eq!(Lag::Running.offsets(), Some(0));
    /// assert_eq!(Lag::Behind(3).offsets(), Some(3));
    /// assert_eq!(Lag::Unknown.offsets(), None);
    /// ```
    #[must_use]
    pub const fn offsets(self) -> Option<u64> {
        match self {
            Self::Running => Some(0),
            Self::Behind(offsets) => Some(offsets),
            Self::Unknown => None,
        }
    }

    /// Whether a task may run where its lag is this, restoring the rest first, when at most `acceptable` offsets
    /// may be left. What is unknown is not, unless `u64::MAX` says that every lag will do.
    ///
    /// ```
    /// use kstate_offset_cache::Lag;
    ///
    /// assert!(Lag::Running.is_caught_up(0));
    /// assert!(Lag::Behind(10_000).is_caught_up(10_000));
    /// assert!(!Lag::Behind(10_001).is_caught_up(10_000));
    /// assert!(!Lag::Unknown.is_caught_up(10_000));
    /// assert!(Lag::Unknown.is_caught_up(u64::MAX));
    /// ```
    #[must_use]
    pub const fn is_caught_up(self, acceptable: u64) -> bool {
        match self.offsets() {
            Some(offsets) => offsets <= acceptable,
            None => acceptable == u64::MAX,
        }
    }
}

impl fmt::Display for Lag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running => f.write_str("running"),
            Self::Behind(offsets) => offsets.fmt(f),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// The lag of one changelog partition's copy on this disk (clause C3).
///
/// ```
/// use kstate_api::{Offset, TopicPartition};
/// use kstate_offset_cache::{CachedOffset, LogEnds, PartitionLag};
///
/// let changelog = TopicPartition::new("counts-changelog", 0);
/// let offset = |number| Offset::new(number).unwrap();
/// let ends = Some(LogEnds { start: offset(100), end: offset(300) });
/// let lag = |cached| PartitionLag::new(&changelog, cached, ends);
///
/// assert_eq!(lag(Some(CachedOffset::Running)), PartitionLag::Running);
/// assert_eq!(lag(Some(CachedOffset::At(offset(289)))), PartitionLag::Behind(10));
/// assert_eq!(lag(Some(CachedOffset::Unknown)), PartitionLag::Behind(200));
/// assert_eq!(lag(None), PartitionLag::Behind(200));
/// assert_eq!(lag(Some(CachedOffset::At(offset(500)))), PartitionLag::Diverged(200));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PartitionLag {
    /// Active here and live: 0, whatever the log's end.
    Running,
    /// This many offsets are to be passed.
    Behind(u64),
    /// The store has more than the log: the topic was made anew, or cut, or the store is not of this log. It counts as
    /// the whole log, given here, for a restore wipes the store and starts over.
    Diverged(u64),
    /// The log's ends are not known.
    Unknown,
}

impl PartitionLag {
    /// The lag of `partition`, of which the cache says `cached` and the brokers say `ends`.
    ///
    /// - Running: 0, even if the ends are not known.
    /// - An offset: `end − next`. If the log begins beyond `next`, no more than what the log retains, which is what a
    ///   restore then reads. Beyond the end: [`Diverged`](Self::Diverged), with a warning.
    /// - Nothing stored, or nothing in the cache: what the log retains, which is 0 for an empty log that begins above 0.
    ///
    /// ```
    /// use kstate_api::TopicPartition;
    /// use kstate_offset_cache::PartitionLag;
    ///
    /// let unknown = PartitionLag::new(&TopicPartition::new("counts-changelog", 0), None, None);
    /// assert_eq!(unknown, PartitionLag::Unknown);
    /// ```
    #[must_use]
    pub fn new(partition: &TopicPartition, cached: Option<CachedOffset>, ends: Option<LogEnds>) -> Self {
        match (cached, ends) {
            (Some(CachedOffset::Running), _) => Self::Running,
            (_, None) => Self::Unknown,
            (Some(CachedOffset::At(offset)), Some(ends)) => Self::of_stored(partition, offset, ends),
            (Some(CachedOffset::Unknown) | None, Some(ends)) => Self::Behind(ends.retained()),
        }
    }

    fn of_stored(partition: &TopicPartition, offset: Offset, ends: LogEnds) -> Self {
        if offset >= ends.end && ends.end < Offset::MAX {
            tracing::warn!(
                %partition, %offset, end = %ends.end,
                "the store has more than its changelog; it counts as the whole log and will be restored from nothing",
            );
            return Self::Diverged(ends.retained());
        }
        Self::Behind(distance(offset.next(), ends.end).min(ends.retained()))
    }

    /// The number of offsets to pass, `None` if it is unknown.
    ///
    /// ```
    /// use kstate_offset_cache::PartitionLag;
    ///
    /// assert_eq!(PartitionLag::Diverged(300).offsets(), Some(300));
    /// assert_eq!(PartitionLag::Unknown.offsets(), None);
    /// ```
    #[must_use]
    pub const fn offsets(self) -> Option<u64> {
        match self {
            Self::Running => Some(0),
            Self::Behind(offsets) | Self::Diverged(offsets) => Some(offsets),
            Self::Unknown => None,
        }
    }
}

impl fmt::Display for PartitionLag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running => f.write_str("running"),
            Self::Behind(offsets) => offsets.fmt(f),
            Self::Diverged(offsets) => write!(f, "{offsets} (diverged)"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}
