use std::time::{Duration, Instant};

/// When a checkpoint is due: whichever comes first (clause P2).
///
/// ```
/// use std::time::Duration;
/// use kstate_checkpoint::TriggerOptions;
///
/// let options = TriggerOptions::new().interval(Duration::from_millis(100)).max_records(10_000);
/// ```
#[derive(Clone, Debug)]
pub struct TriggerOptions {
    interval: Duration,
    max_records: u64,
    max_uncommitted_bytes: u64,
}

impl Default for TriggerOptions {
    fn default() -> Self {
        Self { interval: Duration::from_secs(5), max_records: u64::MAX, max_uncommitted_bytes: 64 << 20 }
    }
}

impl TriggerOptions {
    /// Every 5 s, or when 64 MiB are staged.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The time between two checkpoints.
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// How many source records at most between two checkpoints.
    #[must_use]
    pub fn max_records(mut self, records: u64) -> Self {
        self.max_records = records;
        self
    }

    /// How many bytes of staged writes at most; checked after each record, so one record may pass it.
    #[must_use]
    pub fn max_uncommitted_bytes(mut self, bytes: u64) -> Self {
        self.max_uncommitted_bytes = bytes;
        self
    }
}

/// Tells when the next checkpoint is due. It has no clock: time is an argument.
///
/// ```
/// use std::time::{Duration, Instant};
/// use kstate_checkpoint::{Trigger, TriggerOptions};
///
/// let start = Instant::now();
/// let mut trigger = Trigger::new(TriggerOptions::new(), start);
/// assert!(!trigger.is_due(start, 0));
/// assert!(trigger.is_due(start + Duration::from_secs(5), 0));
/// ```
#[derive(Clone, Debug)]
pub struct Trigger {
    options: TriggerOptions,
    last: Instant,
    records: u64,
}

impl Trigger {
    /// Counts from `now`.
    #[must_use]
    pub fn new(options: TriggerOptions, now: Instant) -> Self {
        Self { options, last: now, records: 0 }
    }

    /// Counts one source record processed.
    pub fn record(&mut self) {
        self.records = self.records.saturating_add(1);
    }

    /// Whether a checkpoint is due at `now` with `uncommitted_bytes` staged.
    #[must_use]
    pub fn is_due(&self, now: Instant, uncommitted_bytes: u64) -> bool {
        now.saturating_duration_since(self.last) >= self.options.interval
            || self.records >= self.options.max_records
            || uncommitted_bytes >= self.options.max_uncommitted_bytes
    }

    /// Counts anew from `now`: a checkpoint was taken.
    pub fn reset(&mut self, now: Instant) {
        self.last = now;
        self.records = 0;
    }
}
