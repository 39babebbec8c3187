//! A toy backend: sorted maps in memory, and a log of whole batches. It keeps the contract, but for its bug.

use std::{
    cmp::Ordering,
    collections::BTreeMap,
    fs::{self, File, OpenOptions, TryLockError},
    ops::Bound,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, RwLock, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use bytes::Bytes;
use kstate_api::{
    Backend, BackendSupplier, Capabilities, ChangelogOffsets, CommitOutcome, Cursor, Durability, Error, ErrorKind,
    KeyRange, Offset, Order, Position, ReadOnlyKeyValueStore, Result, Row, Snapshot, TopicPartition, WriteBatch,
};

use super::{
    bug::Bug,
    log::{Entry, Log},
};

/// Long enough for a killed process, or another thread, to come between two steps.
const MOMENT: Duration = Duration::from_millis(2);

/// The rows, offsets and position after one commit.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub(crate) rows: BTreeMap<Bytes, Bytes>,
    offsets: BTreeMap<TopicPartition, Offset>,
    position: Position,
    /// For the bug of offsets that only grow.
    greatest: BTreeMap<TopicPartition, Offset>,
}

#[derive(Debug)]
struct Shared {
    bug: Bug,
    state: RwLock<Arc<State>>,
    /// For the bug of snapshots that share one view.
    last_snapshot: RwLock<Arc<State>>,
    closed: AtomicBool,
    /// For the bug of scans that share one place.
    place: AtomicUsize,
    /// For the bugs of cursors that watch the store.
    applied: AtomicUsize,
    cursors: AtomicUsize,
}

/// For the bug of stores that share their rows.
static ROWS_OF_ALL: RwLock<BTreeMap<Bytes, Bytes>> = RwLock::new(BTreeMap::new());

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the toy is closed")
}

impl Shared {
    fn check(&self) -> Result<()> {
        if self.closed.load(SeqCst) { Err(closed()) } else { Ok(()) }
    }

    fn state(&self) -> Arc<State> {
        let state = Arc::clone(&self.state.read().unwrap());
        if self.bug == Bug::StoresShareTheirRows {
            return Arc::new(State { rows: ROWS_OF_ALL.read().unwrap().clone(), ..State::clone(&state) });
        }
        state
    }

    fn set(&self, state: State) {
        if self.bug == Bug::StoresShareTheirRows {
            ROWS_OF_ALL.write().unwrap().clone_from(&state.rows);
        }
        *self.state.write().unwrap() = Arc::new(state);
    }
}

/// What keeps other owners out of the directory.
#[derive(Debug)]
struct Lock {
    file: Option<File>,
    path: PathBuf,
}

/// For the bugs that lock within the process.
static OPEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

impl Lock {
    fn locked() -> Error {
        Error::new(ErrorKind::Locked, "the toy's directory has an owner")
    }

    fn take(directory: &Path, bug: Bug) -> Result<Self> {
        let path = directory.join("lock");
        match bug {
            Bug::NothingIsLocked => return Ok(Self { file: None, path }),
            Bug::OtherProcessesAreNotLockedOut | Bug::SecondCloseFreesTheSuccessor => {
                let mut open = OPEN.lock().unwrap();
                if open.contains(&path) {
                    return Err(Self::locked());
                }
                open.push(path.clone());
                return Ok(Self { file: None, path });
            }
            Bug::LockOutlivesItsOwner => {
                File::create_new(&path).map_err(|_| Self::locked())?;
                return Ok(Self { file: None, path });
            }
            _ => {}
        }
        let options = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = options.map_err(|error| Error::io("cannot open the lock", error))?;
        let mut patience = if bug == Bug::LockIsWaitedFor { 500 } else { 0 };
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { file: Some(file), path }),
                Err(TryLockError::WouldBlock) if patience > 0 => {
                    patience -= 1;
                    thread::sleep(Duration::from_millis(10));
                }
                Err(TryLockError::WouldBlock) => return Err(Self::locked()),
                Err(TryLockError::Error(error)) => return Err(Error::io("cannot lock", error)),
            }
        }
    }

    fn free(&mut self, bug: Bug) {
        match bug {
            Bug::OtherProcessesAreNotLockedOut | Bug::SecondCloseFreesTheSuccessor => {
                OPEN.lock().unwrap().retain(|open| *open != self.path);
            }
            Bug::LockOutlivesItsOwner => drop(fs::remove_file(&self.path)),
            _ => drop(self.file.take()),
        }
    }
}

