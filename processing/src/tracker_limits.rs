use crate::MetadataLimit;

/// How far an [`OffsetTracker`](crate::OffsetTracker) lets records go ahead of the lowest one that is not finished.
///
/// ```
/// use kstate_processing::{MetadataLimit, TrackerLimits};
///
/// let limits = TrackerLimits::default().with_window(1000).with_metadata(MetadataLimit::default());
/// assert_eq!(limits.window(), 1000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackerLimits {
    window: usize,
    metadata: Option<MetadataLimit>,
}

impl Default for TrackerLimits {
    /// A window of 16 384 records, whose positions fit into a group's metadata if no offsets are missing.
    fn default() -> Self {
        Self { window: 16_384, metadata: None }
    }
}

impl TrackerLimits {
    /// The same limits with a window of `records`, at least one: from the lowest record that is not finished to the
    /// last one admitted. They are counted, so offsets that no record has do not count.
    ///
    /// ```
    /// # use kstate_processing::TrackerLimits;
    /// assert_eq!(TrackerLimits::default().with_window(0).window(), 1);
    /// ```
    #[must_use]
    pub fn with_window(self, records: usize) -> Self {
        Self { window: records.max(1), ..self }
    }

    /// The same limits, for positions that are committed with their ranges in a group's metadata: a record is admitted
    /// only if, however the ones in flight finish, the metadata stays below the [brake](MetadataLimit::brake).
    ///
    /// ```
    /// # use kstate_processing::{MetadataLimit, TrackerLimits};
    /// let limits = TrackerLimits::default().with_metadata(MetadataLimit::default());
    /// assert!(limits.metadata().is_some());
    /// ```
    #[must_use]
    pub const fn with_metadata(self, limit: MetadataLimit) -> Self {
        Self { metadata: Some(limit), ..self }
    }

    /// How many records the window has.
    ///
    /// ```
    /// # use kstate_processing::TrackerLimits;
    /// assert_eq!(TrackerLimits::default().window(), 16_384);
    /// ```
    #[must_use]
    pub const fn window(&self) -> usize {
        self.window
    }

    /// The limit of the group's metadata, if positions go there with their ranges.
    ///
    /// ```
    /// # use kstate_processing::TrackerLimits;
    /// assert_eq!(TrackerLimits::default().metadata(), None);
    /// ```
    #[must_use]
    pub const fn metadata(&self) -> Option<MetadataLimit> {
        self.metadata
    }
}
