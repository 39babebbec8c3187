use crate::Ticket;

/// What became of a record that was offered to an [`OffsetTracker`](crate::OffsetTracker).
///
/// ```
/// # use kstate_api::{Offset, PartitionPosition};
/// use kstate_processing::{Admission, OffsetTracker, TrackerLimits};
///
/// # let mut tracker = OffsetTracker::new(TrackerLimits::default());
/// # tracker.resume(PartitionPosition::at(Offset::ZERO));
/// match tracker.admit(Offset::ZERO).unwrap() {
///     Admission::Run(ticket) => drop(tracker.finish(ticket)),
///     Admission::Finished => (),
///     Admission::Full => unreachable!("pause the partition and offer the record again later"),
/// }
/// ```
#[derive(Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is in flight. Run it, and finish it with this ticket.
    Run(Ticket),
    /// It was finished before the restart. Do not run it again.
    Finished,
    /// There is no room for it. Pause the partition, and offer the same record again after others have finished.
    Full,
}