#[derive(Debug)]
pub(crate) struct ToyBackend {
    bug: Bug,
    durability: Durability,
    shared: Arc<Shared>,
    durable: RwLock<BTreeMap<TopicPartition, Offset>>,
    log: Mutex<Log>,
    lock: Mutex<Lock>,
}

/// Opens toys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToyBackends {
    pub(crate) bug: Bug,
    pub(crate) durability: Durability,
}

impl BackendSupplier for ToyBackends {
    type Backend = ToyBackend;

    fn persistent(&self) -> bool {
        true
    }

    fn open(&self, directory: &Path) -> Result<ToyBackend> {
        ToyBackend::open(directory, *self)
    }

    fn read_offsets(&self, directory: &Path, partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
        if self.bug == Bug::ReadOffsetsMakesAStore {
            fs::create_dir_all(directory).map_err(|error| Error::io("cannot make the directory", error))?;
        }
        let Ok(bytes) = fs::read(directory.join("log")) else { return Ok(ChangelogOffsets::new()) };
        let mut state = State::default();
        for entry in Log::parse(&bytes).0 {
            replay(&mut state, &entry, self.bug);
        }
        let asked =
            |partition: &TopicPartition| self.bug == Bug::ReadOffsetsFindsForeignOnes || partitions.contains(partition);
        Ok(state.offsets.into_iter().filter(|(partition, _)| asked(partition)).collect())
    }
}

/// Applies an entry of the log at an open.
fn replay(state: &mut State, entry: &Entry, bug: Bug) {
    apply(state, entry, bug);
    match bug {
        Bug::OffsetsAreNotStored => state.offsets.clear(),
        Bug::PositionIsNotStored => state.position = Position::new(),
        _ => {}
    }
}

fn apply(state: &mut State, entry: &Entry, bug: Bug) {
    let batch = match entry {
        Entry::Batch(batch) => batch,
        Entry::Wipe => {
            let old = std::mem::take(state);
            state.greatest = old.greatest;
            match bug {
                Bug::WipeMissesTheGreatestKeys => {
                    state.rows = old.rows.into_iter().filter(|(key, _)| key.starts_with(b"\xFF\xFF\xFF")).collect();
                }
                Bug::WipeKeepsOffsets => state.offsets = old.offsets,
                Bug::WipeKeepsThePosition => state.position = old.position,
                _ => {}
            }
            return;
        }
    };
    if bug == Bug::CommitWithoutRecordsIsSkipped && batch.records().next().is_none() && !batch.forgets_offsets() {
        return;
    }
    let forget = |state: &mut State| {
        state.offsets.clear();
        if bug != Bug::ForgettingKeepsThePosition {
            state.position = Position::new();
        }
        if bug == Bug::ForgettingDropsTheRows {
            state.rows.clear();
        }
    };
    let forgets = batch.forgets_offsets()
        || (bug == Bug::EmptyCommitForgetsOffsets && batch.offsets().is_empty())
        || (bug == Bug::CommitReplacesOffsets && !batch.offsets().is_empty());
    if forgets {
        forget(state);
    }
    for (key, value) in batch.records() {
        match value {
            _ if bug == Bug::EmptyKeyIsIgnored && key.is_empty() => {}
            Some(value) if bug == Bug::EmptyValueDeletesInTheEngine && value.is_empty() => drop(state.rows.remove(key)),
            Some(value) => {
                let len = if bug == Bug::LargeValueIsCut { value.len().min(1 << 16) } else { value.len() };
                state.rows.insert(key.clone(), value.slice(..len));
            }
            None if bug == Bug::DeletesAreDropped => {}
            None => drop(state.rows.remove(key)),
        }
    }
    for (partition, offset) in batch.offsets().iter() {
        let greatest = state.greatest.entry(partition.clone()).or_insert(offset);
        *greatest = offset.max(*greatest);
        let offset = match bug {
            Bug::OffsetIsTheNext => offset.next(),
            Bug::OffsetIsTheGreatest => *greatest,
            Bug::OffsetIsCutTo32Bits => Offset::new(offset.get() & 0xFFFF_FFFF).unwrap(),
            _ => offset,
        };
        state.offsets.insert(stored_as(partition, bug), offset);
    }
    if bug == Bug::PositionIsReplaced && !batch.position().is_empty() {
        state.position = Position::new();
    }
    state.position.merge(batch.position());
    if bug == Bug::ForgettingTakesTheBatchsOwn && batch.forgets_offsets() {
        forget(state);
    }
}

fn stored_as(partition: &TopicPartition, bug: Bug) -> TopicPartition {
    if bug == Bug::OffsetKeysRunTogether {
        TopicPartition::new(format!("{}{}", partition.topic(), partition.partition()).replace('-', ""), 0)
    } else {
        partition.clone()
    }
}

