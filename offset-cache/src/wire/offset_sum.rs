use std::fmt;

use kstate_api::{Error, ErrorKind, Offset};

/// A sum of offsets as Kafka sends it: never negative, and stopping at `i64::MAX` instead of wrapping.
///
/// ```
/// use kstate_api::Offset;
/// use kstate_offset_cache::wire::OffsetSum;
///
/// let ends = [Offset::new(40).unwrap(), Offset::new(2).unwrap()];
/// assert_eq!(OffsetSum::of(ends).get(), 42);
/// assert_eq!(OffsetSum::of([Offset::MAX, Offset::MAX]), OffsetSum::MAX);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OffsetSum(i64);

impl OffsetSum {
    /// The sum of nothing.
    ///
    /// ```
    /// assert_eq!(kstate_offset_cache::wire::OffsetSum::ZERO.get(), 0);
    /// ```
    pub const ZERO: Self = Self(0);
    /// The largest sum that can be sent, and what a larger one becomes.
    ///
    /// As the sum of a task's *end* offsets it is also how Kafka says that an end is not known.
    ///
    /// ```
    /// assert_eq!(kstate_offset_cache::wire::OffsetSum::MAX.get(), i64::MAX);
    /// ```
    pub const MAX: Self = Self(i64::MAX);

    /// The sum `value`, or `None` if it is negative.
    ///
    /// ```
    /// use kstate_offset_cache::wire::OffsetSum;
    ///
    /// assert_eq!(OffsetSum::new(0), Some(OffsetSum::ZERO));
    /// assert_eq!(OffsetSum::new(-2), None);
    /// ```
    #[must_use]
    pub const fn new(value: i64) -> Option<Self> {
        if value < 0 { None } else { Some(Self(value)) }
    }

    /// The sum of `offsets`, with a warning if it is too large to be sent.
    ///
    /// ```
    /// use kstate_offset_cache::wire::OffsetSum;
    ///
    /// assert_eq!(OffsetSum::of([]), OffsetSum::ZERO);
    /// ```
    pub fn of(offsets: impl IntoIterator<Item = Offset>) -> Self {
        let sum = offsets.into_iter().try_fold(0_i64, |sum, offset| sum.checked_add(offset.get()));
        sum.map_or_else(
            || {
                tracing::warn!("a task's offsets sum up to more than can be sent; the largest sum is sent instead");
                Self::MAX
            },
            Self,
        )
    }

    /// The number itself, never negative.
    ///
    /// ```
    /// assert_eq!(kstate_offset_cache::wire::OffsetSum::MAX.get(), i64::MAX);
    /// ```
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl TryFrom<i64> for OffsetSum {
    type Error = Error;

    fn try_from(value: i64) -> Result<Self, Error> {
        let refused = || Error::new(ErrorKind::InvalidArgument, format!("{value} is not a sum of offsets"));
        Self::new(value).ok_or_else(refused)
    }
}

impl fmt::Display for OffsetSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
