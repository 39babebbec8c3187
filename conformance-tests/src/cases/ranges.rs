//! The order of keys, ranges and prefixes: clause R1.

use std::{collections::BTreeSet, ops::Bound, sync::Arc};

use bytes::Bytes;
use kstate_api::{Cursor, KeyRange, KeyValueStore, Order, ReadOnlyKeyValueStoreExt};

use crate::{
    Capability, CaseResult, Ctx, Violation,
    check::{drain, ensure, ensure_eq, keys, rows, scan, scan_keys},
    ctx::at,
};

/// How the rows of a case come to be in the store.
#[derive(Clone, Copy, Debug)]
enum Layering {
    Committed,
    Staged,
    /// Some are committed, some staged, some staged over a committed row; others are committed and their delete is
    /// staged.
    Mixed,
}

const LAYERINGS: [Layering; 3] = [Layering::Committed, Layering::Staged, Layering::Mixed];

/// Makes the store of `ctx` show `keys`, each with itself as value, and no other.
fn store_with(ctx: &Ctx, layering: Layering, keys: &[&[u8]]) -> Result<Arc<dyn KeyValueStore>, Violation> {
    let store = ctx.open()?;
    store.wipe()?;
    match layering {
        Layering::Committed | Layering::Staged => {
            for key in keys {
                store.put(key, key)?;
            }
        }
        Layering::Mixed => {
            for (n, key) in keys.iter().enumerate() {
                match n % 3 {
                    0 => store.put(key, key)?,
                    1 => store.put(key, b"stale")?,
                    _ => {}
                }
                // Neighbours that must not show.
                for deleted in neighbours(key).into_iter().filter(|neighbour| !keys.contains(&&**neighbour)) {
                    store.put(&deleted, b"deleted")?;
                }
            }
            store.commit(&at(0))?;
            for (n, key) in keys.iter().enumerate() {
                if n % 3 != 0 {
                    store.put(key, key)?;
                }
                for deleted in neighbours(key).into_iter().filter(|neighbour| !keys.contains(&&**neighbour)) {
                    store.delete(&deleted)?;
                }
            }
        }
    }
    if matches!(layering, Layering::Committed) {
        store.commit(&at(0))?;
    }
    Ok(store)
}

/// A key right above `key`, and one below.
fn neighbours(key: &[u8]) -> [Vec<u8>; 2] {
    let above = [key, &[0]].concat();
    let below = match key.split_last() {
        Some((0, head)) => head.to_vec(),
        Some((last, head)) => [head, &[last - 1, 0xFF]].concat(),
        None => vec![0],
    };
    [above, below]
}

/// The orders in which the store declares to scan.
fn orders(ctx: &Ctx) -> Vec<Order> {
    if ctx.declares(Capability::ReverseScan) {
        vec![Order::Ascending, Order::Descending]
    } else {
        vec![Order::Ascending]
    }
}

/// Fails unless `range` holds `expected`, given ascending, whatever the layering and the order.
#[track_caller]
fn ensure_range(ctx: &Ctx, stored: &[&[u8]], range: &KeyRange<'_>, expected: &[Bytes]) -> CaseResult {
    for layering in LAYERINGS {
        let store = store_with(ctx, layering, stored)?;
        for order in orders(ctx) {
            let mut expected = expected.to_vec();
            if order == Order::Descending {
                expected.reverse();
            }
            let seen = scan_keys(&store, range, order)?;
            ensure_eq!(seen, expected, "the keys of {range:?}, {order:?}, over {layering:?} rows");
        }
        store.close()?;
    }
    Ok(())
}

pub(crate) fn r1_keys_are_ordered_as_unsigned_bytes(ctx: &Ctx) -> CaseResult {
    let stored: [&[u8]; 11] =
        [b"\xFF\xFF", b"b", b"\x00", b"\x80", b"a", b"\xFF", b"", b"\x00\x00", b"\x7F", b"aa", b"\xFE\xFF\xFF"];
    let sorted =
        keys![b"", b"\x00", b"\x00\x00", b"a", b"aa", b"b", b"\x7F", b"\x80", b"\xFE\xFF\xFF", b"\xFF", b"\xFF\xFF"];
    ensure_range(ctx, &stored, &KeyRange::all(), &sorted)
}

