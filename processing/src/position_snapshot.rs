use kstate_api::PartitionPosition;

use crate::Epoch;

/// A position as it was at one moment of one assignment.
///
/// ```
/// # use kstate_api::{Offset, PartitionPosition};
/// # use kstate_processing::{OffsetTracker, TrackerLimits};
/// # let mut tracker = OffsetTracker::new(TrackerLimits::default());
/// # tracker.resume(PartitionPosition::at(Offset::ZERO));
/// let snapshot = tracker.position().unwrap();
/// assert_eq!(snapshot.position().next(), Offset::ZERO);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PositionSnapshot {
    epoch: Epoch,
    generation: u64,
    position: PartitionPosition,
}

impl PositionSnapshot {
    pub(crate) const fn new(epoch: Epoch, generation: u64, position: PartitionPosition) -> Self {
        Self { epoch, generation, position }
    }

    /// What is to be committed.
    ///
    /// ```
    /// # use kstate_api::{Offset, PartitionPosition};
    /// # use kstate_processing::{OffsetTracker, TrackerLimits};
    /// # let mut tracker = OffsetTracker::new(TrackerLimits::default());
    /// # tracker.resume(PartitionPosition::at(Offset::ZERO));
    /// assert!(tracker.position().unwrap().position().finished().is_empty());
    /// ```
    #[must_use]
    pub const fn position(&self) -> &PartitionPosition {
        &self.position
    }

    /// The assignment it belongs to.
    ///
    /// ```
    /// # use kstate_api::{Offset, PartitionPosition};
    /// # use kstate_processing::{OffsetTracker, TrackerLimits};
    /// # let mut tracker = OffsetTracker::new(TrackerLimits::default());
    /// let epoch = tracker.resume(PartitionPosition::at(Offset::ZERO));
    /// assert_eq!(tracker.position().unwrap().epoch(), epoch);
    /// ```
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// How often the position had changed in the assignment.
    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn into_position(self) -> PartitionPosition {
        self.position
    }
}
