//! Wipes and resets, as other threads' snapshots see them: clause R2. Stress tests: they find a race with some
//! probability, not always.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use kstate_api::{KeyValueStore, Offset, Snapshot};

use crate::{
    CaseResult, Ctx, Violation,
    cases::concurrency::{EndsOthers, joined},
    check::{Rows, dump, ensure, ensure_eq},
    ctx::{changelog, other_changelog},
    workload::State,
};

/// How many removals there are at least, while there is time, and how long one of them waits for the reader.
const REMOVALS: u32 = 40;
const LONGEST: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_millis(50);
/// How many commits there are before each.
const COMMITS: i64 = 3;

/// Fails unless `snapshot` is one of a commit, or has no offset and no position. Returns the rows it has then.
fn removed(snapshot: &dyn Snapshot) -> Result<Option<Rows>, Violation> {
    let last = snapshot.committed_offset(&changelog())?.map(Offset::get);
    if last.is_some() {
        State::at(last).ensure_is_of(snapshot)?;
        return Ok(None);
    }
    ensure_eq!(
        snapshot.committed_offset(&other_changelog())?,
        None,
        "the other offset of a snapshot without the first"
    );
    ensure!(snapshot.position()?.is_empty(), "a snapshot without offsets has the position {:?}", snapshot.position()?);
    Ok(Some(dump(snapshot)?))
}

/// Commits and removes in turn, beside a reader that judges each snapshot without offsets by `judge`.
fn ensure_shown_in_one_step(
    ctx: &Ctx,
    remove: impl Fn(&dyn KeyValueStore) -> kstate_api::Result<()>,
    judge: impl Fn(&Rows) -> CaseResult + Sync,
) -> CaseResult {
    let store = ctx.open()?;
    store.wipe()?;
    let (done, rounds) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                if let Some(rows) = removed(&*store.snapshot()?)? {
                    judge(&rows)?;
                }
                rounds.fetch_add(1, Ordering::AcqRel);
            }
            Ok(())
        });
        let ends_others = EndsOthers(&done);
        let started = Instant::now();
        let removals = (0..REMOVALS).take_while(|_| started.elapsed() < LONGEST && !reader.is_finished());
        let written = removals.into_iter().try_for_each(|_| {
            let mut state = State::new();
            for _ in 0..COMMITS {
                state.commit_next(&*store)?;
            }
            let (met, asked) = (rounds.load(Ordering::Acquire), Instant::now());
            while rounds.load(Ordering::Acquire) == met && asked.elapsed() < PATIENCE {
                thread::yield_now();
            }
            remove(&*store)
        });
        drop(ends_others);
        written?;
        joined(reader)
    })?;
    store.close()?;
    Ok(())
}

pub(crate) fn r2_snapshots_show_whole_wipes(ctx: &Ctx) -> CaseResult {
    ensure_shown_in_one_step(
        ctx,
        |store| store.wipe(),
        |rows| {
            ensure!(rows.is_empty(), "a snapshot beside a wipe has no offset, but {} rows", rows.len());
            Ok(())
        },
    )
}

pub(crate) fn r2_snapshots_show_whole_resets(ctx: &Ctx) -> CaseResult {
    // The rows stay when the offsets are forgotten, and the first commit after that writes over some of them: it is a
    // wipe that makes room for the next round.
    let all = State::at(Some(COMMITS - 1)).rows();
    ensure_shown_in_one_step(
        ctx,
        |store| {
            store.forget_offsets()?;
            store.wipe()
        },
        |rows| {
            ensure!(rows.is_empty() || *rows == all, "a snapshot beside a reset has no offset, and other rows");
            Ok(())
        },
    )
}
