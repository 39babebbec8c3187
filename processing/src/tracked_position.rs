use std::ops::Range;

use kstate_api::{Error, ErrorKind, Offset, Result};

/// How far a partition has been processed: the lowest offset that is not finished, and the ranges above it that are
/// (clause A5).
///
/// It is one value from one call, and is committed as it is. Offsets inside a range that no record has (compacted
/// away, or taken by a transaction's marker) count as finished. The ranges are sorted, not empty, and do not touch
/// each other nor `next`.
///
/// ```
/// use kstate_api::Offset;
/// use kstate_processing::TrackedPosition;
///
/// # fn main() -> kstate_api::Result<()> {
/// let at = |offset| Offset::new(offset).unwrap();
/// // 5 is not finished; 6 and 7 are, and so is 9.
/// let position = TrackedPosition::new(at(5), [at(6)..at(8), at(9)..at(10)])?;
/// assert_eq!(position.next(), at(5));
/// assert!(position.is_finished(at(7)) && !position.is_finished(at(8)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TrackedPosition {
    pub(crate) next: Offset,
    pub(crate) finished: Vec<Range<Offset>>,
}

impl TrackedPosition {
    /// The position at `next` with nothing finished above it.
    ///
    /// ```
    /// # use kstate_api::Offset;
    /// # use kstate_processing::TrackedPosition;
    /// assert!(TrackedPosition::at(Offset::ZERO).finished().is_empty());
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
    /// # use kstate_api::Offset;
    /// # use kstate_processing::TrackedPosition;
    /// # let at = |offset| Offset::new(offset).unwrap();
    /// let position = TrackedPosition::new(at(5), [at(5)..at(8)]).unwrap();
    /// assert_eq!(position, TrackedPosition::at(at(8)));
    /// assert!(TrackedPosition::new(at(5), [at(4)..at(8)]).is_err());
    /// ```
    pub fn new(next: Offset, finished: impl IntoIterator<Item = Range<Offset>>) -> Result<Self> {
        let mut position = Self::at(next);
        for range in finished {
            let end = position.finished.last().map_or(position.next, |last| last.end);
            if range.is_empty() || range.start < end {
                let message = format!("{}..{} cannot follow {end} in a position", range.start, range.end);
                return Err(Error::new(ErrorKind::InvalidArgument, message));
            }
            position.push(range);
        }
        Ok(position)
    }

    /// Adds a range that is not empty and not below what is already there.
    pub(crate) fn push(&mut self, range: Range<Offset>) {
        match self.finished.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            None if self.next == range.start => self.next = range.end,
            _ => self.finished.push(range),
        }
    }

    /// The lowest offset that is not finished: what a consumer group commits.
    ///
    /// ```
    /// # use kstate_api::Offset;
    /// # use kstate_processing::TrackedPosition;
    /// assert_eq!(TrackedPosition::at(Offset::ZERO).next(), Offset::ZERO);
    /// ```
    #[must_use]
    pub const fn next(&self) -> Offset {
        self.next
    }

    /// The finished ranges above [`next`](Self::next), ascending; each with its first offset, without its end.
    ///
    /// ```
    /// # use kstate_api::Offset;
    /// # use kstate_processing::TrackedPosition;
    /// assert_eq!(TrackedPosition::at(Offset::ZERO).finished(), []);
    /// ```
    #[must_use]
    pub fn finished(&self) -> &[Range<Offset>] {
        &self.finished
    }

    /// Whether the record at `offset` need not be run again.
    ///
    /// ```
    /// # use kstate_api::Offset;
    /// # use kstate_processing::TrackedPosition;
    /// let position = TrackedPosition::at(Offset::ZERO.next());
    /// assert!(position.is_finished(Offset::ZERO) && !position.is_finished(position.next()));
    /// ```
    #[must_use]
    pub fn is_finished(&self, offset: Offset) -> bool {
        let above = self.finished.partition_point(|range| range.end <= offset);
        offset < self.next || self.finished.get(above).is_some_and(|range| range.contains(&offset))
    }

    /// The same position without the finished ranges: at least once, what is above `next` runs again.
    ///
    /// ```
    /// # use kstate_api::Offset;
    /// # use kstate_processing::TrackedPosition;
    /// # let at = |offset| Offset::new(offset).unwrap();
    /// let position = TrackedPosition::new(at(5), [at(6)..at(8)]).unwrap();
    /// assert_eq!(position.without_finished(), TrackedPosition::at(at(5)));
    /// ```
    #[must_use]
    pub fn without_finished(self) -> Self {
        Self::at(self.next)
    }
}