pub(crate) fn r1_a_range_may_be_open_at_either_end(ctx: &Ctx) -> CaseResult {
    let stored: [&[u8]; 5] = [b"", b"a", b"b", b"c", b"\xFF\xFF"];
    ensure_range(ctx, &stored, &KeyRange::from(b"b"), &keys![b"b", b"c", b"\xFF\xFF"])?;
    ensure_range(ctx, &stored, &KeyRange::from(b"b0"), &keys![b"c", b"\xFF\xFF"])?;
    ensure_range(ctx, &stored, &KeyRange::up_to(b"b"), &keys![b"", b"a", b"b"])?;
    ensure_range(ctx, &stored, &KeyRange::up_to(b"b0"), &keys![b"", b"a", b"b"])?;
    ensure_range(ctx, &stored, &KeyRange::up_to(b""), &keys![b""])?;
    ensure_range(ctx, &stored, &KeyRange::from(b"\xFF\xFF\xFF"), &[])?;
    ensure_range(ctx, &stored, &KeyRange::all(), &keys![b"", b"a", b"b", b"c", b"\xFF\xFF"])
}

pub(crate) fn r1_an_excluded_bound_is_left_out(ctx: &Ctx) -> CaseResult {
    let stored: [&[u8]; 4] = [b"a", b"b", b"b\x00", b"c"];
    let (a, b, c) = (b"a".as_slice(), b"b".as_slice(), b"c".as_slice());
    let range = |start, end| KeyRange::new(start, end);
    ensure_range(ctx, &stored, &range(Bound::Excluded(a), Bound::Excluded(c)), &keys![b"b", b"b\x00"])?;
    ensure_range(ctx, &stored, &range(Bound::Excluded(b), Bound::Included(c)), &keys![b"b\x00", b"c"])?;
    ensure_range(ctx, &stored, &range(Bound::Included(a), Bound::Excluded(b)), &keys![b"a"])?;
    ensure_range(ctx, &stored, &range(Bound::Excluded(b), Bound::Unbounded), &keys![b"b\x00", b"c"])?;
    ensure_range(ctx, &stored, &range(Bound::Unbounded, Bound::Excluded(b)), &keys![b"a"])?;
    ensure_range(ctx, &stored, &range(Bound::Excluded(b), Bound::Excluded(b)), &[])?;
    ensure_range(ctx, &stored, &range(Bound::Excluded(b), Bound::Excluded(b"b\x00")), &[])
}

pub(crate) fn r1_a_range_without_keys_is_empty(ctx: &Ctx) -> CaseResult {
    ensure_range(ctx, &[], &KeyRange::all(), &[])?;
    ensure_range(ctx, &[b"a", b"d"], &KeyRange::between(b"b", b"c"), &[])?;
    ensure_range(ctx, &[b"a", b"d"], &KeyRange::prefix(b"b"), &[])?;
    ensure_range(ctx, &[b"a", b"d"], &KeyRange::from(b"e"), &[])?;
    ensure_range(ctx, &[b"b", b"d"], &KeyRange::up_to(b"a"), &[])
}

pub(crate) fn ho_43_inverted_bounds_are_an_empty_range(ctx: &Ctx) -> CaseResult {
    // Two's complement sorts -1 after 1.
    let signed = [-1_i32, 0, 1].map(i32::to_be_bytes);
    let stored: Vec<&[u8]> = signed.iter().map(<[u8; 4]>::as_slice).chain([b"b".as_slice()]).collect();
    let [minus_one, zero, one] = &signed;
    ensure_range(ctx, &stored, &KeyRange::between(minus_one, one), &[])?;
    ensure_range(ctx, &stored, &KeyRange::between(zero, one), &keys![zero, one])?;
    ensure_range(ctx, &stored, &KeyRange::between(b"c", b"a"), &[])?;
    ensure_range(ctx, &stored, &KeyRange::between(b"b\x00", b"b"), &[])?;
    ensure_range(ctx, &stored, &KeyRange::between(b"a", b""), &[])?;
    ensure_range(ctx, &stored, &KeyRange::new(Bound::Included(b"b"), Bound::Excluded(b"b")), &[])?;
    ensure_range(ctx, &stored, &KeyRange::new(Bound::Excluded(b"b"), Bound::Included(b"b")), &[])?;
    ensure_range(ctx, &stored, &KeyRange::new(Bound::Excluded(b"c"), Bound::Excluded(b"a")), &[])
}

