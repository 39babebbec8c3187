//! Large values and many rows: clauses R4 and R5.

use kstate_api::{
    Bytes, ErrorKind, KeyRange, MAX_VALUE_LEN, Order, ReadOnlyKeyValueStore, ReadOnlyKeyValueStoreExt, WriteBatch,
};

use crate::{
    Capability, CaseResult, Ctx,
    cases::writes::staged,
    check::{Rows, dump, ensure, ensure_eq, ensure_kind, rows, scan},
    ctx::{at, changelog, offset},
};

/// A value that is too long to be stored is refused before it is staged.
pub(crate) fn r4_a_value_that_is_too_long_is_refused(ctx: &Ctx) -> CaseResult {
    type Write<'w> = (&'w str, &'w dyn Fn() -> kstate_api::Result<()>);
    // Zeros that nobody writes: they take no memory until they are copied.
    let long = vec![0; MAX_VALUE_LEN + 1];
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    let before = staged(&*store)?;
    let writes: [Write<'_>; 4] = [
        ("a put", &|| store.put(b"b", &long)),
        ("put_if_absent", &|| store.put_if_absent(b"b", &long).map(drop)),
        ("put_all with it first", &|| store.put_all(&[(b"b", Some(&long)), (b"c", Some(b"1"))])),
        ("put_all with it last", &|| store.put_all(&[(b"c", Some(b"1")), (b"b", Some(&long))])),
    ];
    for (name, write) in writes {
        let what = format!("{name}, of a value of {} bytes", long.len());
        ensure_kind(write(), ErrorKind::InvalidArgument, &what)?;
        ensure!(staged(&*store)? == before, "{what}, was refused and staged something all the same");
    }
    store.commit(&at(0))?;
    ensure_eq!(dump(&*store)?, rows![b"a" => b"1"], "the rows after values that are too long");
    Ok(())
}

/// Lengths at the borders of what a length field may be cut to.
const LENGTHS: [usize; 7] = [127, 128, 255, 256, 65_535, 65_536, 4 << 20];
/// More than 24 bits tell.
const LARGEST: usize = (16 << 20) + 11;

pub(crate) fn r4_large_values_are_kept(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    let value = |len: usize, seed: u8| {
        let mut value = (0..=255_u8).map(|byte| byte ^ seed).collect::<Vec<_>>().repeat(len / 256 + 1);
        value.truncate(len);
        value
    };
    for (key, len) in (0_u8..).zip(LENGTHS) {
        store.put(&[key], &value(len, key))?;
    }
    store.put(b"largest", &value(LARGEST, 0))?;
    store.commit(&at(0))?;
    store.put(&[1], &value(4 << 20, 9))?;
    ensure!(
        store.get(&[1])?.is_some_and(|seen| seen == value(4 << 20, 9)),
        "a staged value of 4 MiB reads differently"
    );
    store.put(&[2], &value(LARGEST, 7))?;
    store.commit(&at(1))?;
    let store = ctx.reopen_if_persistent(store)?;
    let mut expected: Vec<(Bytes, Vec<u8>)> = (0_u8..)
        .zip(LENGTHS)
        .map(|(key, len)| {
            (
                Bytes::copy_from_slice(&[key]),
                match key {
                    1 => value(4 << 20, 9),
                    2 => value(LARGEST, 7),
                    _ => value(len, key),
                },
            )
        })
        .collect();
    expected.push((Bytes::from("largest"), value(LARGEST, 0)));
    for (key, value) in &expected {
        let seen = store.get(key)?.map(|seen| (seen.len(), seen == *value));
        ensure_eq!(seen, Some((value.len(), true)), "the length of value {key:?}, and whether it is the one put");
    }
    let seen = dump(&*store)?;
    ensure_eq!(
        seen.iter().map(|(_, value)| value.len()).collect::<Vec<_>>(),
        expected.iter().map(|(_, value)| value.len()).collect::<Vec<_>>(),
        "the values' lengths in a scan"
    );
    ensure!(
        seen.into_iter().eq(expected.into_iter().map(|(key, value)| (key, value.into()))),
        "a scan shows other values"
    );
    Ok(())
}

