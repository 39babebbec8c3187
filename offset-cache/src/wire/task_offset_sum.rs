use kstate_api::{Error, ErrorKind, Offset, Result};

use super::OffsetSum;
use crate::{CachedOffset, Lag};

const LATEST_OFFSET: i64 = -2;
const UNKNOWN_OFFSET_SUM: i64 = -3;

/// How far a member's copy of one task has come, in the one number that Kafka's classic protocol has for it.
///
/// ```
/// use kstate_offset_cache::wire::{OffsetSum, TaskOffsetSum};
///
/// assert_eq!(TaskOffsetSum::from_wire(-2).unwrap(), TaskOffsetSum::Latest);
/// assert_eq!(TaskOffsetSum::from_wire(-3).unwrap(), TaskOffsetSum::Unknown);
/// assert_eq!(TaskOffsetSum::from_wire(7).unwrap(), TaskOffsetSum::Sum(OffsetSum::new(7).unwrap()));
/// assert!(TaskOffsetSum::from_wire(-7).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskOffsetSum {
    /// Active there and live; −2 on the wire.
    Latest,
    /// The sum of the next offsets to restore.
    Sum(OffsetSum),
    /// The member did not say: it speaks a version without sums; −3 on the wire.
    Unknown,
}

impl TaskOffsetSum {
    /// The sum of one task, with what is known of each of its changelog partitions.
    ///
    /// - All running: [`Latest`](Self::Latest). Kafka says so if one is, for there it is the task that runs; here
    ///   stores are restored one by one, and a task of which some are not is not caught up.
    /// - Otherwise the sum of `offset + 1`. A partition with nothing stored counts 0; so does a running one among others
    ///   that are not, as its number is not known: too little makes a task look dearer than it is, too much would
    ///   make it look restored.
    ///
    /// ```
    /// use kstate_api::Offset;
    /// use kstate_offset_cache::{CachedOffset, wire::TaskOffsetSum};
    ///
    /// let stored = Some(CachedOffset::At(Offset::new(99).unwrap()));
    /// assert_eq!(TaskOffsetSum::new([stored, None]).to_wire(), 100);
    /// ```
    pub fn new(partitions: impl IntoIterator<Item = Option<CachedOffset>>) -> Self {
        let (mut running, mut count) = (0_usize, 0_usize);
        let nexts = partitions.into_iter().filter_map(|cached| {
            count += 1;
            running += usize::from(cached == Some(CachedOffset::Running));
            cached?.offset().map(Offset::next)
        });
        let sum = OffsetSum::of(nexts);
        if count > 0 && running == count { Self::Latest } else { Self::Sum(sum) }
    }

    /// The number on the wire.
    ///
    /// ```
    /// assert_eq!(kstate_offset_cache::wire::TaskOffsetSum::Unknown.to_wire(), -3);
    /// ```
    #[must_use]
    pub const fn to_wire(self) -> i64 {
        match self {
            Self::Latest => LATEST_OFFSET,
            Self::Sum(sum) => sum.get(),
            Self::Unknown => UNKNOWN_OFFSET_SUM,
        }
    }

    /// What the number on the wire says.
    ///
    /// # Errors
    /// `InvalidArgument` for a negative number that is no sentinel.
    ///
    /// ```
    /// assert!(kstate_offset_cache::wire::TaskOffsetSum::from_wire(-1).is_err());
    /// ```
    pub fn from_wire(number: i64) -> Result<Self> {
        match number {
            LATEST_OFFSET => Ok(Self::Latest),
            UNKNOWN_OFFSET_SUM => Ok(Self::Unknown),
            _ => OffsetSum::new(number).map(Self::Sum).ok_or_else(|| {
                Error::new(ErrorKind::InvalidArgument, format!("{number} is neither a sum of offsets nor a sentinel"))
            }),
        }
    }

    /// The lag of the task there, whose changelogs end at `end` in sum; `None` if that is not known.
    ///
    /// A sum beyond the end counts as the whole log, with a warning: the copy is not of this log, and a restore will
    /// start from nothing.
    ///
    /// ```
    /// use kstate_offset_cache::{Lag, wire::{OffsetSum, TaskOffsetSum}};
    ///
    /// let end = OffsetSum::new(300);
    /// assert_eq!(TaskOffsetSum::from_wire(290).unwrap().lag(end), Lag::Behind(10));
    /// assert_eq!(TaskOffsetSum::from_wire(500).unwrap().lag(end), Lag::Behind(300));
    /// assert_eq!(TaskOffsetSum::Latest.lag(None), Lag::Running);
    /// assert_eq!(TaskOffsetSum::from_wire(290).unwrap().lag(None), Lag::Unknown);
    /// ```
    #[must_use]
    pub fn lag(self, end: Option<OffsetSum>) -> Lag {
        match (self, end) {
            (Self::Latest, _) => Lag::Running,
            (Self::Unknown, _) | (_, None) => Lag::Unknown,
            (Self::Sum(sum), Some(end)) => {
                // Both are non-negative, so the difference cannot overflow.
                let behind = end.get() - sum.get();
                if behind < 0 {
                    tracing::warn!(%sum, %end, "a member has more of a task than its changelogs; it counts as the whole");
                    return Lag::Behind(end.get().unsigned_abs());
                }
                Lag::Behind(behind.unsigned_abs())
            }
        }
    }
}
