use std::{fmt, ops::Range};

use crate::{Error, ErrorKind, Offset, Result};

/// How far a partition has been processed: the lowest offset that is not finished, and the ranges above it that are
/// (clause A5).
///
/// It is one value from one call, and is committed as it is. Offsets inside a range that no record has (compacted
/// away, or taken by a transaction's marker) count as finished. The ranges are sorted, not empty, and do not touch
/// each other nor `next`.
///
/// ```
/// use kstate_api::{Offset, PartitionPosition};
///
/// # fn main() -> kstate_api::Result<()> {
/// let at = |offset| Offset::new(offset).unwrap();
/// // 5 is not finished; 6 and 7 are, and so is 9.
/// let position = PartitionPosition::new(at(5), [at(6)..at(8), at(9)..at(10)])?;
/// assert_eq!(position.next(), at(5));
/// assert!(position.is_finished(at(7)) && !position.is_finished(at(8)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionPosition {
    next: Offset,
    finished: Vec<Range<Offset>>,
}

impl PartitionPosition {
    /// The position at `next` with nothing finished above it.
    ///
    /// ```
    /// # use kstate_api::{Offset, PartitionPosition};
    /// assert!(PartitionPosition::at(Offset::ZERO).finished().is_empty());
    /// ```
    #[must_use]
    pub const fn at(next: Offset) -> Self {
        Self { next, finished: Vec::new() }
    }

    /// The position at `next` with the ranges `finished` above it. Ranges that touch become one; one that begins at
    /// `next` moves `next` to its end.
    ///
    /// # Errors
    /// `InvalidArgument` if a range is empty, begins below `next`, or is not above the one before it.
    ///
    /// ```
    /// # use kstate_api::{Offset, PartitionPosition};
    /// # let at = |offset| Offset::new(offset).unwrap();
    /// let position = PartitionPosition::new(at(5), [at(5)..at(8)]).unwrap();
    /// assert_eq!(position, PartitionPosition::at(at(8)));
    /// assert!(PartitionPosition::new(at(5), [at(4)..at(8)]).is_err());
    /// ```
    pub fn new(next: Offset, finished: impl IntoIterator<Item = Range<Offset>>) -> Result<Self> {
        let mut position = Self::at(next);
        for range in finished {
            let end = position.finished.last().map_or(position.next, |last| last.end);
            if range.is_empty() || range.start < end {
                let message = format!("{}..{} cannot follow {end} in a position", range.start, range.end);
                return Err(Error::new(ErrorKind::InvalidArgument, message));
            }
            position.finish(range);
        }
        Ok(position)
    }

    /// Counts `range` as finished too, wherever it lies.
    ///
    /// ```
    /// # use kstate_api::{Offset, PartitionPosition};
    /// # let at = |offset| Offset::new(offset).unwrap();
    /// let mut position = PartitionPosition::at(at(5));
    /// position.finish(at(6)..at(8));
    /// assert_eq!(position.finished(), [at(6)..at(8)]);
    /// position.finish(at(4)..at(6));
    /// assert_eq!(position, PartitionPosition::at(at(8)));
    /// ```
    pub fn finish(&mut self, range: Range<Offset>) {
        let Range { mut start, mut end } = range.start.max(self.next)..range.end;
        if start >= end {
            return;
        }
        // Ranges that it meets become one with it.
        let first = self.finished.partition_point(|other| other.end < start);
        let last = self.finished.partition_point(|other| other.start <= end);
        for met in self.finished.drain(first..last) {
            start = start.min(met.start);
            end = end.max(met.end);
        }
        if start == self.next {
            self.next = end;
        } else {
            self.finished.insert(first, start..end);
        }
    }

    /// The lowest offset that is not finished: what a consumer group commits.
    ///
    /// ```
    /// # use kstate_api::{Offset, PartitionPosition};
    /// assert_eq!(PartitionPosition::at(Offset::ZERO).next(), Offset::ZERO);
    /// ```
    #[must_use]
    pub const fn next(&self) -> Offset {
        self.next
    }

    /// The finished ranges above [`next`](Self::next), ascending; each with its first offset, without its end.
    ///
    /// ```
    /// # use kstate_api::{Offset, PartitionPosition};
    /// assert_eq!(PartitionPosition::at(Offset::ZERO).finished(), []);
    /// ```
    #[must_use]
    pub fn finished(&self) -> &[Range<Offset>] {
        &self.finished
    }

    /// The finished ranges, as [`finished`](Self::finished) shows them.
    ///
    /// ```
    /// # use kstate_api::{Offset, PartitionPosition};
    /// assert!(PartitionPosition::at(Offset::ZERO).into_finished().is_empty());
    /// ```
    #[must_use]
    pub fn into_finished(self) -> Vec<Range<Offset>> {
        self.finished
    }

    /// Whether the record at `offset` need not be run again.
    ///
    /// ```
    /// # use kstate_api::{Offset, PartitionPosition};
    /// let position = PartitionPosition::at(Offset::ZERO.next());
    /// assert!(position.is_finished(Offset::ZERO) && !position.is_finished(position.next()));
    /// ```
    #[must_use]
    pub fn is_finished(&self, offset: Offset) -> bool {
        let above = self.finished.partition_point(|range| range.end <= offset);
        offset < self.next || self.finished.get(above).is_some_and(|range| range.contains(&offset))
    }

    /// Whether everything that is finished in `other` is finished in this position.
    ///
    /// ```
    /// # use kstate_api::{Offset, PartitionPosition};
    /// # let at = |offset| Offset::new(offset).unwrap();
    /// let position = PartitionPosition::new(at(5), [at(6)..at(8)]).unwrap();
    /// assert!(position.covers(&PartitionPosition::new(at(4), [at(7)..at(8)]).unwrap()));
    /// assert!(!position.covers(&PartitionPosition::at(at(6))));
    /// ```
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        // Ranges do not touch each other nor `next`: each of the other's lies in one of these, or below `next`.
        let has = |range: &Range<Offset>| {
            let above = self.finished.partition_point(|own| own.end < range.end);
            range.end <= self.next || self.finished.get(above).is_some_and(|own| own.start <= range.start)
        };
        other.next <= self.next && other.finished.iter().all(has)
    }

    /// The same position without the finished ranges: at least once, what is above `next` runs again.
    ///
    /// ```
    /// # use kstate_api::{Offset, PartitionPosition};
    /// # let at = |offset| Offset::new(offset).unwrap();
    /// let position = PartitionPosition::new(at(5), [at(6)..at(8)]).unwrap();
    /// assert_eq!(position.without_finished(), PartitionPosition::at(at(5)));
    /// ```
    #[must_use]
    pub fn without_finished(self) -> Self {
        Self::at(self.next)
    }
}

impl From<Offset> for PartitionPosition {
    fn from(next: Offset) -> Self {
        Self::at(next)
    }
}

impl fmt::Display for PartitionPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.next)?;
        self.finished.iter().try_for_each(|range| write!(f, ", {}..{} finished", range.start, range.end))
    }
}
