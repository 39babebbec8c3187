//! Snapshots: clause R2.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, ScopedJoinHandle},
    time::{Duration, Instant},
};

use bytes::Bytes;
use kstate_api::{
    ChangelogOffsets, ErrorKind, KeyRange, Offset, Order, ReadOnlyKeyValueStore, ReadOnlyKeyValueStoreExt, Snapshot,
};

use crate::{
    Capability, CaseResult, Ctx, Violation,
    cases::{
        concurrency::{EndsOthers, LONGEST, joined},
        cursors::ensure_closed,
    },
    check::{drain, dump, ensure, ensure_eq, ensure_kind, keys, rows, scan, scan_keys},
    ctx::{at, changelog, foreign_changelog, offset, other_changelog, put_at, source},
    workload::State,
};

pub(crate) fn r2_a_snapshot_is_committed_data_only(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    store.put(b"b", b"1")?;
    ensure_eq!(dump(&store.snapshot()?)?, rows![], "the rows of a snapshot before the first commit");
    store.commit(&at(0))?;
    store.put(b"a", b"2")?;
    store.delete(b"b")?;
    store.put(b"c", b"2")?;
    let snapshot = store.snapshot()?;
    ensure_eq!(dump(&snapshot)?, rows![b"a" => b"1", b"b" => b"1"], "the rows of a snapshot beside staged writes");
    ensure_eq!(snapshot.get(b"a")?, Some(Bytes::from("1")), "a value in the snapshot that is staged anew");
    ensure_eq!(snapshot.get(b"b")?, Some(Bytes::from("1")), "a value in the snapshot whose delete is staged");
    ensure_eq!(snapshot.get(b"c")?, None, "a value that is only staged, in the snapshot");
    store.rollback()?;
    ensure_eq!(dump(&store.snapshot()?)?, rows![b"a" => b"1", b"b" => b"1"], "the rows of a snapshot after a rollback");
    Ok(())
}

pub(crate) fn r2_a_snapshot_is_stable(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    store.put(b"b", b"1")?;
    store.stage_position(&source(), offset(10).into())?;
    store.commit(&at(0))?;
    let snapshot = store.snapshot()?;
    let expected = rows![b"a" => b"1", b"b" => b"1"];
    let ensure_same = |after: &str| {
        if ctx.declares(Capability::ManagesOffsets) {
            let seen = (snapshot.committed_offset(&changelog())?, snapshot.position()?.next(&source()));
            let expected = (Some(offset(0)), Some(offset(10)));
            ensure_eq!(seen, expected, "the offset and the position of a snapshot after {after}");
        }
        ensure_eq!(dump(&snapshot)?, expected, "the rows of a snapshot after {after}");
        ensure_eq!(snapshot.get(b"a")?, Some(Bytes::from("1")), "a value in a snapshot after {after}");
        ensure_eq!(snapshot.get(b"c")?, None, "a value that a snapshot does not have, after {after}");
        Ok::<(), Violation>(())
    };
    store.put(b"a", b"2")?;
    store.delete(b"b")?;
    store.put(b"c", b"2")?;
    ensure_same("writes")?;
    store.commit(&at(1))?;
    ensure_same("a commit")?;
    store.flush()?;
    ensure_same("a flush")?;
    store.restore(&put_at(b"a", b"3", 2))?;
    ensure_same("a restore")?;
    store.wipe()?;
    ensure_same("a wipe")?;
    store.put(b"a", b"4")?;
    store.commit(&at(3))?;
    ensure_same("a commit after a wipe")?;
    ensure_eq!(dump(&store.snapshot()?)?, rows![b"a" => b"4"], "the rows of a new snapshot");
    Ok(())
}

