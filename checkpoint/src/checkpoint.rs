use std::time::{Duration, Instant};

use kstate_api::{ChangelogOffsets, CommitOutcome, Position, Result};

use crate::{ChangelogWriter, SourceCommitter, Task, changes::Changes};

/// What a checkpoint made permanent.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Committed {
    /// The source position that was committed; empty if nothing was to do.
    pub position: Position,
    /// The changelog offsets that the stores were committed with.
    pub changelog_offsets: ChangelogOffsets,
    /// How many records went to the changelogs.
    pub changelog_records: u64,
    /// How long it took.
    pub elapsed: Duration,
}

/// Takes one checkpoint of `tasks` at the source position `position` (clause P1): at least once if `changelog` and `source`
/// are on their own, exactly once if they are two sides of one transaction that the source commit ends.
///
/// Call it between two source records, with a position that counts every record processed so far and no other.
/// Partitions that have not moved since the last checkpoint may be left out; if nothing has moved, nothing is staged and
/// nothing has to be healed, nothing is done (clause P2).
///
/// # Errors
/// Before the source commit, any failure leaves the stores and the group as they were. A record that the broker would
/// refuse for its size fails the checkpoint before any record is sent. The changes are still staged: repeat the call, or
/// roll them back, seek the source to what the group has committed and go on. Records of the failed checkpoint that are
/// in the changelog already do no harm: the next checkpoint *heals* their keys, by writing after them what the store has
/// committed (clause P3).
///
/// If the source commit itself fails, the group may have moved all the same, unless the error says `NotApplied`: repeat
/// the call with the changes still staged, or close the task and restore it. The same holds if a store's commit fails
/// afterwards; all stores are tried then, the first error is returned (clause P6), and the store that failed keeps its
/// old offset. If the changes were rolled back instead, every further checkpoint is `Poisoned` until the store was
/// restored: their source records do not come again.
pub fn checkpoint(
    tasks: &[Task],
    position: &Position,
    changelog: &mut dyn ChangelogWriter,
    source: &mut dyn SourceCommitter,
) -> Result<Committed> {
    let started = Instant::now();
    let mut committed = Committed::default();
    let changes = Changes::of_all(tasks, position)?;

    // All before the first is sent: what a refused checkpoint has sent already could not be taken back.
    changes.iter().try_for_each(|changes| {
        changes.visit(&mut |_, record| {
            committed.changelog_records += 1;
            changelog.check(record)
        })
    })?;
    if committed.changelog_records == 0 && position.is_empty() {
        return Ok(committed);
    }
    if committed.changelog_records > 0 {
        let sent = send(&changes, changelog).inspect_err(|_| changes.iter().for_each(Changes::are_uncommitted))?;
        // A transaction's outputs were delivered, too.
        committed.changelog_offsets = changes.iter().filter_map(|changes| changes.acknowledged(&sent)).collect();
    }
    source.commit(position).inspect_err(|error| {
        let may_be_committed = error.commit_outcome() != Some(CommitOutcome::NotApplied);
        changes.iter().for_each(if may_be_committed { Changes::are_owed } else { Changes::are_uncommitted });
    })?;
    committed.position = position.clone();

    let outcomes = changes.iter().map(|changes| changes.commit(&committed.changelog_offsets));
    // Every store, also after one has failed.
    outcomes.fold(Ok(()), Result::and)?;

    committed.elapsed = started.elapsed();
    tracing::debug!(
        records = committed.changelog_records,
        elapsed_ms = u64::try_from(committed.elapsed.as_millis()).unwrap_or(u64::MAX),
        "checkpoint committed"
    );
    Ok(committed)
}

/// Writes all changes, and returns once every delivery was acknowledged.
fn send(changes: &[Changes<'_>], changelog: &mut dyn ChangelogWriter) -> Result<ChangelogOffsets> {
    for changes in changes {
        changes.visit(&mut |logged, record| changelog.append(logged.changelog(), record))?;
    }
    changelog.flush()
}
