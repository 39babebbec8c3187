//! How long keys may be: clauses R1 and R4.

use std::ops::Bound;

use kstate_api::{
    Bytes, CommitOutcome, ErrorKind, KeyRange, KeyValueStore, MAX_KEY_LEN, Order, ReadOnlyKeyValueStore,
    ReadOnlyKeyValueStoreExt, WriteBatch,
};

use crate::{
    Capability, CaseResult, Ctx, Violation,
    cases::writes::staged,
    check::{ensure, ensure_eq, ensure_kind, scan_keys},
    ctx::{at, changelog, committed, offset},
};

/// Every store takes keys of so many bytes: LMDB's limit, the lowest of an engine that people use.
const LEAST_LIMIT: usize = 511;

/// Whether a key of `len` bytes can be staged. Nothing is, in the end.
pub(crate) fn takes(store: &dyn KeyValueStore, len: usize) -> Result<bool, Violation> {
    match store.put(&vec![7; len], b"1") {
        Ok(()) => {
            store.rollback()?;
            Ok(true)
        }
        Err(error) if error.kind() == ErrorKind::InvalidArgument => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The length of the longest key that `store` takes.
fn limit(store: &dyn KeyValueStore) -> Result<usize, Violation> {
    ensure!(takes(store, LEAST_LIMIT)?, "a key of {LEAST_LIMIT} bytes is refused; every store takes it");
    let (mut taken, mut refused) = (LEAST_LIMIT, MAX_KEY_LEN + 1);
    while taken + 1 < refused {
        let middle = usize::midpoint(taken, refused);
        if takes(store, middle)? { taken = middle } else { refused = middle }
    }
    Ok(taken)
}

pub(crate) fn r4_a_key_that_is_too_long_is_refused(ctx: &Ctx) -> CaseResult {
    limit_is_kept(ctx, MAX_KEY_LEN)
}

pub(crate) fn r4_a_key_that_is_too_long_for_the_engine_is_refused(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    let limit = limit(&*store)?;
    store.close()?;
    drop(store);
    limit_is_kept(ctx, limit)
}

/// Keys of `limit` bytes are kept, and longer ones refused before anything is staged.
fn limit_is_kept(ctx: &Ctx, limit: usize) -> CaseResult {
    let long = vec![7; limit + 1];
    let longest = vec![7; limit];
    // It differs in its last byte only.
    let next = [vec![7; limit - 1].as_slice(), &[8]].concat();
    let store = ctx.open()?;
    refuses(&*store, &long)?;
    store.put(&longest, b"1")?;
    store.put(&next, b"2")?;
    refuses(&*store, &long)?;
    store.commit(&at(0))?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(store.get(&longest)?, Some(Bytes::from("1")), "the value of a key of {limit} bytes");
    ensure_eq!(store.get(&next)?, Some(Bytes::from("2")), "the value of another, which differs in the last byte");
    ensure_eq!(store.committed_value(&next)?, Some(Bytes::from("2")), "its committed value");
    if ctx.declares(Capability::Snapshots) {
        let seen = store.snapshot()?.get(&longest)?;
        ensure_eq!(seen, Some(Bytes::from("1")), "the value of a key of {limit} bytes in a snapshot");
    }
    for order in [Order::Ascending, Order::Descending] {
        if order == Order::Ascending || ctx.declares(Capability::ReverseScan) {
            let mut seen = scan_keys(&*store, &KeyRange::all(), order)?;
            seen.sort();
            ensure!(seen == [&longest, &next], "an {order:?} scan does not show two keys of {limit} bytes");
        }
    }
    finds_nothing(ctx, &*store, &long)?;

    // A changelog may hold what another engine took.
    let restored = |key: &[u8], last| {
        let mut batch = WriteBatch::new();
        batch.put(b"a", "1");
        batch.put(key, "3");
        batch.set_offset(changelog(), offset(last));
        batch
    };
    let refused = ensure_kind(
        store.restore(&restored(&long, 1)),
        ErrorKind::InvalidArgument,
        "a restored batch with a key that is too long",
    )?;
    ensure_eq!(refused.commit_outcome(), Some(CommitOutcome::NotApplied), "its outcome");
    ensure!(!store.contains_key(b"a")?, "the rest of a refused batch was applied");
    if store.manages_offsets() {
        ensure_eq!(committed(&*store)?, Some(0), "the offset after a refused batch");
    }
    store.restore(&restored(&longest, 2))?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(store.get(&longest)?, Some(Bytes::from("3")), "the restored value of a key of {limit} bytes");
    store.delete(&longest)?;
    store.commit(&at(3))?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure!(!store.contains_key(&longest)?, "a key of {limit} bytes is there after its delete");
    ensure!(store.contains_key(&next)?, "the delete of a key of {limit} bytes took another along");
    Ok(())
}

/// Every write of the key `long` is refused, and stages nothing.
fn refuses(store: &dyn KeyValueStore, long: &[u8]) -> CaseResult {
    type Write<'w> = (&'w str, &'w dyn Fn() -> kstate_api::Result<()>);
    let writes: [Write<'_>; 6] = [
        ("a put", &|| store.put(long, b"1")),
        ("a delete", &|| store.delete(long)),
        ("put_if_absent", &|| store.put_if_absent(long, b"1").map(drop)),
        ("put_all with it first", &|| store.put_all(&[(long, Some(b"1")), (b"a", Some(b"1"))])),
        ("put_all with it last", &|| store.put_all(&[(b"a", Some(b"1")), (long, Some(b"1"))])),
        ("put_all with its delete last", &|| store.put_all(&[(b"a", Some(b"1")), (long, None)])),
    ];
    let before = staged(store)?;
    for (name, write) in writes {
        let what = format!("{name}, of a key of {} bytes", long.len());
        let refused = ensure_kind(write(), ErrorKind::InvalidArgument, &what)?;
        let named = refused.store().unwrap_or(store.name());
        ensure_eq!(named, store.name(), "the store's name as the error of {what}, tells it");
        ensure!(staged(store)? == before, "{what}, was refused and staged something all the same");
    }
    ensure!(store.is_open(), "the store is not open after it refused keys of {} bytes", long.len());
    Ok(())
}

/// A key that cannot be stored is not there.
fn finds_nothing(ctx: &Ctx, store: &dyn KeyValueStore, long: &[u8]) -> CaseResult {
    let len = long.len();
    ensure_eq!(store.get(long)?, None, "the value of a key of {len} bytes");
    ensure!(!store.get_with(long, &mut |_| ())?, "a key of {len} bytes is there");
    ensure_eq!(store.committed_value(long)?, None, "the committed value of a key of {len} bytes");
    if ctx.declares(Capability::Snapshots) {
        ensure_eq!(store.snapshot()?.get(long)?, None, "the value of a key of {len} bytes in a snapshot");
    }
    Ok(())
}

pub(crate) fn r1_bounds_may_be_longer_than_any_key(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    let limit = if ctx.declares(Capability::LongKeys) { MAX_KEY_LEN } else { limit(&*store)? };
    let longest = vec![7; limit];
    let longer = |last: u8| [longest.as_slice(), &[last]].concat();
    let next = [vec![7; limit - 1].as_slice(), &[8]].concat();
    let keys = [vec![7], longest.clone(), next, vec![8]];
    let ends = [longest.clone(), longer(0), longer(0xFF), vec![7]];
    let mut bounds = vec![Bound::Unbounded];
    bounds.extend(ends.iter().flat_map(|key| [Bound::Included(&**key), Bound::Excluded(&**key)]));
    let mut ranges: Vec<_> =
        bounds.iter().flat_map(|start| bounds.iter().map(|end| KeyRange::new(*start, *end))).collect();
    ranges.extend(ends.iter().map(|end| KeyRange::prefix(end)));
    let check = |view: &dyn ReadOnlyKeyValueStore, what: &str| {
        for range in &ranges {
            for order in [Order::Ascending, Order::Descending] {
                if order == Order::Descending && !ctx.declares(Capability::ReverseScan) {
                    continue;
                }
                // By number: a person cannot read the keys.
                let held = keys.iter().enumerate().filter(|(_, key)| range.contains(key));
                let mut expected: Vec<_> = held.map(|(n, _)| Some(n)).collect();
                if order == Order::Descending {
                    expected.reverse();
                }
                let seen = scan_keys(view, range, order)?;
                let seen: Vec<_> = seen.iter().map(|seen| keys.iter().position(|key| key == seen)).collect();
                let what =
                    format!("the {what} keys from {} to {}, {order:?}", named(range.start()), named(range.end()));
                ensure_eq!(seen, expected, "{what}");
            }
        }
        Ok(())
    };
    for key in &keys {
        store.put(key, b"1")?;
    }
    check(&*store, "staged")?;
    store.commit(&at(0))?;
    check(&*store, "committed")?;
    if ctx.declares(Capability::Snapshots) {
        check(&*store.snapshot()?, "snapshot's")?;
    }
    Ok(())
}

/// A bound by its length and its last byte.
fn named(bound: Bound<&[u8]>) -> String {
    let name = |key: &[u8]| format!("{} bytes that end in {:?}", key.len(), key.last());
    format!("{:?}", bound.map(name))
}
