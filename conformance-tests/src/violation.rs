use std::{error::Error, fmt, panic::Location};

use crate::Clause;

/// What a case returns.
pub type CaseResult = Result<(), Violation>;

/// Why a case failed: the clause, and what was seen.
///
/// A [`kstate_api::Error`] becomes one with `?`: a call failed that had to succeed.
///
/// ```
/// use kstate_conformance_tests::{Clause, Violation};
///
/// let violation = Violation::new("the offset is 9000, not 120").of(Clause::O3);
/// assert!(violation.to_string().starts_with("violates O3 (an offset is stored exactly as given): the offset is 9000"));
/// ```
#[derive(Debug)]
pub struct Violation {
    clause: Option<Clause>,
    message: String,
    location: &'static Location<'static>,
    note: Option<String>,
}

impl Violation {
    /// A violation of the clause that the case is about.
    ///
    /// ```
    /// # use kstate_conformance_tests::Violation;
    /// assert_eq!(Violation::new("seen").clause(), None);
    /// ```
    #[track_caller]
    pub fn new(message: impl Into<String>) -> Self {
        Self { clause: None, message: message.into(), location: Location::caller(), note: None }
    }

    /// The same violation, of `clause`, unless it has one already.
    ///
    /// ```
    /// # use kstate_conformance_tests::{Clause, Violation};
    /// assert_eq!(Violation::new("seen").of(Clause::R1).of(Clause::R2).clause(), Some(Clause::R1));
    /// ```
    #[must_use]
    pub fn of(mut self, clause: Clause) -> Self {
        self.clause.get_or_insert(clause);
        self
    }

    /// The same violation, with lines for people below it.
    pub(crate) fn with_note(mut self, note: &str) -> Self {
        self.note = Some(note.to_owned());
        self
    }

    /// The clause that is violated; always there in what a [`Suite`](crate::Suite) returns.
    ///
    /// ```
    /// # use kstate_conformance_tests::{Clause, Violation};
    /// assert_eq!(Violation::new("seen").of(Clause::R1).clause(), Some(Clause::R1));
    /// ```
    #[must_use]
    pub const fn clause(&self) -> Option<Clause> {
        self.clause
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(clause) = self.clause {
            write!(f, "violates {clause} ({}): ", clause.title())?;
        }
        write!(f, "{} [{}:{}]", self.message, self.location.file(), self.location.line())?;
        self.note.as_ref().map_or(Ok(()), |note| write!(f, "\n{note}"))
    }
}

impl Error for Violation {}

impl From<kstate_api::Error> for Violation {
    #[track_caller]
    fn from(error: kstate_api::Error) -> Self {
        Self::new(format!("a call failed that had to succeed: {error} ({:?})", error.kind()))
    }
}

impl From<std::io::Error> for Violation {
    #[track_caller]
    fn from(error: std::io::Error) -> Self {
        Self::new(format!("the suite itself met an error of the operating system: {error}"))
    }
}
