use std::time::{Duration, Instant};

use kstate_api::{ChangelogOffsets, Position, Result};

use crate::{ChangelogRecord, ChangelogWriter, SourceCommitter, Task, encode_source_position};

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

/// Takes one checkpoint of `tasks` at the source position `position`, at least once (clause P1).
///
/// Call it between two source records, with a position that counts every record processed so far and no other.
/// Partitions that have not moved since the last checkpoint may be left out; if nothing has moved and nothing is
/// staged, nothing is done (clause P2).
///
/// # Errors
/// Before the source commit, any failure leaves everything as it was: the changes are still staged, the stores and the
/// group have their old offsets, and the call can be repeated. Afterwards only a store's commit can fail; all stores
/// are tried and the first error is returned (clause P6). The store that failed keeps its old offset and is restored
/// from its changelog when it is opened again.
pub fn checkpoint(
    tasks: &[Task],
    position: &Position,
    changelog: &mut dyn ChangelogWriter,
    source: &mut dyn SourceCommitter,
) -> Result<Committed> {
    let started = Instant::now();
    let mut committed = Committed::default();

    for task in tasks {
        committed.changelog_records += append_staged(task, position, changelog)?;
    }
    if committed.changelog_records == 0 && position.is_empty() {
        return Ok(committed);
    }
    if committed.changelog_records > 0 {
        committed.changelog_offsets = changelog.flush()?;
    }
    source.commit(position)?;
    committed.position = position.clone();

    let mut outcome = Ok(());
    for task in tasks {
        outcome = outcome.and(commit_stores(task, position, &committed.changelog_offsets));
    }
    outcome?;

    committed.elapsed = started.elapsed();
    tracing::debug!(
        records = committed.changelog_records,
        elapsed_ms = u64::try_from(committed.elapsed.as_millis()).unwrap_or(u64::MAX),
        "checkpoint committed"
    );
    Ok(committed)
}

/// Appends every change that the task's stores have staged; returns how many.
fn append_staged(task: &Task, position: &Position, changelog: &mut dyn ChangelogWriter) -> Result<u64> {
    let header = encode_source_position(&task.position_in(position))?;
    let mut records = 0;
    for logged in task.stores() {
        logged.store().staged_changes(&mut |key, value| {
            let record = ChangelogRecord { key: Some(key), value, source_position: Some(&header) };
            changelog.append(logged.changelog(), record).map_err(|error| error.with_store(logged.store().name()))?;
            records += 1;
            Ok(())
        })?;
    }
    Ok(records)
}

/// Commits every store of the task, also after one has failed (clause P6); the first error is returned.
fn commit_stores(task: &Task, position: &Position, acknowledged: &ChangelogOffsets) -> Result<()> {
    let mut outcome = Ok(());
    for logged in task.stores() {
        let store = logged.store();
        let own = acknowledged.get(logged.changelog()).map(|offset| (logged.changelog().clone(), offset));
        let commit = || {
            for (source, next) in task.position_in(position).iter() {
                store.stage_position(source, next)?;
            }
            store.commit(&own.into_iter().collect())
        };
        outcome = outcome.and(commit());
    }
    outcome
}
