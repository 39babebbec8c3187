//! Cursors: clause R3.

use std::{sync::Arc, thread};

use kstate_api::{Cursor, CursorExt, ErrorKind, KeyRange, KeyValueStore, Order, ReadOnlyKeyValueStoreExt};

use crate::{
    Capability, CaseResult, Ctx, Violation,
    check::{Rows, drain, ensure, ensure_eq, ensure_kind, rows},
    ctx::{at, put_at},
};

/// A store with `a` and `c` committed, and `b` and `d` staged.
fn half_staged(ctx: &Ctx) -> Result<Arc<dyn KeyValueStore>, Violation> {
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    store.put(b"c", b"1")?;
    store.commit(&at(0))?;
    store.put(b"b", b"2")?;
    store.put(b"d", b"2")?;
    Ok(store)
}

fn half_staged_rows() -> Rows {
    rows![b"a" => b"1", b"b" => b"2", b"c" => b"1", b"d" => b"2"]
}

/// Fails unless cursors that were made before `change`, not started and started, show what was there then.
#[track_caller]
fn ensure_stable(ctx: &Ctx, what: &str, change: impl Fn(&dyn KeyValueStore) -> kstate_api::Result<()>) -> CaseResult {
    let store = half_staged(ctx)?;
    let mut fresh = store.all()?;
    let mut started = store.all()?;
    ensure_eq!(started.next_row()?, Some((b"a".as_slice(), b"1".as_slice())), "the first row before {what}");
    let mut down = if ctx.declares(Capability::ReverseScan) { Some(store.reverse_all()?) } else { None };
    change(&*store)?;
    ensure_eq!(
        started.row(),
        Some((b"a".as_slice(), b"1".as_slice())),
        "the row that the cursor stands on after {what}"
    );
    let rest: Rows = half_staged_rows().into_iter().skip(1).collect();
    ensure_eq!(drain(&mut *started)?, rest, "the rows left to a cursor from before {what}");
    ensure_eq!(drain(&mut *fresh)?, half_staged_rows(), "the rows of a cursor from before {what}");
    if let Some(down) = &mut down {
        let mut seen = drain(&mut **down)?;
        seen.reverse();
        ensure_eq!(seen, half_staged_rows(), "the rows (shown upwards) of a descending cursor from before {what}");
    }
    store.close()?;
    Ok(())
}

pub(crate) fn ho_41_writes_beside_a_cursor_do_not_show(ctx: &Ctx) -> CaseResult {
    ensure_stable(ctx, "puts and deletes", |store| {
        store.put(b"bb", b"x")?;
        store.put(b"c", b"x")?;
        store.delete(b"b")?;
        store.delete(b"a")?;
        store.put(b"e", b"x")?;
        store.put_all(&[(b"d", None), (b"dd", Some(b"x"))])?;
        store.put_if_absent(b"f", b"x").map(drop)
    })
}

pub(crate) fn r3_a_commit_beside_a_cursor_does_not_show(ctx: &Ctx) -> CaseResult {
    ensure_stable(ctx, "a commit", |store| store.commit(&at(1)))?;
    ensure_stable(ctx, "writes and two commits", |store| {
        store.delete(b"c")?;
        store.put(b"d", b"x")?;
        store.commit(&at(1))?;
        store.put(b"bb", b"x")?;
        store.put(b"a", b"x")?;
        store.commit(&at(2))
    })
}

pub(crate) fn r3_a_rollback_beside_a_cursor_does_not_show(ctx: &Ctx) -> CaseResult {
    ensure_stable(ctx, "a rollback", |store| store.rollback())
}

pub(crate) fn r3_a_wipe_beside_a_cursor_does_not_show(ctx: &Ctx) -> CaseResult {
    ensure_stable(ctx, "a wipe", |store| {
        store.wipe()?;
        store.put(b"bb", b"x")?;
        store.commit(&at(1))
    })
}

pub(crate) fn r3_a_restore_beside_a_cursor_does_not_show(ctx: &Ctx) -> CaseResult {
    ensure_stable(ctx, "a rollback and a restore", |store| {
        store.rollback()?;
        store.restore(&put_at(b"bb", b"x", 1))?;
        store.restore(&put_at(b"c", b"x", 2))
    })
}

pub(crate) fn r3_a_cursor_stands_nowhere_before_its_first_row_and_after_its_last(ctx: &Ctx) -> CaseResult {
    let store = half_staged(ctx)?;
    let mut cursors = vec![(store.all()?, half_staged_rows())];
    if ctx.declares(Capability::Snapshots) {
        cursors.push((store.snapshot()?.all()?, rows![b"a" => b"1", b"c" => b"1"]));
    }
    for (cursor, rows) in &mut cursors {
        ensure_eq!(cursor.row(), None, "the row before the first step");
        for row in rows {
            ensure!(cursor.advance()?, "the cursor ends before {row:?}");
            ensure_eq!(cursor.row(), Some((&*row.0, &*row.1)), "the row after a step");
            ensure_eq!(cursor.row(), Some((&*row.0, &*row.1)), "the same row, asked again");
        }
        for _ in 0..3 {
            ensure!(!cursor.advance()?, "the cursor goes on after its end");
            ensure_eq!(cursor.row(), None, "the row after the end");
        }
    }
    store.put(b"e", b"1")?;
    store.commit(&at(1))?;
    for (cursor, _) in &mut cursors {
        ensure!(!cursor.advance()?, "the cursor goes on after its end, after a commit");
    }
    Ok(())
}

