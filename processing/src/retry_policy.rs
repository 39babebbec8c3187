use std::time::Duration;

/// How often a record that failed is tried again, and how long it waits before.
///
/// ```
/// use std::time::Duration;
///
/// use kstate_processing::RetryPolicy;
///
/// let policy = RetryPolicy::new(4).with_backoff(Duration::from_millis(100), Duration::from_millis(300));
/// let waits: Vec<_> = (1..4).map(|failed| policy.backoff(failed).as_millis()).collect();
/// assert_eq!(waits, [100, 200, 300]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    pub(crate) max_attempts: u32,
    pub(crate) first: Duration,
    pub(crate) longest: Duration,
}

impl Default for RetryPolicy {
    /// Five attempts, with 100 ms between the first two, doubled from then on up to 10 s.
    fn default() -> Self {
        Self { max_attempts: 5, first: Duration::from_millis(100), longest: Duration::from_secs(10) }
    }
}

impl RetryPolicy {
    /// The default policy with so many attempts, counting the first.
    ///
    /// ```
    /// # use kstate_processing::RetryPolicy;
    /// assert_eq!(RetryPolicy::new(3).max_attempts(), 3);
    /// ```
    #[must_use]
    pub fn new(max_attempts: u32) -> Self {
        Self { max_attempts, ..Self::default() }
    }

    /// The same policy with a wait of `first` after the first failure, doubled after each up to `longest`.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kstate_processing::RetryPolicy;
    /// let policy = RetryPolicy::new(3).with_backoff(Duration::from_millis(10), Duration::from_secs(1));
    /// ```
    #[must_use]
    pub const fn with_backoff(self, first: Duration, longest: Duration) -> Self {
        Self { first, longest, ..self }
    }

    /// How many attempts a record has.
    ///
    /// ```
    /// # use kstate_processing::RetryPolicy;
    /// assert_eq!(RetryPolicy::default().max_attempts(), 5);
    /// ```
    #[must_use]
    pub const fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    /// How long a record waits that failed so many times.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kstate_processing::RetryPolicy;
    /// assert_eq!(RetryPolicy::default().backoff(1), Duration::from_millis(100));
    /// ```
    #[must_use]
    pub fn backoff(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.longest)
    }
}
