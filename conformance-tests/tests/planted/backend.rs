//! A toy backend: sorted maps in memory, and a log of whole batches. It keeps the contract, but for its bug.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, RwLock,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use bytes::Bytes;
use kstate_api::{
    Backend, BackendSupplier, Capabilities, ChangelogOffsets, CommitOutcome, Cursor, Durability, Error, ErrorKind,
    KeyRange, Offset, Order, Position, ReadOnlyKeyValueStore, Result, Snapshot, TopicPartition, WriteBatch,
};

use super::{
    bug::Bug,
    key_limit,
    lock::Lock,
    log::{Entry, Log},
    state::{State, apply, replay, stored_as},
    torn::parts,
    view::{Shared, View},
};

/// Long enough for a killed process, or another thread, to come between two steps.
const MOMENT: Duration = Duration::from_millis(2);

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
    /// Whether the engine takes no long keys.
    pub(crate) short_keys: bool,
}

impl ToyBackends {
    pub(crate) const fn new(bug: Bug, durability: Durability) -> Self {
        Self { bug, durability, short_keys: bug.has_short_keys() }
    }
}

impl BackendSupplier for ToyBackends {
    type Backend = ToyBackend;

    fn persistent(&self) -> bool {
        !matches!(self.bug, Bug::SupplierSaysVolatile | Bug::VolatileStoreKeepsItsRows)
    }

    fn open(&self, directory: &Path) -> Result<ToyBackend> {
        ToyBackend::open(directory, *self)
    }

