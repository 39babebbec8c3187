use crate::{OffsetTracker, PositionSnapshot};

/// Which position a checkpoint commits, and when there is one.
///
/// | mode | there is one | it holds | the store holds effects above `next` |
/// | --- | --- | --- | --- |
/// | `Drain` | when nothing is in flight | `next` | never |
/// | `InOrder` | always | `next` | never, since effects are applied in the input's order |
/// | `Holes` | always | `next` and what is finished above it | of what is finished only |
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
    /// Effects are applied in the input's order ([`Apply::InInputOrder`](crate::Apply::InInputOrder)), so that the store
    /// always is at `next`.
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
        match self {
            Self::Drain if tracker.in_flight() > 0 => None,
            Self::Drain | Self::InOrder => tracker.position().map(PositionSnapshot::without_finished),
            Self::Holes => tracker.position(),
        }
    }
}
