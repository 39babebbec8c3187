//! What cases are written with.

use std::fmt::Debug;

use bytes::Bytes;
use kstate_api::{Cursor, CursorExt, Error, ErrorKind, KeyRange, Order, ReadOnlyKeyValueStore};

use crate::Violation;

/// Rows as a scan shows them.
pub(crate) type Rows = Vec<(Bytes, Bytes)>;

/// No case stores as many rows: a cursor that shows more does not end.
const MOST_ROWS: usize = 4_000_000;

/// Fails the case unless the condition holds, with the message.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::Violation::new(format!($($message)+)));
        }
    };
}

/// Fails the case unless what was seen is what is expected; the message says what it is.
macro_rules! ensure_eq {
    ($seen:expr, $expected:expr, $($message:tt)+) => {
        match (&$seen, &$expected) {
            (seen, expected) => {
                if seen != expected {
                    return Err($crate::check::differs(&format!($($message)+), seen, expected));
                }
            }
        }
    };
}

/// Rows from literals: `rows![b"a" => b"1"]`.
macro_rules! rows {
    ($($key:expr => $value:expr),* $(,)?) => {
        $crate::check::Rows::from([
            $((bytes::Bytes::copy_from_slice($key.as_ref()), bytes::Bytes::copy_from_slice($value.as_ref()))),*
        ])
    };
}

/// Keys from literals.
macro_rules! keys {
    ($($key:expr),* $(,)?) => {
        Vec::<bytes::Bytes>::from([$(bytes::Bytes::copy_from_slice($key.as_ref())),*])
    };
}

pub(crate) use {ensure, ensure_eq, keys, rows};

#[track_caller]
pub(crate) fn differs<S: Debug + ?Sized, E: Debug + ?Sized>(what: &str, seen: &S, expected: &E) -> Violation {
    Violation::new(format!("{what}: expected {}, saw {}", short(&format!("{expected:?}")), short(&format!("{seen:?}"))))
}

/// `text` as a person can read it: the middle of a long one is left out.
pub(crate) fn short(text: &str) -> String {
    const HALF: usize = 600;
    let chars = text.chars().count();
    if chars <= 3 * HALF {
        return text.to_owned();
    }
    let head: String = text.chars().take(HALF).collect();
    let tail: String = text.chars().skip(chars - HALF).collect();
    format!("{head} ... {tail}")
}

/// Fails the case unless `result` is an error of `kind`.
#[track_caller]
pub(crate) fn ensure_kind<T>(result: kstate_api::Result<T>, kind: ErrorKind, what: &str) -> Result<Error, Violation> {
    match result {
        Err(error) if error.kind() == kind => Ok(error),
        Err(error) => Err(Violation::new(format!("{what}: expected {kind:?}, saw {:?} ({error})", error.kind()))),
        Ok(_) => Err(Violation::new(format!("{what}: expected {kind:?}, but it succeeded"))),
    }
}

/// The rows left in `cursor`.
#[track_caller]
pub(crate) fn drain(cursor: &mut dyn Cursor) -> Result<Rows, Violation> {
    let mut rows = Rows::new();
    while let Some((key, value)) = cursor.next_row()? {
        rows.push((Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
        ensure!(rows.len() <= MOST_ROWS, "a scan did not end after {MOST_ROWS} rows");
    }
    Ok(rows)
}

/// The rows of `range` in `view`.
#[track_caller]
pub(crate) fn scan<V>(view: &V, range: &KeyRange<'_>, order: Order) -> Result<Rows, Violation>
where
    V: ReadOnlyKeyValueStore + ?Sized,
{
    drain(&mut *view.scan(range, order)?)
}

/// Every row of `view`.
#[track_caller]
pub(crate) fn dump<V: ReadOnlyKeyValueStore + ?Sized>(view: &V) -> Result<Rows, Violation> {
    scan(view, &KeyRange::all(), Order::Ascending)
}

/// The keys of `range` in `view`.
#[track_caller]
pub(crate) fn scan_keys<V>(view: &V, range: &KeyRange<'_>, order: Order) -> Result<Vec<Bytes>, Violation>
where
    V: ReadOnlyKeyValueStore + ?Sized,
{
    Ok(scan(view, range, order)?.into_iter().map(|(key, _)| key).collect())
}
