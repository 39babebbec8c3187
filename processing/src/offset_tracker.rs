use std::{
    collections::{VecDeque, vec_deque},
    ops::Range,
};

use kstate_api::{Error, ErrorKind, Offset, PartitionPosition, Result};

use crate::{
    Admission, Epoch, Finish, PositionMetadata as _, PositionSnapshot, RangesIgnored, Ticket, TrackerLimits,
    TrackerStats, metadata_limit::longest_metadata,
};

/// A record in the window: its offset, or, once it is finished, its complement. Offsets are never negative.
#[derive(Clone, Copy, Debug)]
struct Slot(i64);

impl Slot {
    const fn is_finished(self) -> bool {
        self.0 < 0
    }

    fn offset(self) -> Offset {
        Offset::new(if self.is_finished() { !self.0 } else { self.0 }).unwrap_or(Offset::MAX)
    }
}

/// Which records of one partition are finished, and so what may be committed (clause A1): the lowest offset that is
/// not finished, or, when nothing is in flight, the consumer's position.
///
/// Only finishing a record moves the position; a failure leaves it where it is. A record that is skipped (filtered out,
/// undecodable, sent to a dead-letter topic) is finished like any other.
///
/// A record in flight takes 8 bytes, 16 at most with the room to grow; admitting and finishing take constant time,
/// amortized, in whatever order records finish. Missing offsets cost nothing.
///
/// ```
/// use kstate_api::{Offset, PartitionPosition};
/// use kstate_processing::{Admission, Finish, OffsetTracker, TrackerLimits};
///
/// # fn main() -> kstate_api::Result<()> {
/// let at = |offset| Offset::new(offset).unwrap();
/// let mut tracker = OffsetTracker::new(TrackerLimits::default());
/// tracker.resume(PartitionPosition::at(at(5)));
///
/// let mut tickets = Vec::new();
/// for offset in [5, 7, 9] {
///     let Admission::Run(ticket) = tracker.admit(at(offset))? else { unreachable!("new, and there is room") };
///     tickets.push(ticket);
/// }
/// assert_eq!(tracker.finish(tickets.pop().unwrap()), Finish::Held);
/// assert_eq!(tracker.finish(tickets.pop().unwrap()), Finish::Held);
/// assert_eq!(tracker.position().unwrap().position(), &PartitionPosition::new(at(5), [at(7)..at(10)])?);
/// assert_eq!(tracker.finish(tickets.pop().unwrap()), Finish::Advanced(at(10)));
///
/// tracker.observe(at(12)); // a transaction's marker was at 11
/// assert_eq!(tracker.next(), Some(at(12)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct OffsetTracker {
    limits: TrackerLimits,
    epoch: Option<Epoch>,
    /// From the lowest record that is not finished to the last one admitted.
    window: VecDeque<Slot>,
    /// The sequence number of the first record in the window.
    first_sequence: u64,
    /// How many records of the window are not finished.
    in_flight: usize,
    /// Everything below it is finished. It is the position when the window is empty.
    finished_below: Offset,
    /// The lowest offset that may come next.
    expected: Offset,
    /// What the stored position had finished and has not come yet, the lowest first.
    resumed: VecDeque<Range<Offset>>,
    generation: u64,
    committed: u64,
    stats: TrackerStats,
}

impl OffsetTracker {
    /// A tracker to which no partition is assigned yet.
    ///
    /// ```
    /// # use kstate_processing::{OffsetTracker, TrackerLimits};
    /// assert_eq!(OffsetTracker::new(TrackerLimits::default()).position(), None);
    /// ```
    #[must_use]
    pub fn new(limits: TrackerLimits) -> Self {
        Self {
            limits,
            epoch: None,
            window: VecDeque::new(),
            first_sequence: 0,
            in_flight: 0,
            finished_below: Offset::ZERO,
            expected: Offset::ZERO,
            resumed: VecDeque::new(),
            generation: 0,
            committed: 0,
            stats: TrackerStats::default(),
        }
    }

