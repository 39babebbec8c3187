//! What is read from a toy: the state of one commit, and cursors over it.

use std::{
    cmp::Ordering,
    collections::BTreeMap,
    ops::Bound,
    sync::{
        Arc, RwLock, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
};

use bytes::Bytes;
use kstate_api::{
    Cursor, Error, ErrorKind, KeyRange, MAX_KEY_LEN, Offset, Order, Position, ReadOnlyKeyValueStore, Result, Row,
    Snapshot, TopicPartition,
};

use super::{
    bug::Bug,
    key_limit,
    state::{State, stored_as},
};

/// What a toy and its views have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) bug: Bug,
    /// Whether the engine takes no long keys.
    pub(crate) short_keys: bool,
    pub(crate) state: RwLock<Arc<State>>,
    /// For the bug of snapshots that share one view.
    pub(crate) last_snapshot: RwLock<Arc<State>>,
    pub(crate) closed: AtomicBool,
    /// For the bug of scans that share one place.
    pub(crate) place: AtomicUsize,
    /// For the bugs of cursors that watch the store.
    pub(crate) applied: AtomicUsize,
    pub(crate) cursors: AtomicUsize,
    /// For the bug of restored batches that are not written.
    pub(crate) restoring: AtomicBool,
}

/// For the bug of stores that share their rows.
static ROWS_OF_ALL: RwLock<BTreeMap<Bytes, Bytes>> = RwLock::new(BTreeMap::new());

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the toy is closed")
}

impl Shared {
    pub(crate) fn check(&self) -> Result<()> {
        if self.closed.load(SeqCst) { Err(closed()) } else { Ok(()) }
    }

    pub(crate) fn state(&self) -> Arc<State> {
        let state = Arc::clone(&self.state.read().unwrap());
        if self.bug == Bug::StoresShareTheirRows {
            return Arc::new(State { rows: ROWS_OF_ALL.read().unwrap().clone(), ..State::clone(&state) });
        }
        state
    }

    pub(crate) fn set(&self, state: State) {
        if self.bug == Bug::StoresShareTheirRows {
            ROWS_OF_ALL.write().unwrap().clone_from(&state.rows);
        }
        *self.state.write().unwrap() = Arc::new(state);
    }
}

/// The state of one commit, as a snapshot, and for the reads of the backend itself.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) shared: Arc<Shared>,
    pub(crate) state: Arc<State>,
    /// In a snapshot, what its cursors can tell its life from.
    pub(crate) alive: Option<Arc<()>>,
    /// How many steps there had been.
    pub(crate) applied: usize,
}

impl View {
    fn check(&self) -> Result<()> {
        if self.shared.bug == Bug::SnapshotOutlivesTheClose { Ok(()) } else { self.shared.check() }
    }

    fn state(&self) -> Arc<State> {
        match self.shared.bug {
            Bug::SnapshotIsLive => self.shared.state(),
            Bug::SnapshotExpires if self.alive.is_some() && self.shared.applied.load(SeqCst) > self.applied + 100 => {
                let rows = BTreeMap::new();
                Arc::new(State { rows, ..State::clone(&self.state) })
            }
            Bug::SnapshotsShareTheirView => Arc::clone(&self.shared.last_snapshot.read().unwrap()),
            _ => Arc::clone(&self.state),
        }
    }

