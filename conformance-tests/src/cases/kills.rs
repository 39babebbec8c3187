//! Kills at rarer moments: in a large commit, a flush, a close, after a reset. Clause O6; see the crash cases.

use std::{
    thread,
    time::{Duration, Instant},
};

use kstate_api::{Bytes, ChangelogOffsets, KeyValueStore, Offset, WriteBatch};

use crate::{
    Capability, CaseResult, Ctx,
    cases::crash::{ROUNDS, ensure_acknowledged, kill_repeatedly, random},
    check::{dump, ensure, ensure_eq, rows},
    child::{tell, wait_to_be_killed},
    ctx::{at, committed, offset, other_changelog, source},
    workload::State,
};

/// How many records a large commit has: more than an engine takes in one go if it takes them in parts.
const RECORDS: u32 = 5000;

pub(crate) fn o6_a_killed_large_commit_is_whole(ctx: &Ctx) -> CaseResult {
    if ctx.is_child() {
        let store = ctx.open()?;
        let first = committed(&*store)?.map_or(0, |last| last + 1);
        for last in first.. {
            for n in 0..RECORDS {
                store.put(&n.to_be_bytes(), format!("{last}:{}", "v".repeat(40)).as_bytes())?;
            }
            tell("committing");
            store.commit(&at(last))?;
            tell("committed");
        }
    }
    for round in 0..ROUNDS.len() {
        let child = ctx.spawn()?;
        for message in ["committing", "committed", "committing"] {
            ensure_eq!(child.next_message()?, message, "what the child said");
        }
        // Somewhere in the second or the third commit.
        thread::sleep(Duration::from_micros(random() % 40_000));
        child.kill()?;
        let store = ctx.open()?;
        let Some(last) = committed(&*store)? else {
            ensure_eq!(dump(&*store)?, rows![], "the rows of a store without an offset, round {round}");
            continue;
        };
        let rows = dump(&*store)?;
        let value = format!("{last}:{}", "v".repeat(40));
        let others = rows.iter().filter(|(_, seen)| *seen != value.as_bytes()).count();
        ensure!(
            rows.len() == RECORDS as usize && others == 0,
            "after a kill the store is at offset {last}, but of {RECORDS} rows {} are there, {others} of another commit",
            rows.len()
        );
        store.close()?;
    }
    Ok(())
}

/// How often a child is killed in a step of many mebibytes, and how many records of which length make 8 MiB and more.
const LARGE_ROUNDS: usize = 8;
const LARGE_RECORDS: u32 = 4000;
const LARGE_VALUE: usize = 2200;

fn large_value(last: i64) -> Bytes {
    Bytes::from(format!("{last}:{}", "v".repeat(LARGE_VALUE)))
}

/// Waits for somewhere in the step that the child has just begun: an earlier one took `step`.
fn wait_within(step: Duration) {
    let longest = u64::try_from(step.as_micros()).unwrap_or_default() + 2000;
    thread::sleep(Duration::from_micros(random() % longest));
}

/// Kills a child in the midst of one large step after the other, each of which writes every row and both offsets, and
/// tells that it begins.
fn ensure_large_steps_are_whole(
    ctx: &Ctx,
    step: impl Fn(&dyn KeyValueStore, i64, &Bytes) -> kstate_api::Result<()>,
) -> CaseResult {
    if ctx.is_child() {
        let store = ctx.open()?;
        let first = committed(&*store)?.map_or(0, |last| last + 1);
        for last in first.. {
            let value = large_value(last);
            step(&*store, last, &value)?;
            tell("ended");
        }
    }
    for round in 0..LARGE_ROUNDS {
        let child = ctx.spawn()?;
        ensure_eq!(child.next_message()?, "begins", "what the child said");
        let begun = Instant::now();
        ensure_eq!(child.next_message()?, "ended", "what the child said");
        let took = begun.elapsed();
        ensure_eq!(child.next_message()?, "begins", "what the child said");
        wait_within(took);
        child.kill()?;
        let store = ctx.open()?;
        let Some(last) = committed(&*store)? else {
            ensure_eq!(dump(&*store)?.len(), 0, "how many rows a store without an offset has, round {round}");
            continue;
        };
        let (rows, value) = (dump(&*store)?, large_value(last));
        let others = rows.iter().filter(|(_, seen)| *seen != value).count();
        ensure!(
            rows.len() == LARGE_RECORDS as usize && others == 0,
            "after a kill the store is at offset {last}, but of {LARGE_RECORDS} rows {} are there, {others} of another \
             step",
            rows.len()
        );
        let other = store.committed_offset(&other_changelog())?.map(Offset::get);
        ensure_eq!(other, Some(last), "the other offset after a kill");
        store.close()?;
    }
    Ok(())
}

