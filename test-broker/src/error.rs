//! What can go wrong between the wish for a broker and its first answer.

use std::fmt;
use std::io;

/// The result of this crate's calls.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a broker could not be had, in words for the person who runs the tests.
#[derive(Debug)]
pub struct Error {
    what: String,
    source: Option<io::Error>,
    port_taken: bool,
}

impl Error {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), source: None, port_taken: false }
    }

    pub(crate) fn io(what: impl Into<String>, source: io::Error) -> Self {
        Self { what: what.into(), source: Some(source), port_taken: false }
    }

    /// Somebody else took a port between the moment it was found free and the broker's own bind.
    pub(crate) fn port_taken(what: impl Into<String>) -> Self {
        Self { what: what.into(), source: None, port_taken: true }
    }

    pub(crate) fn is_port_taken(&self) -> bool {
        self.port_taken
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(source) => write!(formatter, "{}: {source}", self.what),
            None => formatter.write_str(&self.what),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}
