//! The file of a [`LegacyStore`](super::LegacyStore): all of its rows, written anew by each commit.

use std::{
    fs::{self, File},
    io::{self, Write},
    iter,
    path::Path,
};

use kstate_api::{Bytes, CommitOutcome, Error, ErrorKind, Result, sync_path};

use super::Rows;

const MAGIC: &[u8] = b"legacy-rows\x01";

/// The rows in the file `path`; none if there is no file.
pub(super) fn read(path: &Path) -> Result<Rows> {
    match fs::read(path) {
        Ok(bytes) => decode(&bytes).ok_or_else(|| Error::new(ErrorKind::Corrupted, "the file of rows is damaged")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Rows::new()),
        Err(error) => Err(Error::io(format!("cannot read {}", path.display()), error)),
    }
}

/// Makes `rows` what the file `path` holds, whole and durable, or leaves what it held. An error says which.
pub(super) fn write(path: &Path, rows: &Rows) -> Result<()> {
    let aside = path.with_extension("new");
    let written = File::create(&aside).and_then(|mut file| {
        file.write_all(&encode(rows))?;
        file.sync_all()?;
        fs::rename(&aside, path)
    });
    let failed = |error| Error::io(format!("cannot write {}", path.display()), error);
    written.map_err(|error| failed(error).with_commit_outcome(CommitOutcome::NotApplied))?;
    // The new name is there, and nobody can tell whether a power loss would leave it.
    sync_path(path).map_err(|error| error.with_commit_outcome(CommitOutcome::Unknown))
}

fn encode(rows: &Rows) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for part in rows.iter().flat_map(|(key, value)| [key, value]) {
        bytes.extend((part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part);
    }
    bytes.extend(checksum(&bytes).to_be_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Option<Rows> {
    let (body, stored) = bytes.split_last_chunk()?;
    let mut rest = body.strip_prefix(MAGIC).filter(|_| checksum(body) == u64::from_be_bytes(*stored))?;
    let mut part = || {
        let (len, tail) = rest.split_first_chunk()?;
        let (part, tail) = tail.split_at_checked(usize::try_from(u64::from_be_bytes(*len)).ok()?)?;
        rest = tail;
        Some(Bytes::copy_from_slice(part))
    };
    Some(iter::from_fn(|| Some((part()?, part()?))).collect())
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