impl ToyBackend {
    fn open(directory: &Path, ToyBackends { bug, durability }: ToyBackends) -> Result<Self> {
        fs::create_dir_all(directory).map_err(|error| Error::io("cannot make the directory", error))?;
        let lock = Lock::take(directory, bug)?;
        let (log, mut entries) = Log::open(&directory.join("log"))?;
        if bug == Bug::CloseLosesTheLastCommit {
            entries.pop();
        }
        let mut state = State::default();
        for entry in &entries {
            replay(&mut state, entry, bug);
        }
        let durable = RwLock::new(state.offsets.clone());
        let state = Arc::new(state);
        let shared = Arc::new(Shared {
            bug,
            state: RwLock::new(Arc::clone(&state)),
            last_snapshot: RwLock::new(state),
            closed: AtomicBool::new(false),
            place: AtomicUsize::new(0),
            applied: AtomicUsize::new(0),
            cursors: AtomicUsize::new(0),
        });
        Ok(Self { bug, durability, shared, durable, log: Mutex::new(log), lock: Mutex::new(lock) })
    }

    /// The last commit, to read from.
    fn view(&self) -> View {
        View { shared: Arc::clone(&self.shared), state: self.shared.state(), alive: None }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap()
    }

    /// Makes `entry` as durable as a commit is.
    fn store(&self, entry: &Entry) -> Result<()> {
        let mut log = self.log();
        log.append(entry);
        match self.durability {
            _ if self.bug == Bug::CommitIsNotWritten => Ok(()),
            Durability::Eventual => Ok(()),
            Durability::Process => log.write(),
            Durability::Sync => log.sync(),
        }
    }

    fn step(&self, entry: &Entry) -> Result<()> {
        self.shared.check().map_err(|error| error.with_commit_outcome(CommitOutcome::NotApplied))?;
        match (self.bug, entry) {
            (Bug::OffsetIsWrittenFirst, Entry::Batch(batch)) => {
                let (offsets, records) = split(batch);
                self.store(&Entry::Batch(offsets))?;
                thread::sleep(MOMENT);
                self.store(&Entry::Batch(records))?;
            }
            (Bug::RecordsAreWrittenFirst, Entry::Batch(batch)) => {
                let (offsets, records) = split(batch);
                self.store(&Entry::Batch(records))?;
                thread::sleep(MOMENT);
                self.store(&Entry::Batch(offsets))?;
            }
            (Bug::WipeIsWrittenInTwo, Entry::Wipe) => {
                let mut rows = WriteBatch::new();
                self.shared.state().rows.keys().for_each(|key| rows.delete(key.clone()));
                self.store(&Entry::Batch(rows))?;
                thread::sleep(5 * MOMENT);
                self.store(&Entry::Wipe)?;
            }
            (Bug::WipeIsNotWritten, Entry::Wipe) => {}
            (Bug::ForgettingIsNotStored, Entry::Batch(batch))
                if batch.forgets_offsets() && batch.records().next().is_none() => {}
            _ => self.store(entry)?,
        }
        let mut state = State::clone(&self.shared.state());
        apply(&mut state, entry, self.bug);
        if self.bug == Bug::CommitShowsInTwoSteps {
            let mut half = State::clone(&self.shared.state());
            half.rows.clone_from(&state.rows);
            self.shared.set(half);
            thread::sleep(MOMENT);
        }
        self.shared.set(state);
        self.shared.applied.fetch_add(1, SeqCst);
        if matches!(entry, Entry::Wipe) {
            self.log().sync()?;
            self.synced();
        }
        if self.durability == Durability::Sync && self.bug != Bug::SyncedOffsetLags {
            self.synced();
        }
        Ok(())
    }

    fn synced(&self) {
        if self.bug != Bug::DurableOffsetIsStuck {
            self.durable.write().unwrap().clone_from(&self.shared.state().offsets);
        }
    }

    /// Ends without a flush, as the process's death would.
    pub(crate) fn abandon(&self) {
        self.shared.closed.store(true, SeqCst);
    }

    fn end(&self) -> Result<()> {
        let flushed = self.log().sync();
        if self.bug != Bug::CloseKeepsTheLock {
            self.lock.lock().unwrap().free(self.bug);
        }
        flushed
    }
}

