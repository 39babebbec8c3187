//! Puts and deletes: clause R4.

use kstate_api::{Bytes, ErrorKind, KeyValueStore, MAX_KEY_LEN, ReadOnlyKeyValueStoreExt, StateStore};

use crate::{
    CaseResult, Ctx, Violation,
    check::{dump, ensure, ensure_eq, ensure_kind, rows},
    ctx::{at, put_at},
};

/// The staged changes: each key with its new value, `None` for a deleted one.
pub(crate) fn staged<S: StateStore + ?Sized>(store: &S) -> Result<Vec<(Bytes, Option<Bytes>)>, Violation> {
    let mut changes = Vec::new();
    store.staged_changes(&mut |key, value| {
        changes.push((Bytes::copy_from_slice(key), value.map(Bytes::copy_from_slice)));
        Ok(())
    })?;
    Ok(changes)
}

pub(crate) fn r4_an_empty_value_is_a_value(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    let empty = Some(Bytes::new());
    store.put(b"a", b"")?;
    ensure_eq!(store.get(b"a")?, empty, "a staged empty value");
    ensure_eq!(staged(&*store)?, vec![(Bytes::from("a"), empty.clone())], "the staged change to an empty value");
    store.commit(&at(0))?;
    ensure_eq!(store.get(b"a")?, empty, "a committed empty value");
    store.put(b"b", b"1")?;
    store.commit(&at(1))?;
    store.put(b"b", b"")?;
    ensure_eq!(
        dump(&*store)?,
        rows![b"a" => b"", b"b" => b""],
        "the rows with a staged empty value over a committed one"
    );
    store.commit(&at(2))?;
    ensure_eq!(dump(&*store)?, rows![b"a" => b"", b"b" => b""], "the committed rows of empty values");
    Ok(())
}

pub(crate) fn ho_47_an_empty_value_is_kept(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"k", b"")?;
    ensure_eq!(store.get(b"k")?, Some(Bytes::new()), "the empty value while it is staged");
    store.commit(&at(0))?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(store.get(b"k")?, Some(Bytes::new()), "the empty value that was committed");
    store.wipe()?;
    store.restore(&put_at(b"k", b"", 0))?;
    ensure_eq!(store.get(b"k")?, Some(Bytes::new()), "the empty value that was restored");
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(dump(&*store)?, rows![b"k" => b""], "the restored rows, in the end");
    Ok(())
}

pub(crate) fn r4_any_value_is_a_value(ctx: &Ctx) -> CaseResult {
    // What a store might take for its own mark of a deleted row, or for no value.
    const LIKELY: [&[u8]; 9] = [
        b"null",
        b"None",
        b"deleted",
        b"tombstone",
        b"\x00\x00\x00\x00",
        b"\x00\x00\x00\x00\x00\x00\x00\x00",
        b"\xFF\xFF\xFF\xFF",
        b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
        b" ",
    ];
    let store = ctx.open()?;
    let values: Vec<Bytes> = (0..=255_u8)
        .map(|byte| Bytes::copy_from_slice(&[byte]))
        .chain(LIKELY.into_iter().map(Bytes::from_static))
        .collect();
    let expected: Vec<(Bytes, Bytes)> =
        (0_u16..).zip(&values).map(|(n, value)| (Bytes::copy_from_slice(&n.to_be_bytes()), value.clone())).collect();
    for (key, value) in &expected {
        store.put(key, value)?;
    }
    ensure_eq!(dump(&*store)?, expected, "the staged rows, each of another value");
    store.commit(&at(0))?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(dump(&*store)?, expected, "the committed rows, each of another value");
    store.wipe()?;
    let mut batch = kstate_api::WriteBatch::new();
    for (key, value) in &expected {
        batch.put(key.clone(), value.clone());
    }
    store.restore(&batch)?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(dump(&*store)?, expected, "the restored rows, each of another value");
    for (key, value) in &expected {
        ensure_eq!(store.get(key)?.as_ref(), Some(value), "a get of one of them");
    }
    Ok(())
}

