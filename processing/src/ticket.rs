use crate::Epoch;

/// The right to finish one admitted record, once.
///
/// It cannot be copied, and [`OffsetTracker::finish`](crate::OffsetTracker::finish) takes it: finishing twice does not
/// compile. A ticket that is dropped leaves its record unfinished: the position stays at it for as long as the
/// partition is assigned, and the next owner runs it again.
///
/// ```compile_fail,E0382
/// # use kstate_api::{Offset, PartitionPosition};
/// # use kstate_processing::{Admission, OffsetTracker, TrackerLimits};
/// # let mut tracker = OffsetTracker::new(TrackerLimits::default());
/// # tracker.resume(PartitionPosition::at(Offset::ZERO));
/// # let Ok(Admission::Run(ticket)) = tracker.admit(Offset::ZERO) else { return };
/// tracker.finish(ticket);
/// tracker.finish(ticket); // used after it was moved
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a record whose ticket is dropped is never finished"]
pub struct Ticket {
    pub(crate) epoch: Epoch,
    /// Counts the records of the epoch, so that gaps between offsets cost nothing.
    pub(crate) sequence: u64,
}