    fn read_offsets(&self, directory: &Path, partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
        if self.bug == Bug::ReadOffsetsMakesAStore {
            fs::create_dir_all(directory).map_err(|error| Error::io("cannot make the directory", error))?;
        }
        if self.bug == Bug::ReadOffsetsFreesTheLock {
            Lock::free_for_others(&directory.join("lock"));
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

impl ToyBackend {
    fn open(directory: &Path, ToyBackends { bug, durability, short_keys }: ToyBackends) -> Result<Self> {
        let made = match bug {
            Bug::ParentsAreNotMade if directory.exists() => Ok(()),
            Bug::ParentsAreNotMade => fs::create_dir(directory),
            _ => fs::create_dir_all(directory),
        };
        made.map_err(|error| Error::io("cannot make the directory", error))?;
        let lock = Lock::take(directory, bug)?;
        let (log, mut entries) = Log::open(&directory.join("log"))?;
        if bug == Bug::CloseLosesTheLastCommit {
            entries.pop();
        }
        if bug == Bug::CommitNumberIsAByte && entries.len() > 256 {
            entries.drain(..entries.len() - 256);
        }
        let mut state = State::default();
        for entry in &entries {
            replay(&mut state, entry, bug);
        }
        let durable = RwLock::new(state.offsets.clone());
        let state = Arc::new(state);
        let shared = Arc::new(Shared {
            bug,
            short_keys,
            state: RwLock::new(Arc::clone(&state)),
            last_snapshot: RwLock::new(state),
            closed: AtomicBool::new(false),
            place: AtomicUsize::new(0),
            applied: AtomicUsize::new(0),
            cursors: AtomicUsize::new(0),
            restoring: AtomicBool::new(false),
        });
        Ok(Self { bug, durability, shared, durable, log: Mutex::new(log), lock: Mutex::new(lock) })
    }

    /// The last commit, to read from.
    fn view(&self) -> View {
        View { shared: Arc::clone(&self.shared), state: self.shared.state(), alive: None, applied: 0 }
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
        let restoring = self.shared.restoring.load(SeqCst);
        match parts(self.bug, &self.shared.state(), entry, restoring) {
            Some([first, second]) => {
                self.whole_step(&first)?;
                let large = [Bug::CommitOfAMebibyteIsTakenInTwo, Bug::LargeRestoreIsTakenInTwo];
                // Else the moment would be short beside the rest of the step.
                thread::sleep(if large.contains(&self.bug) { 50 * MOMENT } else { MOMENT });
                self.whole_step(&second)
            }
            None => self.whole_step(entry),
        }
    }

    fn whole_step(&self, entry: &Entry) -> Result<()> {
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
            (Bug::LargeCommitIsWrittenInParts, Entry::Batch(batch)) if batch.len() > 1000 => {
                let mut first = WriteBatch::new();
                for (key, value) in batch.records().take(1000) {
                    first.put(Bytes::copy_from_slice(key), value.cloned().unwrap_or_default());
                }
                self.store(&Entry::Batch(first))?;
                thread::sleep(10 * MOMENT);
                self.store(entry)?;
            }
            (Bug::RestoreIsNotWritten | Bug::ForgettingIsWrittenLate, Entry::Batch(batch))
                if (self.bug == Bug::ForgettingIsWrittenLate && batch.forgets_offsets())
                    || (self.bug == Bug::RestoreIsNotWritten && self.shared.restoring.load(SeqCst)) =>
            {
                self.log().append(entry);
            }
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
        if self.bug == Bug::PositionIsLostAtCommit400 && self.shared.applied.load(SeqCst) == 400 {
            state.position = match entry {
                Entry::Batch(batch) => batch.position().clone(),
                Entry::Wipe => Position::new(),
            };
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

    /// Whether what comes is a restored batch.
    pub(crate) fn restoring(&self, restoring: bool) {
        self.shared.restoring.store(restoring, SeqCst);
    }

    /// Ends without a flush, as the process's death would.
    pub(crate) fn abandon(&self) {
        self.shared.closed.store(true, SeqCst);
    }

    fn end(&self) -> Result<()> {
        if self.bug == Bug::CloseRewritesTheFile {
            self.log().rewrite()?;
        }
        let flushed = self.log().sync();
        if self.bug != Bug::CloseKeepsTheLock {
            self.lock.lock().unwrap().free(self.bug);
        }
        flushed
    }
}

/// The offsets and the position of a batch, and its records.
pub(crate) fn split(batch: &WriteBatch) -> (WriteBatch, WriteBatch) {
    let (mut offsets, mut records) = (WriteBatch::new(), WriteBatch::new());
    offsets.set_offsets(batch.offsets());
    batch.position().iter().for_each(|(partition, position)| offsets.set_position(partition.clone(), position.clone()));
    if batch.forgets_offsets() {
        offsets.forget_offsets();
    }
    for (key, value) in batch.records() {
        match value {
            Some(value) => records.put(key, value.clone()),
            None => records.delete(key),
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
        if self.bug == Bug::SnapshotOutlivesAPanic && thread::panicking() {
            self.shared.closed.store(false, SeqCst);
        }
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
        let capabilities = match self.bug {
            Bug::VolatileStoreKeepsItsRows => Capabilities::volatile(),
            Bug::DurableCommitIsDeclaredTrue => Capabilities::persisting(Durability::Eventual),
            _ => Capabilities::persisting(self.durability),
        };
        if self.shared.short_keys { key_limit::told(capabilities, self.bug) } else { capabilities }
    }

    fn apply(&self, batch: &WriteBatch) -> Result<()> {
        let taken = if self.shared.short_keys { key_limit::taken(batch, self.bug)? } else { batch.clone() };
        self.step(&Entry::Batch(taken))
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
            Bug::DurableOffsetIsAnothers => Ok(self.durable.read().unwrap().values().next().copied()),
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
        let applied = self.shared.applied.load(SeqCst);
        Ok(Arc::new(View { shared: Arc::clone(&self.shared), state, alive: Some(Arc::new(())), applied }))
    }

    fn flush(&self) -> Result<()> {
        self.shared.check()?;
        if self.bug == Bug::FlushMovesTheOffset {
            let mut state = State::clone(&self.shared.state());
            state.offsets.values_mut().for_each(|offset| *offset = offset.next());
            self.shared.set(state);
        }
        if self.bug == Bug::FlushRewritesTheFile {
            self.log().rewrite()?;
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
