/// What an [`Executor`](crate::Executor) has counted since it was made.
///
/// ```
/// # use kstate_processing::ExecutorStats;
/// assert_eq!(ExecutorStats::default().retries, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecutorStats {
    /// Records whose effects were applied.
    pub done: u64,
    /// Attempts that failed and were followed by another.
    pub retries: u64,
    /// Records that went to the dead letters.
    pub dead_letters: u64,
    /// Results of workers that came after their partition was revoked; they were dropped.
    pub late: u64,
    /// Records that were not run again since the stored position said they were finished.
    pub skipped: u64,
    /// Finished ranges that were not used at a restart.
    pub ranges_ignored: u64,
    /// Submissions that were not taken for want of room.
    pub full: u64,
}

impl ExecutorStats {
    /// Those of two executors together.
    ///
    /// ```
    /// # use kstate_processing::ExecutorStats;
    /// let stats = ExecutorStats::default();
    /// assert_eq!(stats.and(&stats), stats);
    /// ```
    #[must_use]
    pub const fn and(self, other: &Self) -> Self {
        Self {
            done: self.done + other.done,
            retries: self.retries + other.retries,
            dead_letters: self.dead_letters + other.dead_letters,
            late: self.late + other.late,
            skipped: self.skipped + other.skipped,
            ranges_ignored: self.ranges_ignored + other.ranges_ignored,
            full: self.full + other.full,
        }
    }
}
