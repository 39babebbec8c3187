use std::time::Duration;

use kstate_api::{Error, ErrorKind, Result};

/// What it means if there is no answer in time.
///
/// ```
/// use kstate_processing::OnTimeout;
///
/// assert_eq!(OnTimeout::default(), OnTimeout::Fail);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnTimeout {
    /// A failure, which goes upstream as [`Failure::TimedOut`](crate::Failure::TimedOut).
    #[default]
    Fail,
    /// A success that is counted, for those who would rather lose a record than wait.
    Ack,
}

/// How an [`AckTable`](crate::AckTable) is built.
///
/// ```
/// use std::time::Duration;
///
/// use kstate_processing::{AckSettings, OnTimeout};
///
/// let settings = AckSettings::default().with_timeout(Duration::from_secs(30), OnTimeout::Fail);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckSettings {
    pub(crate) roots: u32,
    pub(crate) nested: u32,
    pub(crate) timeout: Option<Duration>,
    pub(crate) on_timeout: OnTimeout,
}

impl Default for AckSettings {
    /// Up to 16 384 roots and as many nested entries, without a timeout.
    fn default() -> Self {
        Self { roots: 16_384, nested: 16_384, timeout: None, on_timeout: OnTimeout::Fail }
    }
}

impl AckSettings {
    /// The same settings with room for so many open roots, and so many nested entries (splits and merges) below them.
    ///
    /// They are counted apart, so that new roots never take the room that others need to end. Nested entries need as
    /// many as there can be roots, times the splits and merges that each goes through; with less, a split can be
    /// [`Full`](crate::Full) until a timeout makes room.
    ///
    /// ```
    /// # use kstate_processing::AckSettings;
    /// let settings = AckSettings::default().with_capacity(1000, 3000);
    /// ```
    #[must_use]
    pub const fn with_capacity(self, roots: u32, nested: u32) -> Self {
        Self { roots, nested, ..self }
    }

    /// The same settings with a limit to how long an entry may be open.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kstate_processing::{AckSettings, OnTimeout};
    /// let settings = AckSettings::default().with_timeout(Duration::from_secs(30), OnTimeout::Ack);
    /// ```
    #[must_use]
    pub const fn with_timeout(self, timeout: Duration, on_timeout: OnTimeout) -> Self {
        Self { timeout: Some(timeout), on_timeout, ..self }
    }

    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |message| Err(Error::new(ErrorKind::Config, message));
        if self.roots == 0 {
            return refuse("an ack table without room for roots takes nothing: give it room for one at least");
        }
        if self.roots.checked_add(self.nested).is_none_or(|all| all == u32::MAX) {
            return refuse("an ack table has room for fewer than 2^32 - 1 entries: give it less");
        }
        if self.timeout == Some(Duration::ZERO) {
            return refuse("a timeout of zero answers for everybody at once: give it a length, or have none");
        }
        Ok(())
    }
}

/// What an [`AckTable`](crate::AckTable) has counted since it was made.
///
/// ```
/// # use kstate_processing::{AckSettings, AckTable};
/// let table: AckTable<u64, String> = AckTable::new(AckSettings::default()).unwrap();
/// assert_eq!(table.stats().late, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AckStats {
    /// Roots that are done.
    pub acked: u64,
    /// Roots that failed.
    pub failed: u64,
    /// Answers that came after the matter was decided; they changed nothing.
    pub late: u64,
    /// Branches that were dropped without an answer, in time.
    pub dropped: u64,
    /// Entries, roots and nested ones, that were not answered in time.
    pub timed_out: u64,
    /// Of these, the ones that counted as done ([`OnTimeout::Ack`]).
    pub acked_by_timeout: u64,
    /// Times that something was not taken for want of room.
    pub full: u64,
}
