use crate::{OffsetTracker, PositionSnapshot};

/// Which position a checkpoint commits, and when there is one.
///
/// | mode | there is one | what it says is finished above `next`, and the store holds |
/// | --- | --- | --- |
/// | `Drain` | when nothing is in flight | what was so at the start and was not passed yet |
/// | `InOrder` | always | what was so at the start; else nothing, since effects are applied in the input's order |
/// | `Holes` | always | all records that are |
///
/// What is finished above `next` at the start was left by another mode: it stays in the position, or it would run again
/// after the next start.
///
/// ```
/// use kstate_api::{Offset, PartitionPosition};
/// use kstate_processing::{CheckpointMode, OffsetTracker, TrackerLimits};
///
/// let mut tracker = OffsetTracker::new(TrackerLimits::default());
/// tracker.resume(PartitionPosition::at(Offset::ZERO));
/// let ticket = tracker.admit(Offset::ZERO).unwrap();
/// assert_eq!(CheckpointMode::Drain.snapshot(&tracker), None, "drain first");
/// assert!(CheckpointMode::Holes.snapshot(&tracker).is_some());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CheckpointMode {
    /// Nothing may be in flight: a checkpoint waits for the slowest record.
    #[default]
    Drain,
    /// Effects are applied, and records finished, in the input's order
    /// ([`Apply::InInputOrder`](crate::Apply::InInputOrder)): the store is at `next`.
    InOrder,
    /// The position says which records above `next` are finished, in the same atomic commit as the store's records: a
    /// slow record neither holds up the others nor makes them run again.
    Holes,
}

impl CheckpointMode {
    /// The position of `tracker` to commit; `None` if a partition is not assigned, or has to be drained first.
    ///
    /// ```
    /// # use kstate_processing::{CheckpointMode, OffsetTracker, TrackerLimits};
    /// let tracker = OffsetTracker::new(TrackerLimits::default());
    /// assert_eq!(CheckpointMode::Holes.snapshot(&tracker), None);
    /// ```
    #[must_use]
    pub fn snapshot(self, tracker: &OffsetTracker) -> Option<PositionSnapshot> {
        // With nothing in flight, or with all finished in order, what is above `next` was there at the start.
        if self == Self::Drain && tracker.in_flight() > 0 { None } else { tracker.position() }
    }
}