pub(crate) fn r4_the_empty_key_is_a_key(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"", b"1")?;
    ensure_eq!(store.get(b"")?, Some(Bytes::from("1")), "the value of the empty key while it is staged");
    store.put(b"\x00", b"2")?;
    store.commit(&at(0))?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(dump(&*store)?, rows![b"" => b"1", b"\x00" => b"2"], "the rows, the empty key's among them");
    store.delete(b"")?;
    ensure_eq!(store.get(b"")?, None, "the value of the deleted empty key");
    store.commit(&at(1))?;
    ensure_eq!(dump(&*store)?, rows![b"\x00" => b"2"], "the rows after the empty key was deleted");
    Ok(())
}

pub(crate) fn r4_a_key_of_the_stores_own_is_a_key(ctx: &Ctx) -> CaseResult {
    // What a store keeps for itself lies beside the user's keys, not among them.
    const LIKELY: [&[u8]; 9] = [
        b"__offset",
        b"conformance-changelog-0",
        b"conformance-source-0",
        b"header",
        b"kstate",
        b"offset",
        b"offsets",
        b"position",
        b"status",
    ];
    let store = ctx.open()?;
    for key in LIKELY {
        store.put(key, b"mine")?;
    }
    store.commit(&at(7))?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(dump(&*store)?, LIKELY.map(|key| (Bytes::from(key), Bytes::from("mine"))).to_vec(), "the rows");
    for key in LIKELY {
        store.delete(key)?;
    }
    store.commit(&at(8))?;
    let store = ctx.reopen_if_persistent(store)?;
    if store.manages_offsets() {
        ensure_eq!(crate::ctx::committed(&*store)?, Some(8), "the offset after every such key was deleted");
    }
    ensure_eq!(dump(&*store)?, rows![], "the rows after every such key was deleted");
    Ok(())
}

pub(crate) fn r4_deleting_what_is_not_there_is_fine(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.delete(b"a")?;
    store.delete(b"a")?;
    ensure_eq!(store.get(b"a")?, None, "the value of a key that was only deleted");
    store.commit(&at(0))?;
    store.put(b"b", b"1")?;
    store.delete(b"b")?;
    store.commit(&at(1))?;
    ensure_eq!(dump(&*store)?, rows![], "the rows after nothing but deletes of absent keys");
    Ok(())
}

pub(crate) fn r4_a_delete_removes_the_row(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    for key in [b"a", b"b", b"c"] {
        store.put(key, b"1")?;
    }
    store.commit(&at(0))?;
    store.delete(b"b")?;
    ensure_eq!(store.get(b"b")?, None, "the value of a key whose delete is staged");
    store.commit(&at(1))?;
    ensure_eq!(store.get(b"b")?, None, "the value of a deleted key");
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(dump(&*store)?, rows![b"a" => b"1", b"c" => b"1"], "the rows after a delete");
    store.put(b"b", b"2")?;
    store.commit(&at(2))?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(store.get(b"b")?, Some(Bytes::from("2")), "the value of a key that was deleted and put again");
    Ok(())
}

pub(crate) fn r4_the_last_write_wins(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    store.put(b"a", b"2")?;
    store.put(b"b", b"1")?;
    store.delete(b"b")?;
    store.delete(b"c")?;
    store.put(b"c", b"3")?;
    store.commit(&at(0))?;
    ensure_eq!(dump(&*store)?, rows![b"a" => b"2", b"c" => b"3"], "the rows after several writes to each key");
    store.delete(b"a")?;
    store.put(b"a", b"4")?;
    store.put(b"c", b"5")?;
    store.delete(b"c")?;
    store.commit(&at(1))?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(dump(&*store)?, rows![b"a" => b"4"], "the rows after several writes to each committed key");
    Ok(())
}

