//! A toy of an engine that takes no long keys, and what the bugs of such stores do.

use std::ops::Bound;

use bytes::Bytes;
use kstate_api::{Capabilities, CommitOutcome, Error, ErrorKind, KeyRange, MAX_KEY_LEN, Result, WriteBatch};

use super::bug::Bug;

/// The longest key that the engine takes, in bytes.
pub(crate) const LIMIT: usize = 600;

impl Bug {
    /// Whether it is planted in a store whose engine takes no long keys.
    pub(crate) const fn has_short_keys(self) -> bool {
        matches!(
            self,
            Self::KeyLimitIsKeptAtTheCommit
                | Self::KeyLimitIsOneTooMany
                | Self::KeyLimitIs100
                | Self::LongestKeyLosesItsLastByte
                | Self::PutAllStagesUpToTheKeyLimit
                | Self::DeleteIgnoresTheKeyLimit
                | Self::PutIfAbsentIgnoresTheKeyLimit
                | Self::RestoreIgnoresTheKeyLimit
                | Self::RefusedKeyRollsBack
                | Self::ReadOfALongKeyFails
                | Self::SnapshotIsAskedForLongKeys
                | Self::LongBoundFails
                | Self::LongBoundIsCutLikeAKey
        )
    }
}

/// `capabilities`, and what the engine says of its keys.
pub(super) fn told(capabilities: Capabilities, bug: Bug) -> Capabilities {
    capabilities.with_max_key_len(match bug {
        Bug::KeyLimitIsKeptAtTheCommit => MAX_KEY_LEN,
        Bug::KeyLimitIsOneTooMany => LIMIT + 1,
        Bug::KeyLimitIs100 => 100,
        _ => LIMIT,
    })
}

/// What the engine takes of `batch`.
pub(super) fn taken(batch: &WriteBatch, bug: Bug) -> Result<WriteBatch> {
    let mut taken = WriteBatch::new();
    for (key, value) in batch.records() {
        let key = match bug {
            Bug::LongestKeyLosesItsLastByte => key.get(..LIMIT - 1).unwrap_or(key),
            Bug::KeyLimitIsKeptAtTheCommit | Bug::KeyLimitIsOneTooMany if key.len() > LIMIT => {
                let error = Error::new(ErrorKind::InvalidArgument, "the toy takes no such key");
                return Err(error.with_commit_outcome(CommitOutcome::NotApplied));
            }
            _ => key,
        };
        assert!(key.len() <= LIMIT, "the engine is handed a key of {} bytes", key.len());
        match value {
            Some(value) => taken.put(key, value.clone()),
            None => taken.delete(key),
        }
    }
    if batch.forgets_offsets() {
        taken.forget_offsets();
    }
    taken.set_offsets(batch.offsets());
    batch.position().iter().for_each(|(partition, next)| taken.set_position(partition.clone(), next.clone()));
    Ok(taken)
}

/// Panics if the engine is asked for a key that it does not take.
pub(super) fn ensure_asked(key: &[u8], bug: Bug) {
    let told = matches!(bug, Bug::KeyLimitIsKeptAtTheCommit | Bug::KeyLimitIsOneTooMany);
    assert!(told || key.len() <= LIMIT, "the engine is asked for a key of {} bytes", key.len());
}

/// Panics if the engine is handed bounds that it does not take.
pub(super) fn ensure_scanned(range: &KeyRange<'_>, bug: Bug) {
    for bound in [range.start(), range.end()] {
        if let Bound::Included(key) | Bound::Excluded(key) = bound {
            ensure_asked(key, bug);
        }
    }
}

/// The bounds of `range`, cut as if they were keys.
pub(super) fn cut<'r>(range: &'r KeyRange<'_>) -> KeyRange<'r> {
    let cut = |key: &'r [u8]| key.get(..LIMIT).unwrap_or(key);
    KeyRange::new(range.start().map(cut), range.end().map(cut))
}

/// A batch without the records whose keys are too long.
pub(super) fn without_long_keys(batch: &mut WriteBatch) {
    let mut kept = WriteBatch::new();
    for (key, value) in batch.records().filter(|(key, _)| key.len() <= LIMIT) {
        match value {
            Some(value) => kept.put(Bytes::copy_from_slice(key), value.clone()),
            None => kept.delete(key),
        }
    }
    if batch.forgets_offsets() {
        kept.forget_offsets();
    }
    kept.set_offsets(batch.offsets());
    batch.position().iter().for_each(|(partition, next)| kept.set_position(partition.clone(), next.clone()));
    *batch = kept;
}
