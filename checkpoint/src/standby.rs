use kstate_api::{Offset, Position, Result};

use crate::{
    ChangelogReader, LoggedStore, RestoreOptions, RestoreProgress, Restored, WipeReason,
    restore::{Replay, Uncommitted, starting_point},
};

/// What an update of a standby did.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StandbyUpdate {
    /// The next offset to read.
    pub next: Offset,
    /// The end of the log when the update began.
    pub end: Offset,
    /// Records applied.
    pub applied: u64,
    /// Why the store was wiped first, if it was.
    pub wiped: Option<WipeReason>,
}

/// Brings a standby as far as the group has committed, or to the present end of the changelog.
///
/// A standby is a copy of a store whose task runs elsewhere. Unlike a [`restore`](crate::restore) it stops before the
/// first record of a checkpoint that is not `committed`, for that checkpoint may be under way: call again, with what the
/// group has committed by then, about once in a commit interval. A task that is to run on the copy restores it first,
/// which reads only what is missing.
///
/// # Errors
/// As [`restore`](crate::restore). What was applied by then stays, with its offset.
///
/// ```
/// use kstate_api::{Position, Result};
/// use kstate_checkpoint::{ChangelogReader, LoggedStore, RestoreOptions, update_standby};
///
/// /// How many records the standby lacks still.
/// fn follow(copy: &LoggedStore, committed: &Position, log: &mut dyn ChangelogReader) -> Result<i64> {
///     let update = update_standby(copy, committed, log, &RestoreOptions::new(), &mut |_| {})?;
///     Ok(update.end.get() - update.next.get())
/// }
/// ```
pub fn update_standby(
    logged: &LoggedStore,
    committed: &Position,
    reader: &mut dyn ChangelogReader,
    options: &RestoreOptions,
    progress: &mut dyn FnMut(RestoreProgress),
) -> Result<StandbyUpdate> {
    let bounds = reader.bounds(logged.changelog())?;
    let (from, wiped) = starting_point(logged, committed, bounds, options)?;
    let next = from.map_or(bounds.start, Offset::next);
    let mut update = StandbyUpdate { next, end: bounds.end, applied: 0, wiped };
    if next >= bounds.end {
        return Ok(update);
    }
    reader.seek(logged.changelog(), next)?;
    let restored = Restored { from, end: bounds.end, applied: 0, uncommitted: 0, keyless: 0, wiped };
    let mut replay = Replay::new(logged, committed, options, Uncommitted::Stop, restored);
    update.next = replay.run(next, reader, progress)?;
    update.applied = replay.restored().applied;
    tracing::debug!(
        store = logged.store().name(),
        changelog = %logged.changelog(),
        applied = update.applied,
        next = %update.next,
        end = %update.end,
        "standby updated"
    );
    Ok(update)
}
