use std::time::Duration;

use kstate_checkpoint::Committed;
use kstate_processing::ExecutorStats;

/// What an app has done since it was started, and what it is at.
///
/// ```
/// use kstate_kafka::app::AppStats;
///
/// let stats = AppStats::default();
/// assert_eq!(stats.checkpoint_time_average(), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AppStats {
    /// Tasks that run here now.
    pub tasks: usize,
    /// Copies that are kept here now of tasks that run elsewhere ([`App::standbys`](super::App::standbys)).
    pub standby_tasks: usize,
    /// Source records that were taken in.
    pub records: u64,
    /// Those of them whose processor failed and that were passed over ([`OnError::Skip`](super::OnError::Skip)).
    pub skipped_records: u64,
    /// Checkpoints that committed something.
    pub checkpoints: u64,
    /// Checkpoints that failed; most of them were taken again.
    pub failed_checkpoints: u64,
    /// How long all checkpoints together took, in which the thread processed nothing else.
    pub checkpoint_time: Duration,
    /// How long the longest took.
    pub longest_checkpoint: Duration,
    /// Records that were written to changelogs.
    pub changelog_records: u64,
    /// The bytes that are staged now, in the stores of the tasks that run here, for the next checkpoint to commit.
    pub staged_bytes: u64,
    /// Records that restores have applied.
    pub restored_records: u64,
    /// Restores, copies' updates too, that wiped their store first since it could not be trusted, or was new
    /// ([`WipeReason`](kstate_checkpoint::WipeReason)).
    pub wiped_stores: u64,
    /// Records that updates of copies have applied.
    pub standby_records: u64,
    /// How often a thread has begun anew: it closed its tasks, left the group and joined it again.
    pub restarts: u64,
    /// Records that workers have or that wait for them: in the lane of another, for another attempt, or for their turn.
    pub in_flight: usize,
    /// For how long the oldest of those is in flight that were given to workers; zero if there is none.
    pub oldest_in_flight: Duration,
    /// Those of them that wait for another attempt.
    pub waiting_for_retry: usize,
    /// Finished records above one that is not: holes in the position.
    pub finished_above: usize,
    /// Outputs that were not delivered and did not have to be ([`Role::Ignored`](kstate_processing::Role::Ignored)).
    pub ignored_failures: u64,
    /// Deliveries, done or failed, of outputs of which one had to be ([`Role::AnyOf`](kstate_processing::Role::AnyOf)),
    /// after another had decided.
    pub late_acks: u64,
    /// What the workers have done.
    pub workers: ExecutorStats,
}

impl AppStats {
    /// How long a checkpoint takes on average; `None` before the first.
    #[must_use]
    pub fn checkpoint_time_average(&self) -> Option<Duration> {
        let checkpoints = u32::try_from(self.checkpoints).unwrap_or(u32::MAX);
        self.checkpoint_time.checked_div(checkpoints)
    }

    pub(crate) fn checkpointed(&mut self, committed: &Committed) {
        self.checkpoints += 1;
        self.checkpoint_time += committed.elapsed;
        self.longest_checkpoint = self.longest_checkpoint.max(committed.elapsed);
        self.changelog_records += committed.changelog_records;
    }

    /// Those of two threads together.
    pub(crate) fn and(self, other: &Self) -> Self {
        Self {
            tasks: self.tasks + other.tasks,
            standby_tasks: self.standby_tasks + other.standby_tasks,
            records: self.records + other.records,
            skipped_records: self.skipped_records + other.skipped_records,
            checkpoints: self.checkpoints + other.checkpoints,
            failed_checkpoints: self.failed_checkpoints + other.failed_checkpoints,
            checkpoint_time: self.checkpoint_time + other.checkpoint_time,
            longest_checkpoint: self.longest_checkpoint.max(other.longest_checkpoint),
            changelog_records: self.changelog_records + other.changelog_records,
            staged_bytes: self.staged_bytes + other.staged_bytes,
            restored_records: self.restored_records + other.restored_records,
            wiped_stores: self.wiped_stores + other.wiped_stores,
            standby_records: self.standby_records + other.standby_records,
            restarts: self.restarts + other.restarts,
            in_flight: self.in_flight + other.in_flight,
            oldest_in_flight: self.oldest_in_flight.max(other.oldest_in_flight),
            waiting_for_retry: self.waiting_for_retry + other.waiting_for_retry,
            finished_above: self.finished_above + other.finished_above,
            ignored_failures: self.ignored_failures + other.ignored_failures,
            late_acks: self.late_acks + other.late_acks,
            workers: self.workers.and(&other.workers),
        }
    }
}