    /// Begins an assignment at `position`, whose `next` the consumer must seek to. What it has finished is not run
    /// again. An assignment that was not revoked ends here.
    ///
    /// ```
    /// # use kstate_api::{Offset, PartitionPosition};
    /// use kstate_processing::{Admission, OffsetTracker, TrackerLimits};
    ///
    /// # let at = |offset| Offset::new(offset).unwrap();
    /// let mut tracker = OffsetTracker::new(TrackerLimits::default());
    /// tracker.resume(PartitionPosition::new(at(5), [at(6)..at(8)]).unwrap());
    /// assert!(matches!(tracker.admit(at(5)), Ok(Admission::Run(_))));
    /// assert!(matches!(tracker.admit(at(6)), Ok(Admission::Finished)));
    /// ```
    pub fn resume(&mut self, position: PartitionPosition) -> Epoch {
        let epoch = Epoch::next();
        *self = Self {
            epoch: Some(epoch),
            finished_below: position.next(),
            expected: position.next(),
            resumed: position.into_finished().into(),
            stats: self.stats,
            ..Self::new(self.limits)
        };
        epoch
    }

    /// Begins an assignment where a consumer group's committed offset and its metadata say. Metadata that cannot be used
    /// is logged and counted, and what is above the offset runs again.
    ///
    /// ```
    /// # use kstate_api::Offset;
    /// use kstate_processing::{OffsetTracker, TrackerLimits};
    ///
    /// let mut tracker = OffsetTracker::new(TrackerLimits::default());
    /// assert!(tracker.resume_committed(Offset::ZERO, "of another program").is_err());
    /// assert_eq!(tracker.next(), Some(Offset::ZERO));
    /// assert_eq!(tracker.stats().ranges_ignored, 1);
    /// ```
    ///
    /// # Errors
    /// Why the metadata is not used. The assignment has begun all the same.
    pub fn resume_committed(&mut self, committed: Offset, metadata: &str) -> std::result::Result<Epoch, RangesIgnored> {
        let read = match PartitionPosition::from_metadata(committed, metadata) {
            // Nothing was ignored.
            Err(RangesIgnored::Bare) => Ok(PartitionPosition::at(committed)),
            read => read,
        };
        let epoch = self.resume(read.clone().unwrap_or(PartitionPosition::at(committed)));
        read.map(|_| epoch).inspect_err(|reason| {
            self.stats.ranges_ignored += 1;
            tracing::warn!(%committed, %reason, "records that were finished may run again");
        })
    }