pub(crate) fn ho_44_both_ends_of_a_range_are_included(ctx: &Ctx) -> CaseResult {
    let stored: [&[u8]; 3] = [b"a", b"b", b"c"];
    ensure_range(ctx, &stored, &KeyRange::between(b"a", b"c"), &keys![b"a", b"b", b"c"])?;
    ensure_range(ctx, &stored, &KeyRange::between(b"a", b"a"), &keys![b"a"])?;
    ensure_range(ctx, &stored, &KeyRange::between(b"a0", b"b9"), &keys![b"b"])?;
    ensure_range(ctx, &stored, &KeyRange::between(b"", b"\xFF\xFF"), &keys![b"a", b"b", b"c"])?;
    let store = store_with(ctx, Layering::Mixed, &stored)?;
    ensure_eq!(drain(&mut *store.range(b"a", b"b")?)?, rows![b"a" => b"a", b"b" => b"b"], "the rows of range(a, b)");
    if ctx.declares(Capability::ReverseScan) {
        let seen = drain(&mut *store.reverse_range(b"a", b"b")?)?;
        ensure_eq!(seen, rows![b"b" => b"b", b"a" => b"a"], "the rows of reverse_range(a, b)");
    }
    Ok(())
}

pub(crate) fn ho_45_a_prefix_of_ff_has_no_upper_bound(ctx: &Ctx) -> CaseResult {
    let stored: [&[u8]; 6] = [b"\xFE", b"\xFE\xFF", b"\xFF", b"\xFF\x00", b"\xFF\x10", b"\xFF\xFF\xFF"];
    let expected = keys![b"\xFF", b"\xFF\x00", b"\xFF\x10", b"\xFF\xFF\xFF"];
    ensure_range(ctx, &stored, &KeyRange::prefix(b"\xFF"), &expected)?;
    ensure_range(ctx, &stored, &KeyRange::prefix(b"\xFF\xFF"), &keys![b"\xFF\xFF\xFF"])?;
    ensure_range(ctx, &stored, &KeyRange::prefix(b"\xFF\xFF\xFF\xFF"), &[])
}

pub(crate) fn r1_a_prefix_ends_at_the_next_one(ctx: &Ctx) -> CaseResult {
    let stored: [&[u8]; 7] = [
        b"\x03\xAA",
        b"\x03\xAA\xFE\xFF",
        b"\x03\xAA\xFF",
        b"\x03\xAA\xFF\x00",
        b"\x03\xAA\xFF\xFF\xFF",
        b"\x03\xAB",
        b"\x04",
    ];
    let expected = keys![b"\x03\xAA\xFF", b"\x03\xAA\xFF\x00", b"\x03\xAA\xFF\xFF\xFF"];
    ensure_range(ctx, &stored, &KeyRange::prefix(b"\x03\xAA\xFF"), &expected)?;
    ensure_range(ctx, &stored, &KeyRange::prefix(b"\x03\xAB"), &keys![b"\x03\xAB"])?;
    ensure_range(ctx, &stored, &KeyRange::prefix(b"\x03"), &stored.map(Bytes::from_static)[..6])
}

pub(crate) fn r1_the_empty_prefix_is_everything(ctx: &Ctx) -> CaseResult {
    let stored: [&[u8]; 4] = [b"", b"\x00", b"a", b"\xFF\xFF"];
    ensure_range(ctx, &stored, &KeyRange::prefix(b""), &stored.map(Bytes::from_static))
}

/// Holds rows `length of the key | key | time`, as a store does that keeps several rows for each key, so that one key's
/// can be scanned without meeting another's. (Windows themselves are another kind of store.)
pub(crate) fn ho_46_rows_of_one_key_do_not_mix_with_anothers(ctx: &Ctx) -> CaseResult {
    let row = |key: &str, time: i64| {
        let len = u16::try_from(key.len()).unwrap_or(u16::MAX);
        [&len.to_be_bytes(), key.as_bytes(), &time.to_be_bytes()].concat()
    };
    let stored = [row("a", 0), row("aa", 0), row("a", 1), row("aa", 1), row("a", 60_000), row("b", 0)];
    let stored: Vec<&[u8]> = stored.iter().map(Vec::as_slice).collect();
    let prefix = [&1_u16.to_be_bytes(), b"a".as_slice()].concat();
    ensure_range(ctx, &stored, &KeyRange::prefix(&prefix), &keys![row("a", 0), row("a", 1), row("a", 60_000)])?;
    let all_times = (row("a", 0), row("a", i64::MAX));
    let expected = keys![row("a", 0), row("a", 1), row("a", 60_000)];
    ensure_range(ctx, &stored, &KeyRange::between(&all_times.0, &all_times.1), &expected)
}

