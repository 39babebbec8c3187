use kstate_api::{Offset, Position, Result};

use crate::{ChangelogReader, LoggedStore, unsettled::Unsettled};

mod applier;
mod options;
mod replay;
mod start;

pub use options::{LogRetention, RestoreOptions};
pub(crate) use replay::{Replay, Uncommitted};
pub use start::WipeReason;
pub(crate) use start::starting_point;

/// How far a restore has come.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RestoreProgress {
    /// The next offset to read.
    pub next: Offset,
    /// Where the restore ends.
    pub end: Offset,
    /// Records applied so far.
    pub applied: u64,
}

/// What a restore did.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Restored {
    /// The offset the store had before; `None` if it had none or was wiped.
    pub from: Option<Offset>,
    /// The end of the log when the restore began; the store now has everything before it.
    pub end: Offset,
    /// Records applied.
    pub applied: u64,
    /// Records passed over since the source commit of their checkpoint never happened (clause P3).
    pub uncommitted: u64,
    /// Records passed over since they had no key.
    pub keyless: u64,
    /// Why the store was wiped first, if it was.
    pub wiped: Option<WipeReason>,
}

/// Brings a store from its committed offset to the present end of its changelog (clause P4).
///
/// `committed` is what the consumer group has committed of the task's source partitions: a fact from the broker, where
/// a missing partition means that nothing was ever committed, not that a look-up failed. Changes of a checkpoint that
/// the group never committed are passed over, for their source records will come again (clause P3). A record without
/// the header is applied; one with a header that cannot be read fails the restore, for either would be a guess.
///
/// What was passed over is healed by the next [`checkpoint`](crate::checkpoint). Until then the store's offset stays
/// before it, so that a restore after a crash finds it again.
///
/// Each batch is one atomic step of the store with its offset, so the restore can be killed anywhere and resumed.
///
/// # Errors
/// What the broker or the store met; `Unavailable` if the log stops short of its end for too long; `Unsupported` if the
/// log has dropped records that the store does not have ([`LogRetention::DropsOldest`]), or if the group's offsets are
/// gone and its source cannot be read again ([`RestoreOptions::source_starts`]). The store then holds a prefix
/// of the log and its offset, and is not ready for use.
pub fn restore(
    logged: &LoggedStore,
    committed: &Position,
    reader: &mut dyn ChangelogReader,
    options: &RestoreOptions,
    progress: &mut dyn FnMut(RestoreProgress),
) -> Result<Restored> {
    let bounds = reader.bounds(logged.changelog())?;
    *logged.unsettled() = Unsettled::default();
    let (from, wiped) = starting_point(logged, committed, bounds, options)?;
    let next = from.map_or(bounds.start, Offset::next);
    let restored = Restored { from, end: bounds.end, applied: 0, uncommitted: 0, keyless: 0, wiped };
    if next >= bounds.end {
        return Ok(restored);
    }
    reader.seek(logged.changelog(), next)?;
    let mut replay = Replay::new(logged, committed, options, Uncommitted::PassOver, restored);
    replay.run(next, reader, progress)?;
    let restored = replay.restored();
    logged.unsettled().uncommitted.extend(replay.into_tail());
    tracing::info!(
        store = logged.store().name(),
        changelog = %logged.changelog(),
        applied = restored.applied,
        uncommitted = restored.uncommitted,
        end = %bounds.end,
        "restored"
    );
    Ok(restored)
}
