//! fjall's keys have 1 to 65 535 bytes, kstate's 0 to 1 MiB. So a row lies at a *place*: a zero and the beginning of
//! its key. Keys that share their first 60 000 bytes share a place, whose value is all of their rows.
//!
//! Most engines take any key, and need nothing of this file.

use std::{
    collections::BTreeMap,
    iter,
    ops::{Bound, RangeBounds},
};

use fjall::{Guard, Iter, Slice};
use kstate_api::{Bytes, KeyRange, Order, Result, WriteBatch};

use super::{engine::failed, view::Rows};

const HEAD: usize = 60_000;

/// A place and its new value, or `None` if nothing is left there.
type Change = (Vec<u8>, Option<Vec<u8>>);

/// The rows at one place.
type Place = BTreeMap<Bytes, Bytes>;

pub(super) fn place(key: &[u8]) -> Vec<u8> {
    [&[0], key.get(..HEAD).unwrap_or(key)].concat()
}

fn is_shared(place: &[u8]) -> bool {
    place.len() > HEAD
}

/// The value of `key` in that of its place.
pub(super) fn find(key: &[u8], stored: Slice) -> Option<Slice> {
    let place = place(key);
    if is_shared(&place) { decode(&place, &stored).get(key).map(|value| value.as_ref().into()) } else { Some(stored) }
}

/// The places of the keys in `range`, and perhaps of others.
pub(super) fn places(range: &KeyRange<'_>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let bound = |bound| match bound {
        Bound::Included(key) | Bound::Excluded(key) => Bound::Included(place(key)),
        Bound::Unbounded => Bound::Unbounded,
    };
    (bound(range.start()), bound(range.end()))
}

/// The rows of `range` at `places`, in one order.
pub(super) fn rows(places: Iter, range: &KeyRange<'_>, order: Order) -> Rows {
    let range = (range.start().map(Bytes::copy_from_slice), range.end().map(Bytes::copy_from_slice));
    let at = move |place: Guard| match place.into_inner() {
        Err(error) => vec![Err(failed(error))],
        Ok((place, stored)) => {
            let rows = decode(&place, &stored).into_iter().filter(|(key, _)| range.contains(key)).map(Ok);
            if order == Order::Ascending { rows.collect() } else { rows.rev().collect() }
        }
    };
    match order {
        Order::Ascending => Box::new(places.flat_map(at).fuse()),
        Order::Descending => Box::new(places.rev().flat_map(at).fuse()),
    }
}

/// What `batch` does to each place; `get` finds what is stored there.
pub(super) fn changes(batch: &WriteBatch, get: impl Fn(&[u8]) -> Result<Option<Slice>>) -> Result<Vec<Change>> {
    let mut places = BTreeMap::new();
    for (key, value) in batch.records() {
        let (key, place) = (Bytes::copy_from_slice(key), place(key));
        if is_shared(&place) && !places.contains_key(&place) {
            let stored = get(&place)?.map(|stored| decode(&place, &stored));
            places.insert(place.clone(), stored.unwrap_or_default());
        }
        let rows: &mut Place = places.entry(place).or_default();
        match value {
            Some(value) => rows.insert(key, Bytes::copy_from_slice(value.as_ref())),
            None => rows.remove(&key),
        };
    }
    let encoded = |(place, rows): (Vec<u8>, Place)| (encode(&place, &rows), place);
    Ok(places.into_iter().map(encoded).map(|(stored, place)| (place, stored)).collect())
}

fn encode(place: &[u8], rows: &Place) -> Option<Vec<u8>> {
    let part = |part: &Bytes| [&(part.len() as u64).to_be_bytes(), part.as_ref()].concat();
    let (_, first) = rows.first_key_value()?;
    let all = || rows.iter().flat_map(|(key, value)| [part(key), part(value)]).flatten().collect();
    Some(if is_shared(place) { all() } else { first.to_vec() })
}

fn decode(place: &[u8], mut stored: &[u8]) -> Place {
    if !is_shared(place) {
        let key = Bytes::copy_from_slice(place.get(1..).unwrap_or_default());
        return Place::from([(key, Bytes::copy_from_slice(stored))]);
    }
    let mut part = || {
        let (len, tail) = stored.split_first_chunk()?;
        let (part, tail) = tail.split_at_checked(usize::try_from(u64::from_be_bytes(*len)).ok()?)?;
        stored = tail;
        Some(Bytes::copy_from_slice(part))
    };
    iter::from_fn(|| Some((part()?, part()?))).collect()
}
