//! What a killed process leaves: clause O6. The child, which is this program again, works until it is killed; the
//! parent kills it and judges what it left by the offset alone.

use std::{
    cell::Cell,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use kstate_api::{KeyValueStore, Offset};

use crate::{
    Capability, CaseResult, Ctx, Violation,
    check::{dump, ensure, ensure_eq, rows},
    child::{tell, wait_to_be_killed},
    ctx::{at, changelog, committed},
    workload::{State, scramble},
};

/// How often the child is killed, and after how many acknowledged steps.
pub(crate) const ROUNDS: [usize; 8] = [1, 2, 3, 5, 8, 13, 21, 34];
/// A child whose commits do not survive a kill flushes each so often.
const FLUSH_EACH: i64 = 6;

/// How long such a child rests after each commit.
const UNFLUSHED_REST: Duration = Duration::from_millis(3);

/// What the child said of its last steps, in the order in which they happened.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged {
    /// The offset of the last commit that returned, since the last wipe.
    pub(crate) committed: Option<i64>,
    /// The offset of the last commit that a flush followed, or that the store called durable, since the last wipe.
    durable: Option<i64>,
    /// Whether the last wipe, if there was one, returned.
    wiped: bool,
    /// How many wipes have returned, also before the last one.
    wipes: u32,
}

impl Acknowledged {
    fn take(&mut self, message: &str) -> CaseResult {
        let (what, value) = message.split_once(' ').unwrap_or((message, ""));
        match (what, value.parse().ok()) {
            ("committed", last @ Some(_)) => self.committed = last,
            ("durable", last @ Some(_)) => self.durable = last,
            ("wiping", None) => *self = Self { wipes: self.wipes, ..Self::default() },
            ("wiped", None) => {
                self.wiped = true;
                self.wipes += 1;
            }
            _ => return Err(Violation::new(format!("the suite itself does not understand the child's `{message}`"))),
        }
        Ok(())
    }
}

/// In the child: goes on from where the store is, by `step`, until it is killed.
fn work(ctx: &Ctx, step: impl Fn(&mut State, &dyn KeyValueStore) -> kstate_api::Result<()>) -> CaseResult {
    let store = ctx.open()?;
    let mut state = State::of(&*store)?;
    loop {
        step(&mut state, &*store)?;
        let last = state.last().unwrap_or_default();
        tell(&format!("committed {last}"));
        if !ctx.declares(Capability::DurableCommit) && last % FLUSH_EACH == FLUSH_EACH - 1 {
            store.flush()?;
        }
        if let Some(durable) = store.durable_offset(&changelog())?.map(Offset::get) {
            tell(&format!("durable {durable}"));
        }
        if !ctx.declares(Capability::DurableCommit) {
            // A flush takes far longer than a commit: without a rest nearly every kill would meet one, and none the
            // commits that are in memory only.
            thread::sleep(UNFLUSHED_REST);
        }
    }
}

/// A number that is another one each time.
pub(crate) fn random() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    scramble(now.subsec_nanos().into())
}

/// Kills a child in the midst of its `work`, again and again, and judges what it leaves each time.
pub(crate) fn kill_repeatedly(
    ctx: &Ctx,
    work: impl FnOnce(&Ctx) -> CaseResult,
    judge: impl Fn(&State, &Acknowledged) -> CaseResult,
) -> CaseResult {
    if ctx.is_child() {
        return work(ctx);
    }
    for (round, steps) in ROUNDS.into_iter().enumerate() {
        let child = ctx.spawn()?;
        let mut acknowledged = Acknowledged::default();
        let mut seen = 0;
        while seen < steps {
            let message = child.next_message()?;
            seen += usize::from(message.starts_with("committed"));
            acknowledged.take(&message)?;
        }
        // Not always at the same place of a step.
        thread::sleep(Duration::from_micros(random() % 3000));
        for message in child.kill()? {
            acknowledged.take(&message)?;
        }
        // Every other time the offsets are read first, from a store that nobody has opened since the kill.
        let read = if round % 2 == 1 && ctx.declares(Capability::ClosedOffsets) {
            Some(ctx.read_offsets(&[changelog()])?)
        } else {
            None
        };
        let store = ctx.open()?;
        let state = State::of(&*store)?;
        if let Some(read) = read {
            let read = read.get(&changelog()).map(Offset::get);
            ensure_eq!(read, state.last(), "the offset read from the store that was killed, and not opened since");
        }
        judge(&state, &acknowledged)?;
        ensure!(
            state.last() >= acknowledged.durable,
            "offset {:?} was durable before the kill, but the store came back at {:?}",
            acknowledged.durable,
            state.last()
        );
        drop(store);
        kill_early(ctx, &state)?;
    }
    Ok(())
}

