use kstate_api::{Error, ErrorKind, Offset, Position, Result};

use super::{LogRetention, RestoreOptions};
use crate::{LogBounds, LoggedStore, source_header::was_committed};

/// Why a store was emptied before its restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WipeReason {
    /// It had no offset for this changelog, so nobody can tell what its records belong to.
    NoOffset,
    /// The log begins beyond what the store has: records in between are gone.
    LogStartBeyondStore,
    /// The store has more than the log ever held: the log was truncated or made anew.
    StoreBeyondLogEnd,
    /// The store holds the effect of source records that the group has not committed and that will come again: the
    /// group's offsets expired or were reset.
    StoreBeyondSource,
}

/// The offset the store can be trusted to have, after a wipe where it has none.
pub(crate) fn starting_point(
    logged: &LoggedStore,
    committed: &Position,
    bounds: LogBounds,
    options: &RestoreOptions,
) -> Result<(Option<Offset>, Option<WipeReason>)> {
    let store = logged.store();
    let stored = store.committed_offset(logged.changelog())?;
    check_group(logged, &store.position()?, committed, options)?;
    let reason = match stored {
        None => WipeReason::NoOffset,
        Some(offset) if offset.next() > bounds.end => WipeReason::StoreBeyondLogEnd,
        Some(offset) if offset.next() < bounds.start => WipeReason::LogStartBeyondStore,
        // The source is committed before the store, so a store is never ahead of its group by itself.
        Some(_) if !was_committed(&store.position()?, committed, &options.bare) => WipeReason::StoreBeyondSource,
        Some(offset) => return Ok((Some(offset), None)),
    };
    if options.retention == LogRetention::DropsOldest && bounds.start > Offset::ZERO {
        let message = format!(
            "changelog {} begins at offset {}: what the store needs before it was dropped, and the log is not compacted",
            logged.changelog(),
            bounds.start
        );
        return Err(Error::new(ErrorKind::Unsupported, message).with_store(store.name()));
    }
    if reason == WipeReason::NoOffset {
        tracing::debug!(store = store.name(), changelog = %logged.changelog(), "no offset: restoring from the start");
    } else {
        tracing::warn!(
            store = store.name(),
            changelog = %logged.changelog(),
            ?reason,
            ?stored,
            ?bounds,
            "the store does not match its changelog: wiping it and restoring from the start"
        );
    }
    store.wipe()?;
    Ok((None, Some(reason)))
}

/// An error if `position` is of a group whose offsets are gone while its source cannot be read again from the start.
pub(super) fn check_group(
    logged: &LoggedStore,
    position: &Position,
    committed: &Position,
    options: &RestoreOptions,
) -> Result<()> {
    let start = |partition| options.source_starts.next(partition).filter(|start| *start > Offset::ZERO);
    let lost = position.iter().find_map(|(partition, _)| {
        let nothing_committed = committed.next(partition).is_none();
        start(partition).filter(|_| nothing_committed).map(|start| (partition, start))
    });
    let Some((partition, start)) = lost else { return Ok(()) };
    let message = format!(
        "the group has no offset for {partition} any more, and its log begins at {start}: what was processed before does \
         not come again; commit an offset for the group, or delete the store and its changelog {} to begin anew",
        logged.changelog()
    );
    Err(Error::new(ErrorKind::Unsupported, message).with_store(logged.store().name()))
}