pub(crate) fn o6_a_killed_commit_of_many_mebibytes_is_whole(ctx: &Ctx) -> CaseResult {
    ensure_large_steps_are_whole(ctx, |store, last, value| {
        for n in 0..LARGE_RECORDS {
            store.put(&n.to_be_bytes(), value)?;
        }
        tell("begins");
        store.commit(&at(last).with(other_changelog(), offset(last)))
    })
}

pub(crate) fn o6_a_killed_restore_of_many_mebibytes_is_whole(ctx: &Ctx) -> CaseResult {
    ensure_large_steps_are_whole(ctx, |store, last, value| {
        let mut batch = WriteBatch::new();
        for n in 0..LARGE_RECORDS {
            batch.put(n.to_be_bytes(), value.clone());
        }
        batch.set_offsets(&at(last).with(other_changelog(), offset(last)));
        tell("begins");
        store.restore(&batch)
    })
}

pub(crate) fn o6_a_killed_wipe_of_many_rows_is_whole(ctx: &Ctx) -> CaseResult {
    const ROWS: u32 = 20_000;
    if ctx.is_child() {
        let store = ctx.open()?;
        loop {
            tell("filling");
            for n in 0..ROWS {
                store.put(&n.to_be_bytes(), b"1")?;
            }
            store.stage_position(&source(), offset(8).into())?;
            store.commit(&at(5))?;
            store.flush()?;
            tell("wiping");
            store.wipe()?;
            tell("wiped");
        }
    }
    for _ in 0..LARGE_ROUNDS {
        let child = ctx.spawn()?;
        let mut begun = Instant::now();
        let mut took = Duration::ZERO;
        for message in ["filling", "wiping", "wiped", "filling", "wiping"] {
            ensure_eq!(child.next_message()?, message, "what the child said");
            match message {
                "wiping" => begun = Instant::now(),
                "wiped" => took = begun.elapsed(),
                _ => {}
            }
        }
        wait_within(took);
        let wiped = child.kill()?.last().is_some_and(|message| message == "wiped");
        let store = ctx.open()?;
        let (rows, last) = (dump(&*store)?.len(), committed(&*store)?);
        let next = store.position()?.next(&source()).map(Offset::get);
        ensure!(
            (rows, last, next) == (0, None, None)
                || (!wiped && (rows, last, next) == (ROWS as usize, Some(5), Some(8))),
            "after a kill beside a wipe of {ROWS} rows {rows} are there, with the offset {last:?} and the position \
             {next:?}; the wipe had returned: {wiped}"
        );
        store.close()?;
    }
    Ok(())
}

pub(crate) fn o6_a_killed_flush_or_close_loses_nothing(ctx: &Ctx) -> CaseResult {
    let work = |ctx: &Ctx| -> CaseResult {
        loop {
            let store = ctx.open()?;
            let mut state = State::of(&*store)?;
            for _ in 0..3 {
                state.commit_next(&*store)?;
                tell(&format!("committed {}", state.last().unwrap_or_default()));
            }
            store.flush()?;
            tell(&format!("durable {}", state.last().unwrap_or_default()));
            state.commit_next(&*store)?;
            tell(&format!("committed {}", state.last().unwrap_or_default()));
            store.close()?;
            tell(&format!("durable {}", state.last().unwrap_or_default()));
        }
    };
    kill_repeatedly(ctx, work, |state, acknowledged| {
        if ctx.declares(Capability::DurableCommit) { ensure_acknowledged(state, acknowledged) } else { Ok(()) }
    })
}

pub(crate) fn o6_forgotten_offsets_do_not_survive_a_kill(ctx: &Ctx) -> CaseResult {
    if ctx.is_child() {
        let store = ctx.open()?;
        store.put(b"a", b"1")?;
        store.stage_position(&source(), offset(8).into())?;
        store.commit(&at(5))?;
        store.flush()?;
        store.forget_offsets()?;
        if !ctx.declares(Capability::DurableCommit) {
            store.flush()?;
        }
        tell("forgotten");
        wait_to_be_killed();
    }
    let child = ctx.spawn()?;
    ensure_eq!(child.next_message()?, "forgotten", "what the child said");
    child.kill()?;
    let store = ctx.open()?;
    ensure_eq!(committed(&*store)?, None, "the offset after it was forgotten, and the process killed");
    ensure_eq!(store.position()?.next(&source()).map(Offset::get), None, "the position after that");
    ensure_eq!(dump(&*store)?, rows![b"a" => b"1"], "the rows after that");
    store.commit(&ChangelogOffsets::new())?;
    Ok(())
}