pub(crate) fn r4_put_all_applies_its_entries_in_order(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"d", b"1")?;
    store.put_all(&[
        (b"c", Some(b"1")),
        (b"a", Some(b"1")),
        (b"a", Some(b"")),
        (b"c", None),
        (b"b", None),
        (b"b", Some(b"2")),
        (b"d", None),
        (b"absent", None),
    ])?;
    let expected = rows![b"a" => b"", b"b" => b"2"];
    ensure_eq!(dump(&*store)?, expected, "the staged rows");
    store.put_all(&[])?;
    store.commit(&at(0))?;
    ensure_eq!(dump(&*store)?, expected, "the committed rows");
    Ok(())
}

pub(crate) fn r4_put_all_stages_all_or_nothing(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"b", b"0")?;
    store.commit(&at(0))?;
    let long = vec![0; MAX_KEY_LEN + 1];
    for place in 0..3 {
        let mut entries: Vec<(&[u8], Option<&[u8]>)> = vec![(b"a", Some(b"1")), (b"b", None)];
        entries.insert(place, (&long, Some(b"1")));
        let what = format!("put_all with a key that is too long at place {place}");
        ensure_kind(store.put_all(&entries), ErrorKind::InvalidArgument, &what)?;
        ensure_eq!(staged(&*store)?, vec![], "the staged changes after {what}");
    }
    let deletes: [(&[u8], Option<&[u8]>); 2] = [(b"b", None), (&long, None)];
    ensure_kind(store.put_all(&deletes), ErrorKind::InvalidArgument, "put_all with a delete of such a key")?;
    store.commit(&at(1))?;
    ensure_eq!(dump(&*store)?, rows![b"b" => b"0"], "the rows after refused calls and a commit");
    Ok(())
}

pub(crate) fn r4_put_if_absent_keeps_what_is_there(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    let one = Some(Bytes::from("1"));
    ensure_eq!(store.put_if_absent(b"a", b"1")?, None, "what put_if_absent finds for a new key");
    ensure_eq!(store.get(b"a")?, one, "what put_if_absent put for a new key");
    ensure_eq!(store.put_if_absent(b"a", b"2")?, one, "what put_if_absent finds staged");
    store.commit(&at(0))?;
    ensure_eq!(store.put_if_absent(b"a", b"3")?, one, "what put_if_absent finds committed");
    ensure_eq!(staged(&*store)?, vec![], "what put_if_absent stages for a key that is there");
    ensure_eq!(store.get(b"a")?, one, "the value of a key that was there all the time");
    store.delete(b"a")?;
    ensure_eq!(store.put_if_absent(b"a", b"")?, None, "what put_if_absent finds for a key whose delete is staged");
    ensure_eq!(store.put_if_absent(b"a", b"4")?, Some(Bytes::new()), "what put_if_absent finds for an empty value");
    store.commit(&at(1))?;
    ensure_eq!(dump(&*store)?, rows![b"a" => b""], "the rows in the end");
    Ok(())
}

pub(crate) fn r4_staged_changes_are_one_for_each_key_in_order(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"b", b"0")?;
    store.put(b"\xFF", b"0")?;
    store.commit(&at(0))?;
    ensure_eq!(staged(&*store)?, vec![], "the staged changes right after a commit");
    store.put(b"c", b"1")?;
    store.put(b"c", b"2")?;
    store.put(b"\x80", b"")?;
    store.put(b"a", b"1")?;
    store.delete(b"a")?;
    store.delete(b"b")?;
    store.put(b"", b"3")?;
    let value = |text: &'static str| Some(Bytes::from(text));
    let expected: Vec<(Bytes, Option<Bytes>)> = vec![
        (Bytes::from(""), value("3")),
        (Bytes::from("a"), None),
        (Bytes::from("b"), None),
        (Bytes::from("c"), value("2")),
        (Bytes::from_static(b"\x80"), value("")),
    ];
    ensure_eq!(staged(&*store)?, expected, "the staged changes");
    ensure_eq!(staged(&*store)?, expected, "the staged changes when asked again");
    let mut visits = 0;
    let failed = store.staged_changes(&mut |_, _| {
        visits += 1;
        if visits == 2 { Err(kstate_api::Error::new(ErrorKind::Unavailable, "no broker")) } else { Ok(()) }
    });
    ensure_kind(failed, ErrorKind::Unavailable, "a visit of the staged changes that fails at the second")?;
    ensure_eq!(visits, 2, "the number of changes visited before the visitor's error ended it");
    ensure_eq!(staged(&*store)?, expected, "the staged changes after a failed visit");
    store.rollback()?;
    ensure_eq!(staged(&*store)?, vec![], "the staged changes after a rollback");
    Ok(())
}

