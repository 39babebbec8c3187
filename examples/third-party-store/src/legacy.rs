use std::{collections::BTreeMap, path::Path, sync::Arc};

use kstate_api::{
    Bytes, ChangelogOffsets, CommitOutcome, Cursor, Error, ErrorKind, KeyRange, KeyValueStore, MAX_KEY_LEN,
    MAX_VALUE_LEN, Offset, Order, PartitionPosition, Position, ReadOnlyKeyValueStore, Result, Snapshot, StateStore,
    TopicPartition, VisitChange, WriteBatch, validate_name,
};
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

mod rows_file;
mod state;
mod view;

use state::State;
use view::View;

type Rows = BTreeMap<Bytes, Bytes>;

/// A store of somebody who never thought of offsets: a sorted map in memory, which each commit writes to a file.
///
/// It keeps the contract but for the offsets, which it throws away; `kstate_checkpoint::FileCheckpoint` keeps them for
/// it. Each commit is synced, and costs as much as there are rows.
///
/// ```
/// use kstate_api::{ChangelogOffsets, KeyValueStore, ReadOnlyKeyValueStoreExt, StateStore};
/// use third_party_store::LegacyStore;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let temporary = tempfile::tempdir()?;
/// # let directory = temporary.path();
/// let store = LegacyStore::open("counts", directory, &[])?;
/// store.put(b"word", b"1")?;
/// store.commit(&ChangelogOffsets::new())?;
/// store.close()?;
/// assert_eq!(LegacyStore::open("counts", directory, &[])?.get(b"word")?.unwrap(), "1");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LegacyStore {
    name: String,
    changelog_partitions: Box<[TopicPartition]>,
    /// `None` once it is closed.
    state: Mutex<Option<State>>,
}

impl LegacyStore {
    /// Opens the store `name` in `directory`, as the owner of `changelog_partitions`.
    ///
    /// # Errors
    /// `Locked` if the directory is open already, `Corrupted` if its file is damaged, `InvalidArgument` for a name or
    /// a partition that Kafka or a file system would refuse; or what the operating system says.
    pub fn open(name: &str, directory: &Path, changelog_partitions: &[TopicPartition]) -> Result<Self> {
        validate_name("store", name)?;
        let open = || {
            changelog_partitions.iter().try_for_each(TopicPartition::validate)?;
            State::open(directory)
        };
        let state = Mutex::new(Some(open().map_err(|error: Error| error.with_store(name))?));
        Ok(Self { name: name.into(), changelog_partitions: changelog_partitions.into(), state })
    }

    fn error(&self, kind: ErrorKind, message: impl Into<String>) -> Error {
        Error::new(kind, message).with_store(&self.name)
    }

    fn state(&self) -> Result<MappedMutexGuard<'_, State>> {
        let state = MutexGuard::try_map(self.state.lock(), Option::as_mut);
        let state = state.map_err(|_| self.error(ErrorKind::Closed, "the store is closed"))?;
        if state.poisoned {
            return Err(self.error(ErrorKind::Poisoned, "a commit may or may not have happened; open the store again"));
        }
        Ok(state)
    }

    /// What is not this store's is refused before a step; what is, it throws away.
    fn check(&self, offsets: &ChangelogOffsets, position: &Position) -> Result<()> {
        if let Some((foreign, _)) = offsets.iter().find(|(named, _)| !self.changelog_partitions.contains(named)) {
            return Err(self.error(ErrorKind::InvalidArgument, format!("{foreign} is not this store's")));
        }
        let possible = position.iter().try_for_each(|(partition, _)| partition.validate());
        possible.map_err(|error| error.with_store(&self.name))
    }

    fn check_len(&self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        if key.len() > MAX_KEY_LEN || value.is_some_and(|value| value.len() > MAX_VALUE_LEN) {
            return Err(self.error(ErrorKind::InvalidArgument, "the key or the value is too long"));
        }
        Ok(())
    }

    fn step(&self, step: impl FnOnce(&mut State) -> Result<()>) -> Result<()> {
        step(&mut *not_applied(self.state())?).map_err(|error| error.with_store(&self.name))
    }

    fn view(&self) -> Result<View> {
        self.state().map(|state| state.view(&state.rows))
    }
}

