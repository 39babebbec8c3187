use std::fmt;

use crate::{Error, ErrorKind};

/// The place of one record in a partition: a non-negative count.
///
/// As a *committed offset* it names the **last record whose effect is in the store** (clause O1), so a restore
/// resumes at [`next`](Offset::next). Kafka's logical offsets (−1, −2, −1001 and so on) cannot be represented:
/// "nothing yet" is `Option::None`, never a number.
///
/// ```
/// use kstate_api::Offset;
///
/// let last = Offset::new(41).unwrap();
/// assert_eq!(last.next().get(), 42);
/// assert!(Offset::new(-1001).is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(i64);

impl Offset {
    /// The first offset of a partition that has lost nothing yet.
    ///
    /// ```
    /// assert_eq!(kstate_api::Offset::ZERO.get(), 0);
    /// ```
    pub const ZERO: Self = Self(0);
    /// The largest offset Kafka can give.
    ///
    /// ```
    /// assert_eq!(kstate_api::Offset::MAX.get(), i64::MAX);
    /// ```
    pub const MAX: Self = Self(i64::MAX);

    /// The offset `value`, or `None` if it is negative.
    ///
    /// ```
    /// # use kstate_api::Offset;
    /// assert_eq!(Offset::new(0), Some(Offset::ZERO));
    /// ```
    #[must_use]
    pub const fn new(value: i64) -> Option<Self> {
        if value < 0 { None } else { Some(Self(value)) }
    }

    /// The number itself, never negative.
    ///
    /// ```
    /// # use kstate_api::Offset;
    /// assert_eq!(Offset::ZERO.get(), 0);
    /// ```
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The offset after this one; [`Offset::MAX`] stays where it is.
    ///
    /// ```
    /// # use kstate_api::Offset;
    /// assert_eq!(Offset::ZERO.next().get(), 1);
    /// assert_eq!(Offset::MAX.next(), Offset::MAX);
    /// ```
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The offset before this one, or `None` before [`Offset::ZERO`].
    ///
    /// ```
    /// # use kstate_api::Offset;
    /// assert_eq!(Offset::ZERO.next().previous(), Some(Offset::ZERO));
    /// assert_eq!(Offset::ZERO.previous(), None);
    /// ```
    #[must_use]
    pub const fn previous(self) -> Option<Self> {
        Self::new(self.0 - 1)
    }
}

impl TryFrom<i64> for Offset {
    type Error = Error;

    fn try_from(value: i64) -> Result<Self, Error> {
        Self::new(value).ok_or_else(|| Error::new(ErrorKind::InvalidArgument, format!("{value} is not an offset")))
    }
}

impl From<Offset> for i64 {
    fn from(offset: Offset) -> Self {
        offset.0
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
