use std::{
    any::Any,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
};

use kstate_api::{Error, ErrorKind, Result};

use crate::status;

/// What redb met while doing `what`, named by its remedy.
pub(crate) fn engine(what: &str, error: impl Into<redb::Error>) -> Error {
    let error = error.into();
    let kind = match &error {
        redb::Error::DatabaseClosed => return status::closed(),
        redb::Error::DatabaseAlreadyOpen | redb::Error::LockProtocolMismatch => {
            let message = format!("{what}: another owner has the store open");
            return Error::new(ErrorKind::Locked, message).with_source(error);
        }
        redb::Error::PreviousIo => {
            let message = format!("{what}: an earlier read or write of its file failed; close the store and reopen it");
            return Error::new(ErrorKind::Poisoned, message).with_source(error);
        }
        redb::Error::Io(source) => io_kind(source),
        // A lock of the engine that a panic left behind.
        redb::Error::LockPoisoned(_) => ErrorKind::Poisoned,
        redb::Error::ValueTooLarge(_) => ErrorKind::InvalidArgument,
        redb::Error::UpgradeRequired(_) | redb::Error::Unsupported => ErrorKind::Unsupported,
        redb::Error::Corrupted(_)
        | redb::Error::TableTypeMismatch { .. }
        | redb::Error::TableIsMultimap(_)
        | redb::Error::TableIsNotMultimap(_)
        | redb::Error::TypeDefinitionChanged { .. }
        | redb::Error::TableDoesNotExist(_) => ErrorKind::Corrupted,
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("{what}: {error}")).with_source(error)
}

fn io_kind(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::DiskFull,
        // The file ends before what its own pages point to, or is none of redb's.
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => ErrorKind::Corrupted,
        _ => ErrorKind::Io,
    }
}

/// Runs calls into the engine. A panic in it becomes `Corrupted`: redb trusts the pages of its file, and what it finds
/// wrong with them later than it checks, it answers with a panic.
pub(crate) fn caught<T>(what: &str, call: impl FnOnce() -> Result<T>) -> Result<T> {
    // What a panic leaves half done is the engine's, which marks it so and recovers when it is opened again.
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let message = format!("{what}: the engine panicked: {}", panic_message(&*panic));
        Err(Error::new(ErrorKind::Corrupted, message))
    })
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
