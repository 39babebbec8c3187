/// What an assignment aims at; the names and defaults are Kafka's.
///
/// ```
/// use kstate_offset_cache::assignment::AssignmentOptions;
///
/// let options = AssignmentOptions::new().num_standby_replicas(1);
/// assert_eq!(options, AssignmentOptions::default().num_standby_replicas(1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssignmentOptions {
    pub(super) acceptable_recovery_lag: u64,
    pub(super) num_standby_replicas: usize,
    pub(super) max_warmup_replicas: usize,
}

impl AssignmentOptions {
    /// No standbys, two warm-ups at a time, a lag of 10 000 is acceptable.
    ///
    /// ```
    /// let options = kstate_offset_cache::assignment::AssignmentOptions::new();
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self { acceptable_recovery_lag: 10_000, num_standby_replicas: 0, max_warmup_replicas: 2 }
    }

    /// A member whose lag is at most this, in offsets, may run a task at once: it is caught up, restores the rest and
    /// starts. `u64::MAX` accepts every lag, unknown ones too, so nothing is ever warmed up.
    ///
    /// ```
    /// # use kstate_offset_cache::assignment::AssignmentOptions;
    /// let options = AssignmentOptions::new().acceptable_recovery_lag(1_000);
    /// ```
    #[must_use]
    pub const fn acceptable_recovery_lag(mut self, offsets: u64) -> Self {
        self.acceptable_recovery_lag = offsets;
        self
    }

    /// How many standbys each stateful task has besides its active replica, if there are members enough.
    ///
    /// ```
    /// # use kstate_offset_cache::assignment::AssignmentOptions;
    /// let options = AssignmentOptions::new().num_standby_replicas(1);
    /// ```
    #[must_use]
    pub const fn num_standby_replicas(mut self, replicas: usize) -> Self {
        self.num_standby_replicas = replicas;
        self
    }

    /// How many tasks of the group may be warming up at a time, at least one: without any, nothing could move.
    ///
    /// ```
    /// # use kstate_offset_cache::assignment::AssignmentOptions;
    /// let options = AssignmentOptions::new().max_warmup_replicas(8);
    /// assert_eq!(AssignmentOptions::new().max_warmup_replicas(0), AssignmentOptions::new().max_warmup_replicas(1));
    /// ```
    #[must_use]
    pub const fn max_warmup_replicas(mut self, replicas: usize) -> Self {
        self.max_warmup_replicas = if replicas == 0 { 1 } else { replicas };
        self
    }
}

impl Default for AssignmentOptions {
    fn default() -> Self {
        Self::new()
    }
}
