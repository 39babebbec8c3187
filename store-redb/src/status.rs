use std::sync::atomic::{AtomicU8, Ordering};

use kstate_api::{Error, ErrorKind, Result};

const OPEN: u8 = 0;
const POISONED: u8 = 1;
const CLOSED: u8 = 2;

/// Whether a store is open, shared with the cursors and snapshots that outlive it.
#[derive(Debug, Default)]
pub(crate) struct Status(AtomicU8);

impl Status {
    /// An error unless the store is open.
    pub(crate) fn check(&self) -> Result<()> {
        match self.0.load(Ordering::Acquire) {
            OPEN => Ok(()),
            POISONED => Err(Error::new(
                ErrorKind::Poisoned,
                "an earlier commit may or may not have happened; close the store and open it again",
            )),
            _ => Err(closed()),
        }
    }

    /// An error if the store is closed. Views of a poisoned one are still what they were.
    pub(crate) fn check_not_closed(&self) -> Result<()> {
        if self.0.load(Ordering::Acquire) == CLOSED { Err(closed()) } else { Ok(()) }
    }

    pub(crate) fn poison(&self) {
        // A closed store stays closed.
        let _ = self.0.compare_exchange(OPEN, POISONED, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Whether this call closed it.
    pub(crate) fn close(&self) -> bool {
        self.0.swap(CLOSED, Ordering::AcqRel) != CLOSED
    }
}

pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the store is closed")
}