/// Kills a child that may be opening the store just now: what was there is there, at least.
fn kill_early(ctx: &Ctx, before: &State) -> CaseResult {
    let child = ctx.spawn()?;
    thread::sleep(Duration::from_micros(random() % 20_000));
    let wiped = child.kill()?.iter().any(|message| message == "wiping");
    let store = ctx.open()?;
    let state = State::of(&*store)?;
    ensure!(
        wiped || state.last() >= before.last(),
        "the store was at {:?}, and at {:?} after a kill while it was opened",
        before.last(),
        state.last()
    );
    store.close()?;
    Ok(())
}

/// Fails unless every commit is there that had returned.
pub(crate) fn ensure_acknowledged(state: &State, acknowledged: &Acknowledged) -> CaseResult {
    ensure!(
        state.last() >= acknowledged.committed,
        "the commit of offset {:?} had returned before the kill, but the store came back at {:?}",
        acknowledged.committed,
        state.last()
    );
    Ok(())
}

pub(crate) fn o6_a_kill_leaves_one_whole_commit(ctx: &Ctx) -> CaseResult {
    kill_repeatedly(ctx, |ctx| work(ctx, |state, store| state.commit_next(store)), |_, _| Ok(()))
}

pub(crate) fn o6_acknowledged_commits_survive_a_kill(ctx: &Ctx) -> CaseResult {
    kill_repeatedly(ctx, |ctx| work(ctx, |state, store| state.commit_next(store)), ensure_acknowledged)
}

pub(crate) fn o6_a_killed_restore_goes_on_where_it_was(ctx: &Ctx) -> CaseResult {
    kill_repeatedly(
        ctx,
        |ctx| work(ctx, |state, store| state.restore_next(store)),
        |state, acknowledged| {
            // A restored batch survives what a commit survives.
            if ctx.declares(Capability::DurableCommit) { ensure_acknowledged(state, acknowledged) } else { Ok(()) }
        },
    )
}

pub(crate) fn o6_a_killed_wipe_is_whole(ctx: &Ctx) -> CaseResult {
    let any = Cell::new(false);
    kill_repeatedly(
        ctx,
        |ctx| {
            work(ctx, |state, store| {
                // Not always after as many commits: what a lost wipe leaves below the next ones has to show.
                if state.last().is_some_and(|last| last >= 12 || (last >= 3 && random().is_multiple_of(4))) {
                    tell("wiping");
                    store.wipe()?;
                    tell("wiped");
                    *state = State::new();
                }
                state.commit_next(store)
            })
        },
        |state, acknowledged| {
            any.set(any.get() || acknowledged.wipes > 0);
            // One commit may have happened that was not acknowledged.
            let latest = acknowledged.committed.map_or(0, |last| last + 1);
            ensure!(
                !acknowledged.wiped || state.last() <= Some(latest),
                "a wipe had returned before the kill, but the store came back at {:?}; since then {acknowledged:?}",
                state.last()
            );
            Ok(())
        },
    )?;
    ensure!(any.get(), "the suite itself wiped nothing");
    Ok(())
}

pub(crate) fn ho_14_staged_writes_do_not_survive_a_kill(ctx: &Ctx) -> CaseResult {
    if ctx.is_child() {
        let store = ctx.open()?;
        // Enough to make an engine write to disk that is given the writes before the commit.
        let value = vec![b'x'; 16 << 10];
        for n in 0..1000_u32 {
            store.put(format!("k{n}").as_bytes(), &value)?;
        }
        store.delete(b"kept")?;
        tell("staged");
        wait_to_be_killed();
    }
    let store = ctx.open()?;
    store.put(b"kept", b"1")?;
    store.commit(&at(10))?;
    store.close()?;
    drop(store);
    let child = ctx.spawn()?;
    ensure_eq!(child.next_message()?, "staged", "what the child said");
    child.kill()?;
    let store = ctx.open()?;
    ensure_eq!(committed(&*store)?, Some(10), "the offset after writes of the records from 11 on were staged");
    ensure_eq!(dump(&*store)?, rows![b"kept" => b"1"], "the rows of offset 10");
    Ok(())
}
