use kstate_api::{Error, ErrorKind, Result};

use crate::{Apply, CheckpointMode, RecordOrder, RetryPolicy, TrackerLimits};

/// What becomes of a record that has had all its attempts.
///
/// ```
/// use kstate_processing::OnExhausted;
///
/// assert_eq!(OnExhausted::default(), OnExhausted::DeadLetter);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnExhausted {
    /// It goes to [`Sink::dead_letter`](crate::Sink::dead_letter) and is finished.
    #[default]
    DeadLetter,
    /// The executor halts. The position stays at the record.
    Halt,
}

/// What the stores of a task can do.
///
/// ```
/// use kstate_processing::StoreAbilities;
///
/// let legacy = StoreAbilities { concurrent_reads: false, ..StoreAbilities::default() };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoreAbilities {
    /// Several threads can read while the owner writes.
    pub concurrent_reads: bool,
    /// Positions with their finished ranges are committed in the same atomic step as the records.
    pub atomic_positions: bool,
}

impl Default for StoreAbilities {
    /// Both, as every store over a `Backend` can.
    fn default() -> Self {
        Self { concurrent_reads: true, atomic_positions: true }
    }
}

/// How an [`Executor`](crate::Executor) is built. What cannot be had is refused there, with the way out.
///
/// ```
/// use kstate_processing::{CheckpointMode, ExecutorSettings, RecordOrder};
///
/// let settings = ExecutorSettings {
///     workers: 8,
///     order: RecordOrder::Key,
///     checkpoint: CheckpointMode::Holes,
///     ..ExecutorSettings::default()
/// };
/// assert!(settings.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutorSettings {
    /// How many threads process records. With one, the task's own thread does, and there is no other.
    pub workers: usize,
    /// Which records wait for each other.
    pub order: RecordOrder,
    /// When effects are applied.
    pub apply: Apply,
    /// Which position a checkpoint commits.
    pub checkpoint: CheckpointMode,
    /// Whether the position is committed in one transaction with what was produced.
    pub exactly_once: bool,
    /// How many records may be in flight in the whole task: queued, running, waiting for a retry or for their turn.
    pub max_in_flight: usize,
    /// How far records of a partition may go ahead of its lowest one that is not finished.
    pub limits: TrackerLimits,
    /// What becomes of a record that failed.
    pub retry: RetryPolicy,
    /// What becomes of a record that failed for good.
    pub on_exhausted: OnExhausted,
    /// What the stores can do.
    pub stores: StoreAbilities,
}

impl Default for ExecutorSettings {
    /// One worker, per-key order, effects as completed, drained checkpoints, 1024 records in flight.
    fn default() -> Self {
        Self {
            workers: 1,
            order: RecordOrder::default(),
            apply: Apply::default(),
            checkpoint: CheckpointMode::default(),
            exactly_once: false,
            max_in_flight: 1024,
            limits: TrackerLimits::default(),
            retry: RetryPolicy::default(),
            on_exhausted: OnExhausted::default(),
            stores: StoreAbilities::default(),
        }
    }
}

impl ExecutorSettings {
    /// Checks that the settings ask for nothing that cannot be had (clause A4).
    ///
    /// # Errors
    /// `Config`, with the reason and the way out.
    ///
    /// ```
    /// # use kstate_processing::ExecutorSettings;
    /// assert!(ExecutorSettings { workers: 0, ..ExecutorSettings::default() }.check().is_err());
    /// ```
    pub fn check(&self) -> Result<()> {
        let impossible = [
            (self.workers == 0, "no worker would process anything: have one at least (one is the task's own thread)"),
            (
                self.max_in_flight < self.workers,
                "fewer records may be in flight than there are workers, so some would never work: raise `max_in_flight` \
                 to the number of workers, or have fewer",
            ),
            (
                self.workers > 1 && !self.stores.concurrent_reads,
                "several workers read while the task writes, which a store cannot do: have one worker, or a store with \
                 concurrent reads",
            ),
            (
                self.checkpoint == CheckpointMode::InOrder && self.apply != Apply::InInputOrder,
                "checkpoints without draining or holes need a store that is exactly at the position: apply effects with \
                 `Apply::InInputOrder`, or choose `CheckpointMode::Drain` or `Holes`",
            ),
            (
                self.checkpoint == CheckpointMode::Holes && self.exactly_once && !self.stores.atomic_positions,
                "a store does not keep positions in its commits, so what is finished above the position would be \
                 applied twice after a crash: choose `CheckpointMode::Drain` or `InOrder`, or at least once",
            ),
            (
                self.checkpoint == CheckpointMode::Holes
                    && self.limits.metadata().is_some_and(|limit| limit.brake() < 64),
                "the group's metadata has no room for finished ranges: raise its limit to 100 characters, or choose \
                 `CheckpointMode::Drain` or `InOrder`",
            ),
            (self.retry.max_attempts == 0, "no attempt at all is allowed: have one at least, which is to never retry"),
            (
                self.retry.first > self.retry.longest,
                "the first wait before a retry is longer than the longest: lower the first, or raise the longest",
            ),
        ];
        match impossible.into_iter().find(|(is_so, _)| *is_so) {
            Some((_, message)) => Err(Error::new(ErrorKind::Config, message)),
            None => Ok(()),
        }
    }

    /// The limits of each partition's tracker: with holes, positions have to fit into the group's metadata.
    pub(crate) fn tracker_limits(&self) -> TrackerLimits {
        match (self.checkpoint, self.limits.metadata()) {
            (CheckpointMode::Holes, None) => self.limits.with_metadata(crate::MetadataLimit::default()),
            _ => self.limits,
        }
    }
}