/// The offsets and the position of a batch, and its records.
fn split(batch: &WriteBatch) -> (WriteBatch, WriteBatch) {
    let (mut offsets, mut records) = (WriteBatch::new(), WriteBatch::new());
    offsets.set_offsets(batch.offsets());
    batch.position().iter().for_each(|(partition, next)| offsets.set_position(partition.clone(), next));
    if batch.forgets_offsets() {
        offsets.forget_offsets();
    }
    for (key, value) in batch.records() {
        match value {
            Some(value) => records.put(key.clone(), value.clone()),
            None => records.delete(key.clone()),
        }
    }
    (offsets, records)
}

impl Drop for ToyBackend {
    fn drop(&mut self) {
        if self.bug == Bug::CloseKeepsTheLock {
            self.lock.lock().unwrap().free(self.bug);
        }
        let _ = self.close();
    }
}

impl ReadOnlyKeyValueStore for ToyBackend {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.view().get_with(key, read)
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        self.view().scan(range, order)
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        self.view().approximate_num_entries()
    }
}

impl Backend for ToyBackend {
    fn capabilities(&self) -> Capabilities {
        match self.bug {
            Bug::VolatileStoreKeepsItsRows => Capabilities::volatile(),
            Bug::DurableCommitIsDeclaredTrue => Capabilities::persisting(Durability::Eventual),
            _ => Capabilities::persisting(self.durability),
        }
    }

    fn apply(&self, batch: &WriteBatch) -> Result<()> {
        self.step(&Entry::Batch(batch.clone()))
    }

    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.shared.check()?;
        let stored = self.shared.state().offsets.get(&stored_as(partition, self.bug)).copied();
        Ok(if self.bug == Bug::NewStoreHasOffsetZero { stored.or(Some(Offset::ZERO)) } else { stored })
    }

    fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.shared.check()?;
        let durable = self.durable.read().unwrap().get(&stored_as(partition, self.bug)).copied();
        match self.bug {
            Bug::DurableOffsetIsALie => self.committed_offset(partition),
            Bug::DurableOffsetIsAhead => Ok(self.committed_offset(partition)?.map(Offset::next)),
            Bug::VolatileStoreKeepsItsRows => Ok(None),
            _ => Ok(durable),
        }
    }

    fn position(&self) -> Result<Position> {
        self.shared.check()?;
        Ok(self.shared.state().position.clone())
    }

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        self.shared.check()?;
        let state = self.shared.state();
        *self.shared.last_snapshot.write().unwrap() = Arc::clone(&state);
        Ok(Arc::new(View { shared: Arc::clone(&self.shared), state, alive: Some(Arc::new(())) }))
    }

    fn flush(&self) -> Result<()> {
        self.shared.check()?;
        if self.bug == Bug::FlushMovesTheOffset {
            let mut state = State::clone(&self.shared.state());
            state.offsets.values_mut().for_each(|offset| *offset = offset.next());
            self.shared.set(state);
        }
        self.log().sync()?;
        self.synced();
        Ok(())
    }

    fn wipe(&self) -> Result<()> {
        self.step(&Entry::Wipe)
    }

    fn close(&self) -> Result<()> {
        if self.bug == Bug::CloseIsRefusedWhileReading && self.shared.cursors.load(SeqCst) > 0 {
            return Err(Error::new(ErrorKind::Busy, "the toy has open cursors"));
        }
        if self.shared.closed.swap(true, SeqCst) {
            if self.bug == Bug::SecondCloseFreesTheSuccessor {
                self.lock.lock().unwrap().free(self.bug);
            }
            return Ok(());
        }
        self.end()
    }
}

/// The state of one commit, as a snapshot, and for the reads of the backend itself.
#[derive(Debug)]
struct View {
    shared: Arc<Shared>,
    state: Arc<State>,
    /// In a snapshot, what its cursors can tell its life from.
    alive: Option<Arc<()>>,
}

impl View {
    fn check(&self) -> Result<()> {
        if self.shared.bug == Bug::SnapshotOutlivesTheClose { Ok(()) } else { self.shared.check() }
    }

    fn state(&self) -> Arc<State> {
        match self.shared.bug {
            Bug::SnapshotIsLive => self.shared.state(),
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
            _ => {}
        }
        if order == Order::Descending && bug != Bug::DescendingScanAscends {
            rows.reverse();
            if bug == Bug::DescendingScanEndsEarly {
                rows.pop();
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
        let all = KeyRange::all();
        let range = if self.shared.bug == Bug::SnapshotIgnoresRanges { &all } else { range };
        let rows = self.rows(range, order);
        if self.shared.bug == Bug::EmptyRangeFails && rows.is_empty() && *range != all {
            return Err(Error::new(ErrorKind::Unavailable, "no rows"));
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
        let live = self.shared.bug == Bug::SnapshotHasLiveOffsets;
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
