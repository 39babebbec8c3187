use std::time::{Duration, Instant};

use kstate_api::{ChangelogOffsets, Position, Result, TopicPartition};

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
/// Before the source commit, any failure leaves the stores and the group as they were: the changes are still staged and
/// the call can be repeated. A record that the broker would refuse for its size fails the checkpoint before any record
/// is sent. If the source commit itself fails, the group may have moved all the same: repeat the call, or assign the
/// source anew before anything is restored. Afterwards only a store's commit can fail; all stores are tried and the
/// first error is returned (clause P6). The store that failed keeps its old offset and is restored from its changelog
/// when it is opened again.
///
/// After a failed flush or source commit some changes may be in the changelog. Repeating the checkpoint, with those
/// changes still staged, supersedes them. Rolling them back does not: a later checkpoint then makes a restore apply
/// records that this store never committed. So after such a failure repeat, or close the task and restore it.
pub fn checkpoint(
    tasks: &[Task],
    position: &Position,
    changelog: &mut dyn ChangelogWriter,
    source: &mut dyn SourceCommitter,
) -> Result<Committed> {
    let started = Instant::now();
    let mut committed = Committed::default();

    // All before the first is sent: what a refused checkpoint has sent already could not be taken back.
    for task in tasks {
        visit_staged(task, position, &mut |_, record| changelog.check(record))?;
    }
    for task in tasks {
        visit_staged(task, position, &mut |partition, record| {
            committed.changelog_records += 1;
            changelog.append(partition, record)
        })?;
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

/// Calls `visit` with every change that the task's stores have staged, as the record of its changelog partition.
fn visit_staged(
    task: &Task,
    position: &Position,
    visit: &mut dyn FnMut(&TopicPartition, ChangelogRecord<'_>) -> Result<()>,
) -> Result<()> {
    let header = encode_source_position(&task.position_in(position))?;
    for logged in task.stores() {
        logged.store().staged_changes(&mut |key, value| {
            let record = ChangelogRecord { key: Some(key), value, source_position: Some(&header) };
            visit(logged.changelog(), record).map_err(|error| error.with_store(logged.store().name()))
        })?;
    }
    Ok(())
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