    /// Takes the record at `offset` into the window. Every record must be offered, in the partition's order, also one
    /// that nobody wants: admit it and finish it.
    ///
    /// # Errors
    /// `InvalidArgument` if the offset is not above the last one, or is below where the assignment began: the consumer
    /// went back, so begin a new assignment. `Closed` if no partition is assigned. Nothing was done.
    ///
    /// ```
    /// # use kstate_api::{Offset, PartitionPosition};
    /// # use kstate_processing::{Admission, OffsetTracker, TrackerLimits};
    /// # let mut tracker = OffsetTracker::new(TrackerLimits::default());
    /// tracker.resume(PartitionPosition::at(Offset::ZERO));
    /// assert!(matches!(tracker.admit(Offset::ZERO), Ok(Admission::Run(_))));
    /// assert!(tracker.admit(Offset::ZERO).is_err());
    /// ```
    pub fn admit(&mut self, offset: Offset) -> Result<Admission> {
        let epoch = self.epoch.ok_or_else(|| Error::new(ErrorKind::Closed, "no partition is assigned"))?;
        if offset < self.expected {
            let message = format!("offset {offset} cannot follow: the next one is at least {}", self.expected);
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        if offset < self.finished_below {
            self.skip(offset);
            return Ok(Admission::Finished);
        }
        if !self.has_room(offset) {
            return Ok(Admission::Full);
        }
        // What the consumer passed over is not there any more.
        while pop_front_if(&mut self.resumed, |range| range.end <= offset).is_some() {}
        let finished = self.resumed.front().is_some_and(|range| range.contains(&offset));
        if !finished {
            let sequence = self.first_sequence + self.window.len() as u64;
            self.window.push_back(Slot(offset.get()));
            self.in_flight += 1;
            self.generation += 1;
            self.expected = offset.next();
            return Ok(Admission::Run(Ticket { epoch, sequence }));
        }
        if let Some(range) = self.resumed.front_mut() {
            range.start = offset.next();
        }
        pop_front_if(&mut self.resumed, Range::is_empty);
        if self.window.is_empty() {
            self.advance(offset.next());
        } else {
            self.window.push_back(Slot(!offset.get()));
        }
        self.skip(offset);
        Ok(Admission::Finished)
    }

    fn skip(&mut self, offset: Offset) {
        self.expected = offset.next();
        self.stats.skipped += 1;
    }

    /// Whether [`admit`](Self::admit) would take the record at `offset`.
    ///
    /// ```
    /// # use kstate_api::{Offset, PartitionPosition};
    /// # use kstate_processing::{OffsetTracker, TrackerLimits};
    /// let mut tracker = OffsetTracker::new(TrackerLimits::default().with_window(1));
    /// tracker.resume(PartitionPosition::at(Offset::ZERO));
    /// let ticket = tracker.admit(Offset::ZERO).unwrap();
    /// assert!(!tracker.has_room(Offset::ZERO.next()));
    /// ```
    #[must_use]
    pub fn has_room(&self, offset: Offset) -> bool {
        self.window.len() < self.limits.window() && self.metadata_has_room(offset)
    }

    /// Each finished range is above at least one record that is in flight, and above one of its own that was; so the
    /// ranges can never become more than either.
    fn metadata_has_room(&self, offset: Offset) -> bool {
        let (Some(limit), Some(first)) = (self.limits.metadata(), self.window.front()) else {
            return true;
        };
        let ranges = (self.in_flight + 1).min(self.window.len().div_ceil(2)) + self.resumed.len();
        let resumed_end = self.resumed.back().map_or(Offset::ZERO, |range| range.end);
        // Below what is finished already, records make the metadata shorter in the end.
        let characters = if offset < resumed_end { limit.characters() } else { limit.brake() };
        let span = resumed_end.max(offset.next()).get().abs_diff(first.offset().get());
        longest_metadata(ranges as u64, span) <= characters as u64
    }

    /// Marks a record as finished: its effects are applied, or it is skipped for good.
    ///
    /// ```
    /// # use kstate_api::{Offset, PartitionPosition};
    /// # use kstate_processing::{Admission, Finish, OffsetTracker, TrackerLimits};
    /// # let mut tracker = OffsetTracker::new(TrackerLimits::default());
    /// tracker.resume(PartitionPosition::at(Offset::ZERO));
    /// let Ok(Admission::Run(ticket)) = tracker.admit(Offset::ZERO) else { unreachable!() };
    /// tracker.revoke();
    /// assert_eq!(tracker.finish(ticket), Finish::Late);
    /// ```
    #[expect(clippy::needless_pass_by_value, reason = "a ticket is good for one finish")]
    pub fn finish(&mut self, ticket: Ticket) -> Finish {
        let index = ticket.sequence.checked_sub(self.first_sequence).and_then(|index| usize::try_from(index).ok());
        let slot = index.filter(|_| self.epoch == Some(ticket.epoch)).and_then(|index| self.window.get_mut(index));
        let Some(slot) = slot else {
            self.stats.late += 1;
            return Finish::Late;
        };
        slot.0 = !slot.0;
        self.in_flight -= 1;
        self.generation += 1;
        if index != Some(0) {
            return Finish::Held;
        }
        while pop_front_if(&mut self.window, |slot| slot.is_finished()).is_some() {
            self.first_sequence += 1;
        }
        match self.window.front() {
            Some(first) => Finish::Advanced(first.offset()),
            None => Finish::Advanced(self.advance(self.expected)),
        }
    }

    /// Moves the position of the empty window to `offset` or above, over what is finished there.
    fn advance(&mut self, offset: Offset) -> Offset {
        if offset > self.finished_below {
            self.finished_below = offset;
            self.generation += 1;
        }
        while let Some(range) = pop_front_if(&mut self.resumed, |range| range.start <= self.finished_below) {
            self.finished_below = self.finished_below.max(range.end);
        }
        self.finished_below
    }

    /// Tells the consumer's position: every record below it was offered to [`admit`](Self::admit). It is what is
    /// committed when nothing is in flight, since it passes over offsets that no record has (a transaction's markers,
    /// what compaction removed).
    ///
    /// ```
    /// # use kstate_api::{Offset, PartitionPosition};
    /// # use kstate_processing::{OffsetTracker, TrackerLimits};
    /// # let mut tracker = OffsetTracker::new(TrackerLimits::default());
    /// tracker.resume(PartitionPosition::at(Offset::ZERO));
    /// tracker.observe(Offset::ZERO.next());
    /// assert_eq!(tracker.next(), Some(Offset::ZERO.next()));
    /// ```
    pub fn observe(&mut self, position: Offset) {
        if self.epoch.is_some() && position > self.expected {
            self.expected = position;
            if self.window.is_empty() {
                self.advance(position);
            }
        }
    }

    /// The offset to commit, if a partition is assigned. It takes constant time.
    ///
    /// ```
    /// # use kstate_processing::{OffsetTracker, TrackerLimits};
    /// assert_eq!(OffsetTracker::new(TrackerLimits::default()).next(), None);
    /// ```
    #[must_use]
    pub fn next(&self) -> Option<Offset> {
        self.epoch.map(|_| self.window.front().map_or(self.finished_below, |slot| slot.offset()))
    }

    /// The lowest record in flight.
    ///
    /// ```
    /// # use kstate_processing::{OffsetTracker, TrackerLimits};
    /// assert_eq!(OffsetTracker::new(TrackerLimits::default()).lowest_in_flight(), None);
    /// ```
    #[must_use]
    pub fn lowest_in_flight(&self) -> Option<Offset> {
        self.window.front().map(|slot| slot.offset())
    }

    /// Whether the record at `offset` was admitted and is not finished.
    pub(crate) fn is_in_flight(&self, offset: Offset) -> bool {
        let slot = self.window.binary_search_by_key(&offset, |slot| slot.offset()).ok();
        slot.and_then(|index| self.window.get(index)).is_some_and(|slot| !slot.is_finished())
    }

    /// The position with its finished ranges, if a partition is assigned. It takes time in proportion to the window.
    ///
    /// ```
    /// # use kstate_processing::{OffsetTracker, TrackerLimits};
    /// assert_eq!(OffsetTracker::new(TrackerLimits::default()).position(), None);
    /// ```
    #[must_use]
    pub fn position(&self) -> Option<PositionSnapshot> {
        let (epoch, next) = (self.epoch?, self.next()?);
        let mut position = PartitionPosition::at(next);
        let mut slots = self.window.iter();
        while let Some(range) = next_finished(&mut slots) {
            position.finish(range);
        }
        self.resumed.iter().for_each(|range| position.finish(range.clone()));
        Some(PositionSnapshot::new(epoch, self.generation, position))
    }

    /// Notes that `snapshot` is committed. One of an earlier assignment is ignored.
    ///
    /// ```
    /// # use kstate_api::{Offset, PartitionPosition};
    /// # use kstate_processing::{OffsetTracker, TrackerLimits};
    /// # let mut tracker = OffsetTracker::new(TrackerLimits::default());
    /// tracker.resume(PartitionPosition::at(Offset::ZERO));
    /// let snapshot = tracker.position().unwrap();
    /// tracker.observe(Offset::ZERO.next()); // while the commit goes on
    /// tracker.committed(&snapshot);
    /// assert!(tracker.is_dirty(), "what happened since the snapshot is still to be committed");
    /// ```
    pub fn committed(&mut self, snapshot: &PositionSnapshot) {
        if self.epoch == Some(snapshot.epoch()) {
            self.committed = self.committed.max(snapshot.generation());
        }
    }

    /// Whether the position has changed since the last one committed.
    ///
    /// ```
    /// # use kstate_processing::{OffsetTracker, TrackerLimits};
    /// assert!(!OffsetTracker::new(TrackerLimits::default()).is_dirty());
    /// ```
    #[must_use]
    pub const fn is_dirty(&self) -> bool {
        self.generation > self.committed
    }

    /// Ends the assignment and frees its memory. Finishes that come later are counted and ignored, and there is no
    /// position to commit any more; this is the last one.
    ///
    /// ```
    /// # use kstate_api::{Offset, PartitionPosition};
    /// # use kstate_processing::{OffsetTracker, TrackerLimits};
    /// # let mut tracker = OffsetTracker::new(TrackerLimits::default());
    /// tracker.resume(PartitionPosition::at(Offset::ZERO));
    /// assert_eq!(tracker.revoke(), Some(PartitionPosition::at(Offset::ZERO)));
    /// assert_eq!(tracker.position(), None);
    /// ```
    pub fn revoke(&mut self) -> Option<PartitionPosition> {
        let last = self.position();
        *self = Self { stats: self.stats, ..Self::new(self.limits) };
        last.map(PositionSnapshot::into_position)
    }

    /// How many records were admitted and are not finished.
    ///
    /// ```
    /// # use kstate_processing::{OffsetTracker, TrackerLimits};
    /// assert_eq!(OffsetTracker::new(TrackerLimits::default()).in_flight(), 0);
    /// ```
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// How many finished records wait for a lower one.
    ///
    /// ```
    /// # use kstate_processing::{OffsetTracker, TrackerLimits};
    /// assert_eq!(OffsetTracker::new(TrackerLimits::default()).held(), 0);
    /// ```
    #[must_use]
    pub fn held(&self) -> usize {
        self.window.len() - self.in_flight
    }

    /// How many bytes the window takes, with its room to grow.
    ///
    /// ```
    /// # use kstate_processing::{OffsetTracker, TrackerLimits};
    /// assert_eq!(OffsetTracker::new(TrackerLimits::default()).window_bytes(), 0);
    /// ```
    #[must_use]
    pub fn window_bytes(&self) -> usize {
        self.window.capacity() * size_of::<Slot>()
    }

    /// What was counted over all assignments.
    ///
    /// ```
    /// # use kstate_processing::{OffsetTracker, TrackerLimits};
    /// let stats = OffsetTracker::new(TrackerLimits::default()).stats();
    /// ```
    #[must_use]
    pub const fn stats(&self) -> TrackerStats {
        self.stats
    }
}

/// The next stretch of finished records, with the offsets between them that no record has.
fn next_finished(slots: &mut vec_deque::Iter<'_, Slot>) -> Option<Range<Offset>> {
    let first = slots.by_ref().find(|slot| slot.is_finished())?.offset();
    let last = slots.by_ref().take_while(|slot| slot.is_finished()).last();
    Some(first..last.map_or(first, |slot| slot.offset()).next())
}

fn pop_front_if<T>(queue: &mut VecDeque<T>, holds: impl FnOnce(&T) -> bool) -> Option<T> {
    if queue.front().is_some_and(holds) { queue.pop_front() } else { None }
}
