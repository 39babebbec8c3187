//! What `RocksDB` says in text, as kinds of error that name the remedy.

use kstate_api::{Error, ErrorKind};

pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the store is closed")
}

/// An error the engine met while doing `what`.
pub(crate) fn engine(what: &str, error: rocksdb::Error) -> Error {
    Error::new(kind(&error), format!("{what}: {error}")).with_source(error)
}

/// Whether a file was missing: damage, unless a live owner may have deleted it just now.
pub(crate) fn is_missing_file(error: &rocksdb::Error) -> bool {
    error.as_ref().contains("No such file or directory")
}

fn kind(error: &rocksdb::Error) -> ErrorKind {
    use rocksdb::ErrorKind as Engine;

    let text = error.as_ref();
    let any = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    // The binding keeps only the engine's words, so the words decide where its own kinds are too coarse.
    if any(&["No space left on device", "Disk quota exceeded", "Max allowed space was reached"]) {
        return ErrorKind::DiskFull;
    }
    if text.contains("lock hold by current process")
        || text.contains("While lock file") && any(&["Resource temporarily unavailable", "Permission denied"])
    {
        return ErrorKind::Locked;
    }
    if any(&["Column families not opened", "newer version of RocksDB", "unknown tag"]) || newer_table_format(text) {
        return ErrorKind::NewerFormat;
    }
    match error.kind() {
        Engine::Corruption => ErrorKind::Corrupted,
        Engine::IOError if is_missing_file(error) => ErrorKind::Corrupted,
        Engine::InvalidArgument => ErrorKind::Config,
        Engine::NotSupported => ErrorKind::Unsupported,
        Engine::Busy | Engine::TryAgain | Engine::TimedOut => ErrorKind::Busy,
        _ => ErrorKind::Io,
    }
}

/// Whether a table's footer has a version this engine does not know. The engine cannot tell a newer one from a damaged
/// one; versions are counted up from 0, so a small number is a version and a large one is damage.
fn newer_table_format(text: &str) -> bool {
    let version = text.split_once("unsupported format_version ").and_then(|(_, rest)| rest.split(' ').next());
    version.and_then(|version| version.parse::<u64>().ok()).is_some_and(|version| version < 256)
}