    fn rows(&self, range: &KeyRange<'_>, order: Order) -> Vec<(Bytes, Bytes)> {
        let bug = self.shared.bug;
        let state = self.state();
        let mut rows: Vec<_> = state
            .rows
            .iter()
            .filter(|(key, _)| bug != Bug::KeyOfItsOwnIsHidden || *key != "offsets")
            .filter(|(key, _)| contains(range, key, bug))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        match bug {
            Bug::KeysAreSigned => rows.sort_by(|(a, _), (b, _)| signed(a, b)),
            Bug::ShorterKeysComeFirst => rows.sort_by_key(|(key, _)| (key.len(), key.clone())),
            Bug::ScanEndsAfterTenThousandRows => rows.truncate(10_000),
            Bug::ScanEndsAfter65536Rows => rows.truncate(65_536),
            Bug::SnapshotScanEndsAfter5000Rows if self.alive.is_some() => rows.truncate(5000),
            _ => {}
        }
        if order == Order::Descending && bug != Bug::DescendingScanAscends {
            rows.reverse();
            if bug == Bug::DescendingScanEndsAfter13000Rows {
                rows.truncate(13_000);
            }
            if bug == Bug::DescendingScanEndsEarly {
                rows.pop();
            }
            if bug == Bug::PagesLoseARow {
                rows = rows.into_iter().enumerate().filter(|(n, _)| n % 128 != 127).map(|(_, row)| row).collect();
            }
        }
        rows
    }
}

fn signed(a: &[u8], b: &[u8]) -> Ordering {
    let signed = |bytes: &[u8]| bytes.iter().map(|byte| byte.cast_signed()).collect::<Vec<_>>();
    signed(a).cmp(&signed(b))
}

fn contains(range: &KeyRange<'_>, key: &[u8], bug: Bug) -> bool {
    let (start, end) = (range.start(), range.end());
    match (bug, start, end) {
        (Bug::FirstKeyIsLeftOut, Bound::Included(first), _) if first == key => false,
        (Bug::LastKeyIsLeftOut, _, Bound::Included(last)) if last == key => false,
        (Bug::ExcludedBoundIsIncluded, Bound::Excluded(bound), _) if bound == key => true,
        (Bug::ExcludedBoundIsIncluded, _, Bound::Excluded(bound)) if bound == key => true,
        (Bug::OpenEndStopsBeforeFF, _, Bound::Unbounded) if key >= b"\xFF".as_slice() => false,
        (Bug::OpenStartSkipsTheEmptyKey, Bound::Unbounded, _) if key.is_empty() => false,
        (Bug::PrefixOfFFIsEmpty, Bound::Included(first), Bound::Unbounded) if first.starts_with(b"\xFF") => false,
        (Bug::EmptyPrefixIsNothing, Bound::Included([]), Bound::Unbounded) => false,
        (Bug::BoundsAreCutAt64, ..) => {
            let cut = |bound: Bound<&'_ [u8]>| bound.map(|key| key.get(..64).unwrap_or(key).to_vec());
            let (start, end) = (cut(start), cut(end));
            KeyRange::new(start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice)).contains(key)
        }
        (Bug::BoundsAreCutShort, ..) => {
            let cut = |bound: Bound<&'_ [u8]>| bound.map(|key| key.get(..2).unwrap_or(key).to_vec());
            let key = key.get(..2).unwrap_or(key);
            let (start, end) = (cut(start), cut(end));
            KeyRange::new(start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice)).contains(key)
        }
        _ => range.contains(key),
    }
}

impl ReadOnlyKeyValueStore for View {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.check()?;
        if self.shared.short_keys {
            key_limit::ensure_asked(key, self.shared.bug);
        }
        let is_missed = self.shared.bug == Bug::SnapshotMissesTheLongestKey && key.len() == MAX_KEY_LEN;
        if is_missed && self.alive.is_some() {
            return Ok(false);
        }
        let state = self.state();
        match state.rows.get(key) {
            Some(_) if self.shared.bug == Bug::KeyOfItsOwnIsHidden && key == b"offsets" => Ok(false),
            Some(value) => {
                read(value);
                Ok(true)
            }
            None => {
                if self.shared.bug == Bug::AbsentKeyIsReadAsEmpty {
                    read(b"");
                }
                Ok(false)
            }
        }
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        self.check()?;
        if self.shared.short_keys {
            key_limit::ensure_scanned(range, self.shared.bug);
        }
        let all = KeyRange::all();
        let range = if self.shared.bug == Bug::SnapshotIgnoresRanges { &all } else { range };
        let rows = self.rows(range, order);
        if self.shared.bug == Bug::EmptyRangeFails && rows.is_empty() && *range != all {
            return Err(Error::new(ErrorKind::Unavailable, "no rows"));
        }
        if self.shared.bug == Bug::CursorsAreLimited && self.shared.cursors.load(SeqCst) >= 100 {
            return Err(Error::new(ErrorKind::Busy, "the toy has no more cursors"));
        }
        self.shared.place.store(0, SeqCst);
        self.shared.cursors.fetch_add(1, SeqCst);
        Ok(Box::new(ToyCursor {
            applied: self.shared.applied.load(SeqCst),
            snapshot: self.alive.as_ref().map(Arc::downgrade),
            shared: Arc::clone(&self.shared),
            rows,
            next: 0,
            current: None,
            ascends: order == Order::Ascending,
        }))
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        self.check()?;
        Ok(if self.shared.bug == Bug::NumberOfEntriesIsZero { 0 } else { self.state().rows.len() as u64 })
    }
}

