use std::fmt;

/// Why a branch, and with it what it came from, failed. It goes upstream with the failure.
///
/// ```
/// use kstate_processing::Failure;
///
/// assert_eq!(Failure::Reported("the disk is full").to_string(), "the disk is full");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure<C> {
    /// Whoever had the branch said so.
    Reported(C),
    /// There was no answer in time.
    TimedOut,
    /// Whoever had the branch dropped it without an answer.
    Dropped,
    /// The record went where nobody takes care of it.
    DeadEnd,
    /// The table was closed before there was an answer.
    Closed,
}

impl<C: fmt::Display> fmt::Display for Failure<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reported(cause) => cause.fmt(f),
            Self::TimedOut => f.write_str("there was no answer in time"),
            Self::Dropped => f.write_str("a branch was dropped without an answer"),
            Self::DeadEnd => f.write_str("the record has nowhere to go"),
            Self::Closed => f.write_str("the table was closed"),
        }
    }
}

impl<C: fmt::Debug + fmt::Display> std::error::Error for Failure<C> {}

/// The one outcome of a root.
///
/// ```
/// use kstate_processing::Settlement;
///
/// let settlement: Settlement<u64, String> = Settlement { root: 7, outcome: Ok(()) };
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement<R, C> {
    /// What was given to [`AckTable::open`](crate::AckTable::open).
    pub root: R,
    /// Whether it is done.
    pub outcome: Result<(), Failure<C>>,
}

/// There is no room; here is what was not taken. Hold it, and let others be answered first.
///
/// ```
/// use kstate_processing::Full;
///
/// let Full(root) = Full(7);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full<T>(pub T);

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there are as many open acks as there may be")
    }
}

impl<T: fmt::Debug> std::error::Error for Full<T> {}
