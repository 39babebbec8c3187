use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

/// One assignment of one partition to one tracker.
///
/// No two assignments of a process have the same epoch. So what belongs to an earlier assignment, or to another
/// partition, is never taken for something of this one.
///
/// ```
/// use kstate_processing::Epoch;
///
/// assert!(Epoch::next() < Epoch::next());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(u64);

impl Epoch {
    /// An epoch that was never given out before.
    ///
    /// ```
    /// # use kstate_processing::Epoch;
    /// assert_ne!(Epoch::next(), Epoch::next());
    /// ```
    #[must_use]
    pub fn next() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
