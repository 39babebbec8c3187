//! Why a step failed, in one line for the end of the output.

use std::fmt;

/// The result of a step.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Why a step failed.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    /// For a failure that has a cause: `cannot run cargo: No such file or directory`.
    pub(crate) fn because(what: impl fmt::Display, cause: impl fmt::Display) -> Self {
        Self(format!("{what}: {cause}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