pub(crate) fn r1_every_range_over_every_layering(ctx: &Ctx) -> CaseResult {
    const KEYS: [&[u8]; 9] = [b"", b"\x00", b"a", b"a\x00", b"ab", b"b", b"\x80", b"\xFF", b"\xFF\xFF"];
    const PROBES: [&[u8]; 11] =
        [b"", b"\x00", b"\x00\x01", b"a", b"a\x00", b"aa", b"b", b"\x7F", b"\x80", b"\xFF", b"\xFF\xFF"];
    let model: BTreeSet<&[u8]> = KEYS.into_iter().collect();
    let bounds: Vec<Bound<&[u8]>> = std::iter::once(Bound::Unbounded)
        .chain(PROBES.into_iter().flat_map(|probe| [Bound::Included(probe), Bound::Excluded(probe)]))
        .collect();
    for layering in LAYERINGS {
        let store = store_with(ctx, layering, &KEYS)?;
        for (start, end) in bounds.iter().flat_map(|start| bounds.iter().map(move |end| (*start, *end))) {
            let range = KeyRange::new(start, end);
            let ascending: Vec<Bytes> = if range.is_inverted() {
                Vec::new()
            } else {
                model.range::<[u8], _>((start, end)).map(|key| Bytes::from_static(key)).collect()
            };
            for order in orders(ctx) {
                let mut expected = ascending.clone();
                if order == Order::Descending {
                    expected.reverse();
                }
                let seen = scan(&store, &range, order)?;
                let seen_keys: Vec<Bytes> = seen.iter().map(|(key, _)| key.clone()).collect();
                ensure_eq!(seen_keys, expected, "the keys of {range:?}, {order:?}, over {layering:?} rows");
                let wrong = seen.iter().find(|(key, value)| key != value);
                ensure_eq!(wrong, None, "a row of {range:?}, {order:?}, over {layering:?} rows with another's value");
            }
        }
        store.close()?;
    }
    Ok(())
}

/// Steps over a long scan, both in one go and a row at a time between other scans.
pub(crate) fn r1_scans_do_not_disturb_each_other(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    let expected: Vec<Bytes> = (0..200_u8).map(|n| Bytes::copy_from_slice(&[n])).collect();
    for key in &expected {
        store.put(key, key)?;
        if **key == [120] {
            store.commit(&at(0))?;
        }
    }
    let mut cursors: Vec<Box<dyn Cursor>> = Vec::new();
    for start in 0..20_u8 {
        cursors.push(store.scan(&KeyRange::from(&[start]), Order::Ascending)?);
    }
    let mut seen = vec![Vec::new(); cursors.len()];
    for _ in 0..=expected.len() {
        for (cursor, seen) in cursors.iter_mut().zip(&mut seen) {
            if cursor.advance()? {
                seen.extend(cursor.row().map(|(key, _)| Bytes::copy_from_slice(key)));
            }
        }
    }
    for (start, seen) in seen.iter().enumerate() {
        ensure_eq!(
            seen.iter().collect::<Vec<_>>(),
            expected.iter().skip(start).collect::<Vec<_>>(),
            "the keys from {start} on, scanned beside others"
        );
    }
    Ok(())
}

pub(crate) fn r1_long_bounds_count_to_their_last_byte(ctx: &Ctx) -> CaseResult {
    let stem = [b'k'; 299];
    let long = |end: &[u8]| [&stem[..], end].concat();
    let keys = [long(b""), long(b"a"), long(b"aa"), long(b"b"), long(b"c")];
    let (a, b) = (long(b"a"), long(b"b"));
    let after_a = KeyRange::new(Bound::Excluded(&a), Bound::Unbounded);
    let ranges = [
        (KeyRange::between(&a, &b), 1..4),
        (after_a, 2..5),
        (KeyRange::new(Bound::Included(&a), Bound::Excluded(&b)), 1..3),
        (KeyRange::from(&b), 3..5),
        (KeyRange::up_to(&a), 0..2),
        (KeyRange::prefix(&a), 1..3),
        (KeyRange::prefix(&stem), 0..5),
    ];
    for layering in LAYERINGS {
        let store = store_with(ctx, layering, &keys.each_ref().map(Vec::as_slice))?;
        for (range, expected) in &ranges {
            let shown = keys.iter().take(expected.end).skip(expected.start);
            let mut expected: Vec<Bytes> = shown.map(|key| Bytes::copy_from_slice(key)).collect();
            let ends =
                |keys: &[Bytes]| keys.iter().map(|key| key.slice(stem.len().min(key.len())..)).collect::<Vec<_>>();
            let seen = scan_keys(&store, range, Order::Ascending)?;
            ensure!(seen == expected, "{layering:?}: of long keys {:?} are shown", ends(&seen));
            if ctx.declares(Capability::ReverseScan) {
                expected.reverse();
                let seen = scan_keys(&store, range, Order::Descending)?;
                ensure!(seen == expected, "{layering:?}: of long keys {:?} are shown downwards", ends(&seen));
            }
        }
        store.close()?;
    }
    Ok(())
}
