use std::fmt;

/// A clause of the contract of [`kstate_api`]: what a failing case says is violated.
///
/// ```
/// use kstate_conformance_tests::Clause;
///
/// assert_eq!(Clause::O3.to_string(), "O3");
/// assert_eq!(Clause::O3.title(), "an offset is stored exactly as given");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Clause {
    /// A committed offset is that of the last record in the store.
    O1,
    /// Records, offsets and position are committed in one atomic step.
    O2,
    /// An offset is stored exactly as given.
    O3,
    /// Nothing committed is `None`.
    O4,
    /// A store commits only partitions it owns.
    O5,
    /// Consistency is unconditional, durability is chosen.
    O6,
    /// A failed commit says what became of it.
    O7,
    /// Keys are ordered as unsigned bytes; ranges.
    R1,
    /// The owner reads its own writes, others committed data.
    R2,
    /// A cursor is a stable view, and fails for good.
    R3,
    /// An empty value is a value; deletes; all or nothing.
    R4,
    /// Rollback, close and drop discard what is staged.
    R5,
    /// A directory has one owner.
    D2,
    /// What is declared to the suite is what the store can do.
    Declaration,
}

impl Clause {
    /// What the clause demands, in a few words.
    ///
    /// ```
    /// # use kstate_conformance_tests::Clause;
    /// assert_eq!(Clause::D2.title(), "a directory has one owner");
    /// ```
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::O1 => "a committed offset is that of the last record in the store",
            Self::O2 => "records, offsets and position are committed in one atomic step",
            Self::O3 => "an offset is stored exactly as given",
            Self::O4 => "nothing committed is `None`",
            Self::O5 => "a store commits only partitions it owns",
            Self::O6 => "consistency is unconditional, durability is chosen",
            Self::O7 => "a failed commit says what became of it",
            Self::R1 => "keys are ordered as unsigned bytes, and ranges include both ends",
            Self::R2 => "the owner reads its own writes, others only committed data",
            Self::R3 => "a cursor is a stable view, and fails for good",
            Self::R4 => "an empty value is a value, and a write is all or nothing",
            Self::R5 => "rollback, close and drop discard what is staged, and a closed store is closed",
            Self::D2 => "a directory has one owner",
            Self::Declaration => "what is declared is what the store can do",
        }
    }
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