/// Fails unless every step of `cursor` is `Closed`.
#[track_caller]
pub(crate) fn ensure_closed(cursor: &mut dyn Cursor, what: &str) -> CaseResult {
    for step in 1..=3 {
        ensure_kind(cursor.advance(), ErrorKind::Closed, &format!("step {step} of {what} after the close"))?;
        ensure_eq!(cursor.row(), None, "the row of {what} after the close");
    }
    Ok(())
}

pub(crate) fn ho_40_a_cursor_of_a_closed_store_is_closed_for_good(ctx: &Ctx) -> CaseResult {
    let store = half_staged(ctx)?;
    let mut fresh = store.all()?;
    let mut started = store.all()?;
    started.advance()?;
    let mut finished = store.all()?;
    drain(&mut *finished)?;
    let mut on_staged = store.scan(&KeyRange::from(b"d"), Order::Ascending)?;
    let mut on_nothing = store.scan(&KeyRange::from(b"e"), Order::Ascending)?;
    let mut inverted = store.scan(&KeyRange::between(b"b", b"a"), Order::Ascending)?;
    store.close()?;
    ensure_closed(&mut *started, "a cursor within its rows")?;
    ensure_closed(&mut *fresh, "a cursor before its first row")?;
    ensure_closed(&mut *finished, "a cursor after its last row")?;
    ensure_closed(&mut *on_staged, "a cursor over staged rows only")?;
    ensure_closed(&mut *on_nothing, "a cursor over no rows")?;
    ensure_closed(&mut *inverted, "a cursor over an inverted range")?;
    let copies: Vec<_> = started.entries().collect();
    ensure!(matches!(copies.as_slice(), [Err(_)]), "the iterator of a closed cursor is {copies:?}, not one error");
    Ok(())
}

pub(crate) fn ho_42_a_cursor_outlives_its_store_on_another_thread(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    let row = |n: u16| (n.to_be_bytes(), [7; 300]);
    for n in 0..2000 {
        let (key, value) = row(n);
        store.put(&key, &value)?;
    }
    store.commit(&at(0))?;
    store.put_all(&[(b"\xFF", Some(b"staged")), (b"\xFF\xFF", Some(b"staged"))])?;
    let mut on_staged = store.scan(&KeyRange::from(b"\xFF"), Order::Ascending)?;
    ensure!(on_staged.advance()?, "a cursor over two staged rows shows none");
    let mut cursor = store.all()?;
    cursor.advance()?;
    let seen: CaseResult = thread::scope(|scope| {
        let reader = scope.spawn(move || {
            ensure_eq!(cursor.row().map(|(key, _)| key.to_vec()), Some(vec![0, 0]), "the row that was moved along");
            for n in 1..1000 {
                ensure_eq!(cursor.next_row()?, Some((row(n).0.as_slice(), row(n).1.as_slice())), "row {n}");
            }
            Ok(cursor)
        });
        let mut cursor = reader.join().unwrap_or_else(|_| Err(Violation::new("the cursor panicked")))?;
        drop(store);
        let stepper = scope.spawn(move || {
            ensure_closed(&mut *cursor, "a cursor whose store was dropped")?;
            ensure_closed(&mut *on_staged, "a cursor over staged rows whose store was dropped")
        });
        stepper.join().unwrap_or_else(|_| Err(Violation::new("the cursor panicked after its store was dropped")))
    });
    seen
}

pub(crate) fn r3_a_close_does_not_wait_for_cursors(ctx: &Ctx) -> CaseResult {
    let store = half_staged(ctx)?;
    let mut cursor = store.all()?;
    cursor.advance()?;
    let snapshot = if ctx.declares(Capability::Snapshots) { Some(store.snapshot()?) } else { None };
    store.close()?;
    drop(store);
    // The directory is free although the cursor and the snapshot are alive.
    let store = ctx.open()?;
    let expected = if ctx.declares(Capability::Persistent) { rows![b"a" => b"1", b"c" => b"1"] } else { rows![] };
    ensure_eq!(drain(&mut *store.all()?)?, expected, "the rows of the store that was opened again");
    ensure_closed(&mut *cursor, "a cursor of the store before")?;
    if let Some(snapshot) = snapshot {
        ensure_kind(snapshot.get(b"a"), ErrorKind::Closed, "a get from a snapshot of the store before")?;
    }
    store.put(b"e", b"1")?;
    store.commit(&at(1))?;
    Ok(())
}