impl Snapshot for View {
    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.check()?;
        let live = self.shared.bug == Bug::SnapshotHasLiveOffsets
            || (self.shared.bug == Bug::WipeReachesIntoSnapshots && self.shared.state().offsets.is_empty());
        let state = if live { self.shared.state() } else { self.state() };
        Ok(state.offsets.get(&stored_as(partition, self.shared.bug)).copied())
    }

    fn position(&self) -> Result<Position> {
        self.check()?;
        let live = self.shared.bug == Bug::SnapshotHasALivePosition;
        Ok(if live { self.shared.state().position.clone() } else { self.state().position.clone() })
    }
}

#[derive(Debug)]
struct ToyCursor {
    shared: Arc<Shared>,
    rows: Vec<(Bytes, Bytes)>,
    next: usize,
    current: Option<usize>,
    applied: usize,
    snapshot: Option<Weak<()>>,
    ascends: bool,
}

impl Cursor for ToyCursor {
    fn advance(&mut self) -> Result<bool> {
        let bug = self.shared.bug;
        self.current = None;
        if bug == Bug::ScanIsCutShortByAClose && self.shared.closed.load(SeqCst) {
            return Ok(false);
        }
        if bug != Bug::SnapshotOutlivesTheClose {
            self.shared.check()?;
        }
        if bug == Bug::CursorFailsAfterWrites && self.applied != self.shared.applied.load(SeqCst) {
            return Err(Error::new(ErrorKind::Busy, "the toy was written to"));
        }
        if bug == Bug::SnapshotTakesItsCursorsAlong
            && self.snapshot.as_ref().is_some_and(|alive| alive.strong_count() == 0)
        {
            return Ok(false);
        }
        if bug == Bug::ScansShareTheirPlace {
            self.next = self.shared.place.fetch_add(1, SeqCst);
        }
        if bug == Bug::SnapshotsCursorReadsPagesLive
            && self.snapshot.is_some()
            && self.ascends
            && self.next > 0
            && self.next.is_multiple_of(100)
        {
            let last = self.rows[self.next - 1].0.clone();
            let later = (Bound::Excluded(last), Bound::Unbounded);
            self.rows.truncate(self.next);
            let state = self.shared.state();
            self.rows.extend(state.rows.range(later).map(|(key, value)| (key.clone(), value.clone())));
        }
        if self.next >= self.rows.len() {
            if bug == Bug::CursorBeginsAgain {
                self.next = 0;
            }
            if bug == Bug::CursorKeepsItsLastRow {
                self.current = self.rows.len().checked_sub(1);
            }
            return Ok(false);
        }
        self.current = Some(self.next);
        self.next += 1;
        Ok(true)
    }

    fn row(&self) -> Option<Row<'_>> {
        let (key, value) = self.rows.get(self.current?)?;
        Some((key, value))
    }
}

impl Drop for ToyCursor {
    fn drop(&mut self) {
        self.shared.cursors.fetch_sub(1, SeqCst);
    }
}
