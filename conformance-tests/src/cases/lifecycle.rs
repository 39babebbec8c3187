//! Rollback, wipe, close and use after it: clause R5.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
    thread,
    time::Duration,
};

use kstate_api::{ChangelogOffsets, CommitOutcome, ErrorKind, KeyValueStore, ReadOnlyKeyValueStoreExt, StateStore};

use crate::{
    Capability, CaseResult, Ctx, Violation,
    calls::every_call,
    check::{dump, ensure, ensure_eq, ensure_kind, rows},
    ctx::{at, changelog, committed, offset, source},
    workload::State,
};

/// A store with `a` committed at offset 4 and position 40, over which changes of everything are staged.
fn store_with_staged(ctx: &Ctx) -> Result<Arc<dyn KeyValueStore>, Violation> {
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    store.stage_position(&source(), offset(40).into())?;
    store.commit(&at(4))?;
    stage_changes(&*store)?;
    Ok(store)
}

fn stage_changes(store: &dyn KeyValueStore) -> kstate_api::Result<()> {
    store.put(b"b", b"2")?;
    store.put_all(&[(b"c", Some(b"2"))])?;
    store.put_if_absent(b"d", b"2")?;
    store.delete(b"a")?;
    store.stage_position(&source(), offset(50).into())
}

/// Fails unless the store is as `store_with_staged` committed it, with nothing staged.
#[track_caller]
fn ensure_unchanged(store: &dyn KeyValueStore, after: &str) -> CaseResult {
    ensure_eq!(dump(store)?, rows![b"a" => b"1"], "the rows after {after}");
    if store.manages_offsets() {
        ensure_eq!(committed(store)?, Some(4), "the offset after {after}");
        ensure_eq!(store.position()?.next(&source()), Some(offset(40)), "the position after {after}");
    }
    ensure_eq!(store.uncommitted_bytes(), 0, "the uncommitted bytes after {after}");
    store.staged_changes(&mut |key, _| {
        Err(kstate_api::Error::new(ErrorKind::Unsupported, format!("{key:?} is still staged after {after}")))
    })?;
    Ok(())
}

pub(crate) fn r5_a_rollback_drops_what_is_staged(ctx: &Ctx) -> CaseResult {
    let store = store_with_staged(ctx)?;
    store.rollback()?;
    ensure_unchanged(&*store, "a rollback")?;
    store.rollback()?;
    ensure_unchanged(&*store, "a second rollback")?;
    store.commit(&ChangelogOffsets::new())?;
    ensure_unchanged(&*store, "a rollback and a commit")?;
    store.put(b"e", b"3")?;
    store.commit(&at(5))?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(dump(&*store)?, rows![b"a" => b"1", b"e" => b"3"], "the rows that were committed after a rollback");
    Ok(())
}

pub(crate) fn r5_a_close_never_commits(ctx: &Ctx) -> CaseResult {
    let store = store_with_staged(ctx)?;
    store.close()?;
    drop(store);
    ensure_unchanged(&*ctx.open()?, "a close with staged writes")
}

pub(crate) fn r5_a_drop_never_commits(ctx: &Ctx) -> CaseResult {
    drop(store_with_staged(ctx)?);
    ensure_unchanged(&*ctx.open()?, "a drop with staged writes")
}

pub(crate) fn r5_a_drop_while_panicking_never_commits(ctx: &Ctx) -> CaseResult {
    let store = store_with_staged(ctx)?;
    store.flush()?;
    let snapshot = if ctx.declares(Capability::Snapshots) { Some(store.snapshot()?) } else { None };
    // Not `panic!`, which would write to standard error.
    let unwound = catch_unwind(AssertUnwindSafe(move || {
        let _store = store;
        resume_unwind(Box::new("a panic of the store's user"));
    }));
    ensure!(unwound.is_err(), "the suite itself did not panic");
    if let Some(snapshot) = snapshot {
        ensure_kind(snapshot.get(b"a"), ErrorKind::Closed, "a get from a snapshot after a drop while panicking")?;
    }
    let store = ctx.open()?;
    if ctx.declares(Capability::Persistent) {
        ensure_unchanged(&*store, "a drop while panicking, with staged writes")?;
    }
    store.put(b"a", b"2")?;
    store.commit(&at(5))?;
    Ok(())
}

/// A stress test: it finds a race with some probability, not always.
pub(crate) fn r5_a_close_beside_commits_keeps_those_that_returned(ctx: &Ctx) -> CaseResult {
    for round in 0..5 {
        let store = ctx.open()?;
        store.wipe()?;
        let writer = Arc::clone(&store);
        let writer = thread::spawn(move || {
            let mut state = State::new();
            loop {
                let before = state.last();
                if let Err(error) = state.commit_next(&*writer) {
                    return (before, error);
                }
            }
        });
        thread::sleep(Duration::from_millis(3 + 5 * round));
        store.close()?;
        let (last, error) = writer.join().map_err(|_| Violation::new("a commit beside a close panicked"))?;
        ensure_eq!(error.kind(), ErrorKind::Closed, "the kind of the error of a call after the close ({error})");
        drop(store);
        let store = ctx.open()?;
        let state = State::of(&*store)?;
        ensure_eq!(state.last(), last, "the offset after a close beside commits, the last of which had returned");
        store.close()?;
    }
    Ok(())
}

