//! fjall's keys have 1 to 65 535 bytes, kstate's 0 to 1 MiB. So a row lies at a *place*: a zero and the beginning of
//! its key. Long keys that begin alike share a place, whose value is all of their rows. Most engines need none of this.

use std::{collections::BTreeMap, iter, ops::Bound};

use kstate_api::{Bytes, KeyRange};

const HEAD: usize = 60_000;

/// The rows at one place.
pub(crate) type Rows = BTreeMap<Bytes, Bytes>;

pub(crate) fn of(key: &[u8]) -> Vec<u8> {
    [&[0], key.get(..HEAD).unwrap_or(key)].concat()
}

/// The places of the keys in `range`, and perhaps of others.
pub(crate) fn bounds(range: &KeyRange<'_>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let bound = |bound| match bound {
        Bound::Included(key) | Bound::Excluded(key) => Bound::Included(of(key)),
        Bound::Unbounded => Bound::Unbounded,
    };
    (bound(range.start()), bound(range.end()))
}

pub(crate) fn is_shared(place: &[u8]) -> bool {
    place.len() > HEAD
}

pub(crate) fn encode(place: &[u8], rows: &Rows) -> Vec<u8> {
    let part = |part: &Bytes| [&(part.len() as u64).to_be_bytes(), part.as_ref()].concat();
    match rows.values().next() {
        Some(value) if !is_shared(place) => value.to_vec(),
        _ => rows.iter().flat_map(|(key, value)| [part(key), part(value)]).flatten().collect(),
    }
}

pub(crate) fn decode(place: &[u8], mut value: &[u8]) -> Rows {
    if !is_shared(place) {
        let key = Bytes::copy_from_slice(place.get(1..).unwrap_or_default());
        return Rows::from([(key, Bytes::copy_from_slice(value))]);
    }
    let mut part = || {
        let (len, tail) = value.split_first_chunk()?;
        let (part, tail) = tail.split_at_checked(usize::try_from(u64::from_be_bytes(*len)).ok()?)?;
        value = tail;
        Some(Bytes::copy_from_slice(part))
    };
    iter::from_fn(|| Some((part()?, part()?))).collect()
}