fn not_applied<T>(result: Result<T>) -> Result<T> {
    result.map_err(|error| error.with_commit_outcome(CommitOutcome::NotApplied))
}

impl StateStore for LegacyStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn persistent(&self) -> bool {
        true
    }

    fn manages_offsets(&self) -> bool {
        false
    }

    fn changelog_partitions(&self) -> &[TopicPartition] {
        &self.changelog_partitions
    }

    fn commit(&self, changelog_offsets: &ChangelogOffsets) -> Result<()> {
        self.step(|state| {
            not_applied(self.check(changelog_offsets, &Position::new()))?;
            if state.staged.is_empty() { Ok(()) } else { state.replace(Arc::clone(&state.rows)) }
        })
    }

    fn committed_offset(&self, _: &TopicPartition) -> Result<Option<Offset>> {
        self.state().map(|_| None)
    }

    fn durable_offset(&self, _: &TopicPartition) -> Result<Option<Offset>> {
        self.state().map(|_| None)
    }

    fn forget_offsets(&self) -> Result<()> {
        self.step(|_| Ok(()))
    }

    /// It is staged as records are, and gone with the commit.
    fn stage_position(&self, partition: &TopicPartition, position: PartitionPosition) -> Result<()> {
        let mut state = self.state()?;
        partition.validate().map_err(|error| error.with_store(&self.name))?;
        state.staged.set_position(partition.clone(), position);
        Ok(())
    }

    fn position(&self) -> Result<Position> {
        self.state().map(|_| Position::new())
    }

    fn staged_changes(&self, visit: &mut VisitChange<'_>) -> Result<()> {
        self.state()?.staged.records().try_for_each(|(key, value)| visit(key, value.map(Bytes::as_ref)))
    }

    fn committed_value(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.state()?.committed.get(key).cloned())
    }

    fn uncommitted_bytes(&self) -> u64 {
        self.state.lock().as_ref().map_or(0, |state| state.staged.byte_size() as u64)
    }

    fn rollback(&self) -> Result<()> {
        self.state().map(|mut state| state.rollback())
    }

    fn restore(&self, batch: &WriteBatch) -> Result<()> {
        self.step(|state| {
            not_applied(self.check(batch.offsets(), batch.position()))?;
            if !state.staged.is_empty() {
                return not_applied(Err(self.error(ErrorKind::InvalidArgument, "cannot restore over staged writes")));
            }
            let mut records = batch.records();
            not_applied(records.try_for_each(|(key, value)| self.check_len(key, value.map(Bytes::as_ref))))?;
            let mut rows = Rows::clone(&state.committed);
            for (key, value) in batch.records() {
                match value {
                    Some(value) => rows.insert(Bytes::copy_from_slice(key), value.clone()),
                    None => rows.remove(key),
                };
            }
            state.replace(Arc::new(rows))
        })
    }

    /// Each commit is synced.
    fn flush(&self) -> Result<()> {
        self.state().map(drop)
    }

    fn wipe(&self) -> Result<()> {
        self.step(|state| state.replace(Arc::default()))
    }

    fn is_open(&self) -> bool {
        self.state().is_ok()
    }

    fn close(&self) -> Result<()> {
        *self.state.lock() = None;
        Ok(())
    }
}

impl ReadOnlyKeyValueStore for LegacyStore {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.view()?.get_with(key, read)
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        self.view()?.scan(range, order)
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        self.view()?.approximate_num_entries()
    }
}

impl KeyValueStore for LegacyStore {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_all(&[(key, Some(value))])
    }

    fn put_all(&self, entries: &[(&[u8], Option<&[u8]>)]) -> Result<()> {
        let mut state = self.state()?;
        entries.iter().try_for_each(|(key, value)| self.check_len(key, *value))?;
        state.stage(entries);
        Ok(())
    }

    fn put_if_absent(&self, key: &[u8], value: &[u8]) -> Result<Option<Bytes>> {
        let mut state = self.state()?;
        self.check_len(key, Some(value))?;
        let present = state.rows.get(key).cloned();
        if present.is_none() {
            state.stage(&[(key, Some(value))]);
        }
        Ok(present)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.put_all(&[(key, None)])
    }

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        let state = self.state()?;
        Ok(Arc::new(state.view(&state.committed)))
    }
}