pub(crate) fn r5_a_flush_never_commits(ctx: &Ctx) -> CaseResult {
    let store = store_with_staged(ctx)?;
    store.flush()?;
    if ctx.declares(Capability::Snapshots) {
        ensure_eq!(dump(&store.snapshot()?)?, rows![b"a" => b"1"], "the committed rows after a flush");
    }
    ensure_eq!(dump(&*store)?, rows![b"b" => b"2", b"c" => b"2", b"d" => b"2"], "the owner's rows after a flush");
    store.rollback()?;
    ensure_unchanged(&*store, "a flush and a rollback")?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure_unchanged(&*store, "a flush, a rollback and a reopen")
}

pub(crate) fn r5_closing_twice_is_fine(ctx: &Ctx) -> CaseResult {
    let store = store_with_staged(ctx)?;
    ensure!(store.is_open(), "an open store says that it is not");
    for _ in 0..3 {
        store.close()?;
        ensure!(!store.is_open(), "a closed store says that it is open");
    }
    drop(store);
    let store = ctx.open()?;
    ensure!(store.is_open(), "a store that was opened again says that it is not open");
    store.put(b"a", b"2")?;
    store.commit(&at(5))?;
    Ok(())
}

pub(crate) fn r5_a_wipe_removes_everything(ctx: &Ctx) -> CaseResult {
    let store = store_with_staged(ctx)?;
    // Keys at the edges of what a range of deletes would name.
    for key in [b"".as_slice(), b"\x00", &[0xFF; 40]] {
        store.put(key, b"1")?;
    }
    store.commit(&at(5))?;
    stage_changes(&*store)?;
    store.flush()?;
    store.wipe()?;
    ensure_eq!(dump(&*store)?, rows![], "the rows after a wipe");
    ensure_eq!(store.get(b"a")?, None, "a committed key after a wipe");
    ensure_eq!(store.get(b"b")?, None, "a staged key after a wipe");
    ensure_eq!(store.uncommitted_bytes(), 0, "the uncommitted bytes after a wipe");
    ensure_eq!(store.approximate_num_entries()?, 0, "about how many entries there are after a wipe");
    store.commit(&ChangelogOffsets::new())?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(dump(&*store)?, rows![], "the rows after a wipe and a commit");
    ensure_eq!(committed(&*store)?, None, "the offset after a wipe and a commit");
    ensure!(store.position()?.is_empty(), "a wiped store has the position {:?}", store.position()?);
    store.put(b"b", b"3")?;
    store.commit(&at(0))?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(dump(&*store)?, rows![b"b" => b"3"], "the rows that were committed after a wipe");
    if ctx.declares(Capability::ManagesOffsets) {
        ensure_eq!(committed(&*store)?, Some(0), "the offset that was committed after a wipe");
    }
    Ok(())
}

pub(crate) fn ho_64_every_use_after_a_close_is_closed(ctx: &Ctx) -> CaseResult {
    let store = store_with_staged(ctx)?;
    store.close()?;
    for _ in 0..2 {
        for call in every_call(ctx) {
            let error = ensure_kind((call.run)(&*store), ErrorKind::Closed, &format!("{} after the close", call.name))?;
            if call.is_step {
                let outcome = error.commit_outcome();
                ensure_eq!(outcome, Some(CommitOutcome::NotApplied), "the outcome of {} after the close", call.name);
            }
        }
        ensure!(!store.is_open(), "a closed store says that it is open");
        ensure_eq!(store.uncommitted_bytes(), 0, "the uncommitted bytes of a closed store");
        store.close()?;
    }
    drop(store);
    let store = ctx.open()?;
    if ctx.declares(Capability::Persistent) {
        ensure_unchanged(&*store, "calls of a closed store")?;
    }
    Ok(())
}

pub(crate) fn ho_64_a_closed_store_does_not_reach_into_its_successor(ctx: &Ctx) -> CaseResult {
    let closed = store_with_staged(ctx)?;
    closed.close()?;
    let store = ctx.open()?;
    store.put(b"a", b"5")?;
    for call in every_call(ctx) {
        ensure_kind((call.run)(&*closed), ErrorKind::Closed, &format!("{} after the close", call.name))?;
    }
    closed.close()?;
    drop(closed);
    store.commit(&at(6))?;
    ensure_eq!(dump(&*store)?, rows![b"a" => b"5"], "the rows of the store that was opened after the close");
    if ctx.declares(Capability::ManagesOffsets) {
        ensure_eq!(committed(&*store)?, Some(6), "its offset");
    }
    if ctx.declares(Capability::MultiProcessLock) {
        ensure_kind(ctx.open(), ErrorKind::Locked, "another open while the successor lives")?;
    }
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(store.get(b"a")?.as_deref(), Some(b"5".as_slice()), "its value in the end");
    store.durable_offset(&changelog())?;
    Ok(())
}