/// Fails unless scans of `view` show all of `expected`, in each order that there is.
fn ensure_shows_all<V>(ctx: &Ctx, view: &V, expected: &Rows) -> CaseResult
where
    V: ReadOnlyKeyValueStore + ?Sized,
{
    ensure!(dump(view)? == *expected, "a scan does not show {} rows as they were put", expected.len());
    if ctx.declares(Capability::ReverseScan) {
        let seen = scan(view, &KeyRange::all(), Order::Descending)?;
        ensure!(seen.iter().rev().eq(expected), "a scan downwards does not show {} rows", expected.len());
    }
    Ok(())
}

pub(crate) fn r4_writes_of_many_keys_are_kept(ctx: &Ctx) -> CaseResult {
    const KEYS: u32 = 120_000;
    let store = ctx.open()?;
    let value = |key: u32| key.wrapping_mul(0x9E37_79B9).to_be_bytes();
    // 7919 has no factor in common with the number of keys: each comes once, in an order that looks random.
    for n in 0..KEYS {
        let key = u64::from(n) * 7919 % u64::from(KEYS);
        let key = u32::try_from(key).unwrap_or_default();
        store.put(&key.to_be_bytes(), &value(key))?;
        if n % 40_000 == 0 {
            store.commit(&at(i64::from(n)))?;
        }
    }
    ensure_eq!(staged(&*store)?.len(), KEYS as usize - 80_001, "the number of staged changes");
    store.commit(&at(i64::from(KEYS)))?;
    let store = ctx.reopen_if_persistent(store)?;
    let expected: Vec<(Bytes, Bytes)> = (0..KEYS)
        .map(|key| (Bytes::copy_from_slice(&key.to_be_bytes()), Bytes::copy_from_slice(&value(key))))
        .collect();
    ensure_shows_all(ctx, &store, &expected)?;
    if ctx.declares(Capability::Snapshots) {
        ensure_shows_all(ctx, &store.snapshot()?, &expected)?;
    }
    for key in (0..KEYS).step_by(9973) {
        ensure_eq!(store.get(&key.to_be_bytes())?, Some(Bytes::copy_from_slice(&value(key))), "the value of {key}");
    }
    Ok(())
}

pub(crate) fn r4_a_restored_batch_of_many_records_is_kept(ctx: &Ctx) -> CaseResult {
    const RECORDS: u32 = 30_000;
    let store = ctx.open()?;
    let mut batch = WriteBatch::new();
    for n in 0..RECORDS {
        batch.put(Bytes::copy_from_slice(&n.to_be_bytes()), Bytes::from("1"));
    }
    batch.set_offset(changelog(), offset(i64::from(RECORDS) - 1));
    store.restore(&batch)?;
    let store = ctx.reopen_if_persistent(store)?;
    let seen = dump(&*store)?;
    ensure_eq!(seen.len(), RECORDS as usize, "the number of rows of one restored batch");
    ensure!(
        (0..RECORDS).zip(&seen).all(|(n, (key, _))| *key == n.to_be_bytes()[..]),
        "a restored batch has other keys"
    );
    Ok(())
}

pub(crate) fn r5_a_wipe_of_many_rows_removes_them_all(ctx: &Ctx) -> CaseResult {
    const ROWS: u32 = 20_000;
    let store = ctx.open()?;
    for n in 0..ROWS {
        store.put(&n.to_be_bytes(), b"1")?;
    }
    store.commit(&at(0))?;
    store.wipe()?;
    ensure_eq!(dump(&*store)?.len(), 0, "the number of rows after a wipe of {ROWS}");
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(dump(&*store)?.len(), 0, "the number of rows after a wipe of {ROWS}, in the end");
    Ok(())
}