pub(crate) fn r2_the_committed_value_is_the_last_commits(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    ensure_eq!(store.committed_value(b"a")?, None, "the committed value of a key that was never written");
    store.put(b"a", b"1")?;
    store.put(b"b", b"")?;
    ensure_eq!(store.committed_value(b"a")?, None, "the committed value of a key whose first put is staged");
    store.commit(&at(0))?;
    ensure_eq!(store.committed_value(b"a")?, Some("1".into()), "the committed value");
    ensure_eq!(store.committed_value(b"b")?, Some(Bytes::new()), "the committed value that is empty");
    store.put(b"a", b"2")?;
    store.delete(b"b")?;
    ensure_eq!(store.committed_value(b"a")?, Some("1".into()), "the committed value below a staged put");
    ensure_eq!(store.committed_value(b"b")?, Some(Bytes::new()), "the committed value below a staged delete");
    store.commit(&at(1))?;
    ensure_eq!(store.committed_value(b"a")?, Some("2".into()), "the committed value after the next commit");
    ensure_eq!(store.committed_value(b"b")?, None, "the committed value of a key whose delete was committed");
    Ok(())
}

pub(crate) fn r4_uncommitted_bytes_are_those_of_the_staged_writes(ctx: &Ctx) -> CaseResult {
    const LEN: u64 = 100_000;
    let store = ctx.open()?;
    ensure_eq!(store.uncommitted_bytes(), 0, "the uncommitted bytes of a new store");
    // Keys take memory like values do, those of deletes too.
    for n in 0..200_u16 {
        store.delete(&[n.to_be_bytes().as_slice(), &[7; 498]].concat())?;
    }
    let keys = store.uncommitted_bytes();
    ensure!((LEN..2 * LEN).contains(&keys), "staged deletes of 200 keys of 500 bytes each count as {keys}");
    store.rollback()?;
    let value = vec![1; 100_000];
    store.put(b"a", &value)?;
    let once = store.uncommitted_bytes();
    ensure!((LEN..2 * LEN).contains(&once), "a staged value of {LEN} bytes counts as {once} uncommitted bytes");
    for _ in 0..10 {
        store.put(b"a", &value)?;
    }
    let overwritten = store.uncommitted_bytes();
    ensure!(overwritten < 2 * LEN, "a staged value of {LEN} bytes counts as {overwritten} after ten more writes of it");
    store.put(b"b", &value)?;
    let twice = store.uncommitted_bytes();
    ensure!((2 * LEN..4 * LEN).contains(&twice), "two staged values of {LEN} bytes each count as {twice}");
    store.delete(b"b")?;
    store.put(b"a", b"1")?;
    let dropped = store.uncommitted_bytes();
    ensure!(dropped < LEN / 2, "two values that are no longer staged still count as {dropped} bytes");
    store.commit(&at(0))?;
    ensure_eq!(store.uncommitted_bytes(), 0, "the uncommitted bytes after a commit");
    store.put(b"a", &value)?;
    store.rollback()?;
    ensure_eq!(store.uncommitted_bytes(), 0, "the uncommitted bytes after a rollback");
    Ok(())
}
