//! Kills at rarer moments: in a large commit, a flush, a close, after a reset. Clause O6; see the crash cases.

use std::{thread, time::Duration};

use kstate_api::{ChangelogOffsets, Offset};

use crate::{
    Capability, CaseResult, Ctx,
    cases::crash::{ROUNDS, ensure_acknowledged, kill_repeatedly, random},
    check::{dump, ensure, ensure_eq, rows},
    child::{tell, wait_to_be_killed},
    ctx::{at, committed, offset, source},
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
        store.stage_position(&source(), offset(8))?;
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
