use std::{fmt, ops::Bound};

use kstate_api::{KeyRange, Order};
use proptest::{collection::vec, prelude::*, sample::select};

/// Few keys, so that operations meet; with those at the edges of ranges and prefixes.
const KEYS: [&[u8]; 8] = [b"", b"\x00", b"\x00\x00", b"a", b"ab", b"\xFF", b"\xFF\x00", b"\xFF\xFF"];
const VALUES: [&[u8]; 4] = [b"", b"1", b"2", b"a longer one"];

/// A change of one row: a key, and its new value or `None` for a delete.
pub type Change = (&'static [u8], Option<&'static [u8]>);

/// One step of the model test: an operation on a store, whose answer a sorted map foretells.
///
/// What [`Debug`](fmt::Debug) prints is Rust, so that a failing run can be pasted into a test of one's own; see
/// [`Suite::replay`](crate::Suite::replay).
///
/// ```
/// use kstate_conformance_tests::Operation;
///
/// let operation = Operation::Put(b"\xFF", b"");
/// assert_eq!(format!("{operation:?}"), r#"Operation::Put(b"\xff", b"")"#);
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Puts a value.
    Put(&'static [u8], &'static [u8]),
    /// Deletes a key.
    Delete(&'static [u8]),
    /// Puts and deletes several.
    PutAll(Vec<Change>),
    /// Puts a value if the key has none.
    PutIfAbsent(&'static [u8], &'static [u8]),
    /// Stages the position of the first or the second source partition.
    StagePosition(usize, i64),
    /// Commits with an offset of the first and the second changelog partition, if there is one.
    Commit(Option<i64>, Option<i64>),
    /// Rolls back.
    Rollback,
    /// Restores changes with an offset of the first changelog partition, forgetting the others first or not.
    Restore(Vec<Change>, i64, bool),
    /// Forgets the offsets.
    ForgetOffsets,
    /// Wipes the store.
    Wipe,
    /// Flushes the store.
    Flush,
    /// Closes the store and opens it again.
    Reopen,
    /// Drops the store and opens it again.
    DropAndReopen,
    /// Takes a snapshot.
    Snapshot,
    /// Reads everything from one of the snapshots taken.
    ReadSnapshot(usize),
    /// Scans a range.
    Scan(Bound<&'static [u8]>, Bound<&'static [u8]>, Order),
    /// Opens a cursor over everything, in place of the one before.
    OpenCursor(Order),
    /// Steps the cursor, several times.
    StepCursor(usize),
}

/// Bytes, as Rust writes them.
struct Literal<'b>(&'b [u8]);

impl fmt::Debug for Literal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// Changes, as Rust writes them: within a tuple an array does not become a slice by itself.
struct Changes<'c>(&'c [Change]);

impl fmt::Debug for Changes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("vec!")?;
        let slice = |bytes| format!("&{:?}[..]", Literal(bytes));
        f.debug_list()
            .entries(self.0.iter().map(|(key, value)| match value {
                Some(value) => Verbatim(format!("({}, Some({}))", slice(key), slice(value))),
                None => Verbatim(format!("({}, None)", slice(key))),
            }))
            .finish()
    }
}

struct Verbatim(String);

impl fmt::Debug for Verbatim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = |bound: &Bound<&[u8]>| match bound {
            Bound::Included(key) => format!("Bound::Included({:?})", Literal(key)),
            Bound::Excluded(key) => format!("Bound::Excluded({:?})", Literal(key)),
            Bound::Unbounded => "Bound::Unbounded".to_owned(),
        };
        f.write_str("Operation::")?;
        match self {
            Self::Put(key, value) => write!(f, "Put({:?}, {:?})", Literal(key), Literal(value)),
            Self::Delete(key) => write!(f, "Delete({:?})", Literal(key)),
            Self::PutAll(changes) => write!(f, "PutAll({:?})", Changes(changes)),
            Self::PutIfAbsent(key, value) => write!(f, "PutIfAbsent({:?}, {:?})", Literal(key), Literal(value)),
            Self::StagePosition(partition, next) => write!(f, "StagePosition({partition}, {next})"),
            Self::Commit(first, second) => write!(f, "Commit({first:?}, {second:?})"),
            Self::Rollback => f.write_str("Rollback"),
            Self::Restore(changes, last, forget) => write!(f, "Restore({:?}, {last}, {forget})", Changes(changes)),
            Self::ForgetOffsets => f.write_str("ForgetOffsets"),
            Self::Wipe => f.write_str("Wipe"),
            Self::Flush => f.write_str("Flush"),
            Self::Reopen => f.write_str("Reopen"),
            Self::DropAndReopen => f.write_str("DropAndReopen"),
            Self::Snapshot => f.write_str("Snapshot"),
            Self::ReadSnapshot(n) => write!(f, "ReadSnapshot({n})"),
            Self::Scan(start, end, order) => write!(f, "Scan({}, {}, Order::{order:?})", bound(start), bound(end)),
            Self::OpenCursor(order) => write!(f, "OpenCursor(Order::{order:?})"),
            Self::StepCursor(steps) => write!(f, "StepCursor({steps})"),
        }
    }
}

/// Sequences of operations.
pub(crate) fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let key = || select(&KEYS[..]);
    let value = || select(&VALUES[..]);
    let change = move || (key(), proptest::option::weighted(0.6, value()));
    // Any number may follow any other: offsets go down as well as up.
    let number = || 0..1000_i64;
    let bound = move || {
        prop_oneof![
            1 => Just(Bound::Unbounded),
            2 => key().prop_map(Bound::Included),
            1 => key().prop_map(Bound::Excluded),
        ]
    };
    let order = || select(vec![Order::Ascending, Order::Descending]);
    let operation = prop_oneof![
        10 => (key(), value()).prop_map(|(key, value)| Operation::Put(key, value)),
        6 => key().prop_map(Operation::Delete),
        3 => vec(change(), 0..6).prop_map(Operation::PutAll),
        2 => (key(), value()).prop_map(|(key, value)| Operation::PutIfAbsent(key, value)),
        2 => (0..2_usize, number()).prop_map(|(partition, next)| Operation::StagePosition(partition, next)),
        6 => (proptest::option::of(number()), proptest::option::weighted(0.3, number()))
            .prop_map(|(first, second)| Operation::Commit(first, second)),
        2 => Just(Operation::Rollback),
        3 => (vec(change(), 0..6), number(), proptest::bool::weighted(0.1))
            .prop_map(|(changes, last, forget)| Operation::Restore(changes, last, forget)),
        1 => Just(Operation::ForgetOffsets),
        1 => Just(Operation::Wipe),
        1 => Just(Operation::Flush),
        2 => Just(Operation::Reopen),
        1 => Just(Operation::DropAndReopen),
        2 => Just(Operation::Snapshot),
        3 => (0..3_usize).prop_map(Operation::ReadSnapshot),
        4 => (bound(), bound(), order()).prop_map(|(start, end, order)| Operation::Scan(start, end, order)),
        2 => order().prop_map(Operation::OpenCursor),
        4 => (1..6_usize).prop_map(Operation::StepCursor),
    ];
    vec(operation, 1..200)
}

/// The keys that operations name.
pub(crate) const fn keys() -> &'static [&'static [u8]] {
    &KEYS
}

/// The range of a scan.
pub(crate) fn range<'k>(start: &Bound<&'k [u8]>, end: &Bound<&'k [u8]>) -> KeyRange<'k> {
    KeyRange::new(*start, *end)
}
