//! Reads of the owner: clause R2.

use kstate_api::{
    Bytes, KeyRange, KeyValueStore, KeyValueStoreExt, Order, ReadOnlyKeyValueStore, ReadOnlyKeyValueStoreExt,
};

use crate::{
    Capability, CaseResult, Ctx,
    check::{dump, ensure, ensure_eq, rows, scan},
    ctx::at,
};

pub(crate) fn r2_a_get_sees_staged_writes(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    let value = |text: &'static str| Some(Bytes::from(text));
    ensure_eq!(store.get(b"a")?, None, "a key that is not there");
    store.put(b"a", b"1")?;
    ensure_eq!(store.get(b"a")?, value("1"), "a staged value");
    store.commit(&at(0))?;
    ensure_eq!(store.get(b"a")?, value("1"), "a committed value");
    store.put(b"a", b"2")?;
    ensure_eq!(store.get(b"a")?, value("2"), "a value staged over a committed one");
    store.delete(b"a")?;
    ensure_eq!(store.get(b"a")?, None, "a committed key whose delete is staged");
    ensure!(!store.contains_key(b"a")?, "contains_key finds a key whose delete is staged");
    store.put(b"a", b"3")?;
    ensure_eq!(store.get(b"a")?, value("3"), "a value staged over a staged delete");
    ensure_eq!(store.remove(b"a")?, value("3"), "the value that a staged removal took away");
    Ok(())
}

pub(crate) fn r2_a_scan_sees_staged_writes(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    for key in [b"b", b"d", b"f", b"h"] {
        store.put(key, b"old")?;
    }
    store.commit(&at(0))?;
    store.put(b"a", b"new")?;
    store.put(b"d", b"new")?;
    store.delete(b"f")?;
    store.put(b"g", b"new")?;
    store.put(b"i", b"new")?;
    store.delete(b"j")?;
    let expected = rows![
        b"a" => b"new", b"b" => b"old", b"d" => b"new", b"g" => b"new", b"h" => b"old", b"i" => b"new",
    ];
    ensure_eq!(dump(&*store)?, expected, "the rows, staged over committed");
    if ctx.declares(Capability::ReverseScan) {
        let mut seen = scan(&*store, &KeyRange::all(), Order::Descending)?;
        seen.reverse();
        ensure_eq!(seen, expected, "the rows, staged over committed, scanned downwards (shown upwards)");
    }
    for key in [b"b", b"d", b"h"] {
        store.delete(key)?;
    }
    ensure_eq!(
        dump(&*store)?,
        rows![b"a" => b"new", b"g" => b"new", b"i" => b"new"],
        "the rows without committed ones"
    );
    store.commit(&at(1))?;
    ensure_eq!(dump(&*store)?, rows![b"a" => b"new", b"g" => b"new", b"i" => b"new"], "the rows after the commit");
    Ok(())
}

pub(crate) fn r2_a_read_of_an_absent_key_calls_nobody(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    store.put(b"c", b"1")?;
    store.commit(&at(0))?;
    store.delete(b"c")?;
    for (key, expected) in [(b"a", vec![Bytes::from("1")]), (b"b", vec![]), (b"c", vec![])] {
        let mut seen = Vec::new();
        let found = store.get_with(key, &mut |value| seen.push(Bytes::copy_from_slice(value)))?;
        ensure_eq!(seen, expected, "the values that a read of {key:?} was called with");
        ensure_eq!(found, !expected.is_empty(), "whether a read of {key:?} tells that there is one");
    }
    Ok(())
}

pub(crate) fn r2_the_number_of_entries_is_about_right(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    ensure_eq!(store.approximate_num_entries()?, 0, "about how many entries an empty store has");
    let about = |seen: u64, truth: u64| {
        ensure!((truth / 2..=truth * 2).contains(&seen), "about {seen} entries where there are {truth}");
        Ok(())
    };
    for key in 0..1000_u16 {
        store.put(&key.to_be_bytes(), b"1")?;
    }
    about(store.approximate_num_entries()?, 1000)?;
    store.commit(&at(0))?;
    about(store.approximate_num_entries()?, 1000)?;
    for key in 0..600_u16 {
        store.delete(&key.to_be_bytes())?;
    }
    about(store.approximate_num_entries()?, 400)?;
    store.rollback()?;
    for key in 1000..3000_u16 {
        store.put(&key.to_be_bytes(), b"1")?;
    }
    about(store.approximate_num_entries()?, 3000)?;
    let store = ctx.reopen_if_persistent(store)?;
    let truth = if ctx.declares(Capability::Persistent) { 1000 } else { 3000 };
    about(store.approximate_num_entries()?, truth)?;
    if ctx.declares(Capability::Snapshots) {
        about(store.snapshot()?.approximate_num_entries()?, 1000)?;
    }
    Ok(())
}