pub(crate) fn r2_a_snapshot_carries_its_offsets_and_its_position(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    let empty = store.snapshot()?;
    store.stage_position(&source(), offset(50).into())?;
    store.commit(&at(5))?;
    let snapshot = store.snapshot()?;
    store.stage_position(&source(), offset(60).into())?;
    store.commit(&at(6).with(other_changelog(), offset(7)))?;
    store.forget_offsets()?;
    ensure_eq!(empty.committed_offset(&changelog())?, None, "the offset of a snapshot of a new store");
    ensure_eq!(empty.position()?.iter().count(), 0, "the partitions in the position of a snapshot of a new store");
    ensure_eq!(snapshot.committed_offset(&changelog())?, Some(offset(5)), "the offset of a snapshot");
    ensure_eq!(snapshot.committed_offset(&other_changelog())?, None, "the offset it has no record of, in a snapshot");
    ensure_eq!(snapshot.committed_offset(&foreign_changelog())?, None, "a foreign offset in a snapshot");
    ensure_eq!(snapshot.position()?.next(&source()), Some(offset(50)), "the position of a snapshot");
    let forgotten = store.snapshot()?;
    ensure_eq!(forgotten.committed_offset(&changelog())?, None, "the offset of a snapshot after they were forgotten");
    store.commit(&ChangelogOffsets::new())?;
    Ok(())
}

pub(crate) fn r2_a_snapshot_is_scanned_like_its_store(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    for key in [b"".as_slice(), b"a", b"ab", b"b", b"\xFF", b"\xFF\xFF"] {
        store.put(key, key)?;
    }
    store.commit(&at(0))?;
    let snapshot = store.snapshot()?;
    store.wipe()?;
    let ascending = |range: &KeyRange<'_>| scan_keys(&snapshot, range, Order::Ascending);
    ensure_eq!(ascending(&KeyRange::between(b"a", b"b"))?, keys![b"a", b"ab", b"b"], "the keys from a to b");
    ensure_eq!(ascending(&KeyRange::prefix(b"a"))?, keys![b"a", b"ab"], "the keys that begin with a");
    ensure_eq!(ascending(&KeyRange::prefix(b"\xFF"))?, keys![b"\xFF", b"\xFF\xFF"], "the keys that begin with FF");
    ensure_eq!(ascending(&KeyRange::up_to(b"a"))?, keys![b"", b"a"], "the keys up to a");
    ensure_eq!(ascending(&KeyRange::between(b"b", b"a"))?, keys![], "the keys of an inverted range");
    if ctx.declares(Capability::ReverseScan) {
        let seen = scan(&snapshot, &KeyRange::from(b"b"), Order::Descending)?;
        let expected = rows![b"\xFF\xFF" => b"\xFF\xFF", b"\xFF" => b"\xFF", b"b" => b"b"];
        ensure_eq!(seen, expected, "the rows from b on, downwards");
    }
    Ok(())
}

pub(crate) fn r2_a_snapshot_of_a_closed_store_is_closed(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    store.put(b"b", b"1")?;
    store.commit(&at(0))?;
    let snapshot = store.snapshot()?;
    let mut started = snapshot.all()?;
    started.advance()?;
    let mut fresh = snapshot.all()?;
    let mut finished = snapshot.all()?;
    drain(&mut *finished)?;
    let mut on_nothing = snapshot.scan(&KeyRange::from(b"c"), Order::Ascending)?;
    store.close()?;
    for _ in 0..2 {
        ensure_kind(snapshot.get(b"a"), ErrorKind::Closed, "a get from a snapshot of a closed store")?;
        ensure_kind(snapshot.get(b"c"), ErrorKind::Closed, "a get of an absent key from such a snapshot")?;
        ensure_kind(snapshot.all(), ErrorKind::Closed, "a scan of a snapshot of a closed store")?;
        ensure_kind(snapshot.approximate_num_entries(), ErrorKind::Closed, "the number of entries of such a snapshot")?;
        ensure_kind(snapshot.committed_offset(&changelog()), ErrorKind::Closed, "the offset of such a snapshot")?;
        ensure_kind(snapshot.position(), ErrorKind::Closed, "the position of such a snapshot")?;
    }
    ensure_closed(&mut *started, "a snapshot's cursor within its rows")?;
    ensure_closed(&mut *fresh, "a snapshot's cursor before its first row")?;
    ensure_closed(&mut *finished, "a snapshot's cursor after its last row")?;
    ensure_closed(&mut *on_nothing, "a snapshot's cursor over no rows")
}

