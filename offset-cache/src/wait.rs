use std::time::{Duration, Instant};

use crate::Cancellation;

/// How soon a cancelled wait is noticed, at the latest.
const SLICE: Duration = Duration::from_millis(10);

/// How long to wait for a lock that another has (clause D2): not at all, unless asked for, and never without a bound.
///
/// ```
/// use std::time::Duration;
///
/// use kstate_api::{ErrorKind, TaskId};
/// use kstate_offset_cache::{Cancellation, StateDirectory, Wait};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let temporary = tempfile::tempdir()?;
/// let directory = StateDirectory::open(temporary.path(), "word-count")?;
/// let task = TaskId::new(0, 1);
/// let owner = directory.lock(task)?;
///
/// // At once.
/// assert_eq!(directory.lock(task).unwrap_err().kind(), ErrorKind::Locked);
///
/// // After 30 ms, or as soon as `shutdown` is cancelled.
/// let shutdown = Cancellation::new();
/// let wait = Wait::up_to(Duration::from_millis(30)).cancelled_by(&shutdown);
/// assert_eq!(directory.lock_within(task, &wait).unwrap_err().kind(), ErrorKind::Locked);
///
/// drop(owner);
/// assert!(directory.lock_within(task, &wait).is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Wait {
    limit: Duration,
    cancellation: Cancellation,
}

impl Wait {
    /// Not at all: what another has is `Locked` at once.
    ///
    /// ```
    /// # use kstate_offset_cache::Wait;
    /// let wait = Wait::not();
    /// ```
    #[must_use]
    pub fn not() -> Self {
        Self::default()
    }

    /// As long as `limit`, and then give up.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kstate_offset_cache::Wait;
    /// let wait = Wait::up_to(Duration::from_secs(30));
    /// ```
    #[must_use]
    pub fn up_to(limit: Duration) -> Self {
        Self { limit, cancellation: Cancellation::new() }
    }

    /// The same wait, which also gives up within 10 ms after `cancellation` is cancelled.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kstate_offset_cache::{Cancellation, Wait};
    /// let shutdown = Cancellation::new();
    /// let wait = Wait::up_to(Duration::from_secs(30)).cancelled_by(&shutdown);
    /// ```
    #[must_use]
    pub fn cancelled_by(mut self, cancellation: &Cancellation) -> Self {
        self.cancellation = cancellation.clone();
        self
    }

    /// Begins to wait.
    pub(crate) fn begin(&self) -> Waiting<'_> {
        // A limit beyond the clock's end is none.
        Waiting { until: Instant::now().checked_add(self.limit), cancellation: &self.cancellation }
    }
}

/// A wait that has begun.
#[derive(Debug)]
pub(crate) struct Waiting<'w> {
    until: Option<Instant>,
    cancellation: &'w Cancellation,
}

impl Waiting<'_> {
    /// How long to sleep before the next look; `None` when it is time to give up.
    pub(crate) fn slice(&self) -> Option<Duration> {
        if self.cancellation.is_cancelled() {
            return None;
        }
        let left = self.until.map_or(SLICE, |until| until.saturating_duration_since(Instant::now()));
        (!left.is_zero()).then(|| left.min(SLICE))
    }

    /// Why it was given up, for a message: nothing if nobody meant to wait.
    pub(crate) fn verdict(&self) -> &'static str {
        if self.cancellation.is_cancelled() { " (the wait for it was cancelled)" } else { "" }
    }
}
