/// What an [`OffsetTracker`](crate::OffsetTracker) has counted since it was made.
///
/// ```
/// # use kstate_processing::{OffsetTracker, TrackerLimits};
/// assert_eq!(OffsetTracker::new(TrackerLimits::default()).stats().late, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrackerStats {
    /// Finishes that came after their partition was revoked; they changed nothing.
    pub late: u64,
    /// Records that were not run again since a stored position said they were finished.
    pub skipped: u64,
    /// Metadata of committed offsets that was not used.
    pub ranges_ignored: u64,
}