pub(crate) fn r2_a_snapshots_cursor_outlives_it(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    store.put(b"b", b"1")?;
    store.commit(&at(0))?;
    let snapshot = store.snapshot()?;
    let mut cursor = snapshot.all()?;
    drop(snapshot);
    store.put(b"b", b"2")?;
    store.commit(&at(1))?;
    ensure_eq!(drain(&mut *cursor)?, rows![b"a" => b"1", b"b" => b"1"], "the rows of a dropped snapshot's cursor");
    Ok(())
}

pub(crate) fn r2_snapshots_of_different_commits_stand_side_by_side(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    let mut state = State::new();
    let mut snapshots: Vec<(State, Arc<dyn Snapshot>)> = vec![(state.clone(), store.snapshot()?)];
    for _ in 0..12 {
        state.commit_next(&*store)?;
        snapshots.push((state.clone(), store.snapshot()?));
    }
    for (state, snapshot) in snapshots {
        if store.manages_offsets() {
            state.ensure_is_of(&*snapshot)?;
        } else {
            state.ensure_rows(&dump(&snapshot)?)?;
        }
    }
    Ok(())
}

/// How many readers there are beside the owner.
const READERS: usize = 3;
/// How many commits the owner makes at least, and how many different ones each reader has to see, while there is time.
const COMMITS: usize = 150;
const SEEN: usize = 10;

/// A stress test: it finds a race with some probability, not always.
pub(crate) fn r2_snapshots_show_whole_commits_while_the_owner_commits(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    let done = AtomicBool::new(false);
    let read = |distinct: &AtomicUsize| -> CaseResult {
        let mut latest = None;
        loop {
            // Asked before the snapshot, so that the last one is taken after the last commit.
            let last_round = done.load(Ordering::Acquire);
            let snapshot = store.snapshot()?;
            let seen = snapshot.committed_offset(&changelog())?.map(Offset::get);
            ensure!(seen >= latest, "a snapshot of offset {seen:?} was taken after one of {latest:?}");
            State::at(seen).ensure_is_of(&*snapshot)?;
            let again = snapshot.committed_offset(&changelog())?.map(Offset::get);
            ensure_eq!(again, seen, "the offset of a snapshot, asked again");
            distinct.fetch_add(usize::from(seen != latest), Ordering::AcqRel);
            latest = seen;
            if last_round {
                return Ok(());
            }
        }
    };
    let distinct: [AtomicUsize; READERS] = Default::default();
    thread::scope(|scope| {
        let readers: Vec<_> = distinct.iter().map(|distinct| scope.spawn(|| read(distinct))).collect();
        let ends_others = EndsOthers(&done);
        let mut state = State::new();
        let started = Instant::now();
        let seen_enough = || {
            let all_see = distinct.iter().all(|distinct| distinct.load(Ordering::Acquire) >= SEEN);
            all_see || readers.iter().any(ScopedJoinHandle::is_finished)
        };
        let mut commits = 0;
        let written = loop {
            if started.elapsed() > LONGEST || (commits >= COMMITS && seen_enough()) {
                break Ok(());
            }
            // A restored batch shows in one step, as a commit does.
            let restored = commits % 2 == 1;
            let step = if restored { state.restore_next(&*store) } else { state.commit_next(&*store) };
            if let Err(error) = step {
                break Err(error);
            }
            commits += 1;
            if commits > COMMITS {
                // The readers are behind, and what each has to compare grows with the offset.
                thread::sleep(Duration::from_micros(500));
            }
        };
        drop(ends_others);
        written?;
        readers.into_iter().try_for_each(joined)
    })?;
    ensure!(distinct.iter().all(|distinct| distinct.load(Ordering::Acquire) > 0), "a reader saw no commit");
    Ok(())
}
