use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard,
        atomic::{AtomicBool, Ordering},
    },
};

use kstate_api::{
    Bytes, ChangelogOffsets, CommitOutcome, Error, ErrorKind, Offset, PartitionPosition, Position, Result, StateStore,
    TopicPartition, VisitChange, WriteBatch,
};

use crate::commit_log::Entry;

mod key_value_store;

/// A persistent store that does not manage offsets, with a file beside it that does.
///
/// KIP-1035 wraps such a store in a checkpoint file that names the offset after the store was flushed. A crash between
/// the two leaves records that are ahead of the offset. This file names the offset *and holds what the last commit
/// wrote*, so that the pair keeps the whole contract, crashes included:
///
/// 1. the store is flushed: the commit before this one is in it for good;
/// 2. the file is replaced, durably, by one with this commit's records, offsets and position: from here on it has
///    happened;
/// 3. the store commits.
///
/// After a crash the store holds the file's commit or the one before it, and opening it applies the file's once more,
/// which changes nothing if it is there. So records and offset agree, and every commit survives a power loss, whatever
/// the store's own durability.
///
/// The price: what a commit writes is written twice, and each commit waits for two or three syncs. A
/// [`Backend`](kstate_api::Backend), whose offsets are in the same batch as its records, pays none of it. A warning says
/// so when the pair is opened.
///
/// The file is versioned and checksummed. A damaged one is `Corrupted`: delete it, wipe the store, and restore it. Without
/// a file there is no offset. Nobody else may write to the store: not past this, nor between two runs.
///
/// ```
/// use kstate_api::{ChangelogOffsets, KeyValueStore, Offset, StateStore, TopicPartition};
/// use kstate_checkpoint::FileCheckpoint;
/// # mod legacy {
/// #     include!("../tests/support/without_offsets.rs");
/// # }
/// # use legacy::WithoutOffsets as LegacyStore;
/// # use kstate_api::StagedStore;
/// # use kstate_store_redb::{RedbBackend, RedbOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let temporary = tempfile::tempdir()?;
/// # let task = temporary.path();
/// let changelog = TopicPartition::new("counts-changelog", 0);
/// # let open = || -> kstate_api::Result<_> {
/// #     let backend = RedbBackend::open(&task.join("counts"), &RedbOptions::new())?;
/// #     Ok(LegacyStore(StagedStore::open("counts", backend, &[changelog.clone()])?))
/// # };
/// let store: LegacyStore<_> = open()?;
/// assert!(!store.manages_offsets());
///
/// let file = task.join(".checkpoint_counts");
/// let store = FileCheckpoint::open(store, &file)?;
/// store.put(b"word", b"1")?;
/// store.commit(&ChangelogOffsets::new().with(changelog.clone(), Offset::ZERO))?;
/// drop(store);
///
/// let store = FileCheckpoint::open(open()?, &file)?;
/// assert_eq!(store.committed_offset(&changelog)?, Some(Offset::ZERO));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FileCheckpoint<S> {
    store: S,
    path: PathBuf,
    /// Writes and commits take turns: what is written to the file is what the store commits.
    staged_position: Mutex<Position>,
    /// Held while the store commits, so that nobody sees its rows with the offsets before.
    committed: RwLock<Marks>,
    poisoned: AtomicBool,
}

/// The offsets of `partitions` in the checkpoint file `path`, without opening the store; none if there is no file.
///
/// # Errors
/// `Corrupted` or `NewerFormat` if the file is; or what the operating system says.
///
/// ```
/// assert!(kstate_checkpoint::read_checkpoint_file("no-such-file".as_ref(), &[]).unwrap().is_empty());
/// ```
pub fn read_checkpoint_file(path: &Path, partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
    let offsets = Entry::read(path)?.unwrap_or_default().offsets;
    Ok(partitions.iter().filter_map(|asked| Some((asked.clone(), offsets.get(asked)?))).collect())
}

/// What belongs to the records of a commit.
#[derive(Clone, Debug, Default)]
struct Marks {
    offsets: ChangelogOffsets,
    position: Position,
}

impl Marks {
    fn take(&mut self, offsets: &ChangelogOffsets, position: &Position) {
        self.offsets.extend(offsets.iter().map(|(partition, offset)| (partition.clone(), offset)));
        self.position.merge(position);
    }

    fn entry(&self, records: Vec<(Bytes, Option<Bytes>)>) -> Entry {
        Entry { wipes: false, offsets: self.offsets.clone(), position: self.position.clone(), records }
    }
}

fn not_applied<T>(result: Result<T>) -> Result<T> {
    result.map_err(|error| error.with_commit_outcome(CommitOutcome::NotApplied))
}

impl<S: StateStore> FileCheckpoint<S> {
    /// Puts the file `path` beside `store`, and brings the store to the commit that the file names.
    ///
    /// The file's directory has to be there. The file must not lie where the store keeps its own.
    ///
    /// # Errors
    /// `Config` for a store that manages offsets, or is not persistent: neither has a use for the file. `Corrupted` or
    /// `NewerFormat` if the file is; or what the store or the operating system says.
    pub fn open(store: S, path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let of_store = |error: Error| error.with_store(store.name());
        if store.manages_offsets() || !store.persistent() {
            let what = if store.manages_offsets() { "manages its offsets itself" } else { "is not persistent" };
            return Err(of_store(Error::new(ErrorKind::Config, format!("a store that {what} has no checkpoint file"))));
        }
        tracing::warn!(
            store = store.name(),
            path = %path.display(),
            "the store does not manage its changelog offsets: they are kept in a file beside it, and each commit is \
             written twice; a store that keeps them itself is faster"
        );
        let entry = Entry::read(&path).map_err(of_store)?.unwrap_or_default();
        if entry.wipes {
            store.wipe()?;
        } else if !entry.records.is_empty() {
            store.restore(&entry.batch())?;
        }
        let Entry { offsets, position, .. } = entry;
        Ok(Self {
            store,
            path,
            staged_position: Mutex::default(),
            committed: RwLock::new(Marks { offsets, position }),
            poisoned: AtomicBool::new(false),
        })
    }

    /// The store below. What is written to it past this is lost to the file.
    pub const fn store(&self) -> &S {
        &self.store
    }

    fn turn(&self) -> MutexGuard<'_, Position> {
        self.staged_position.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn committed(&self) -> RwLockReadGuard<'_, Marks> {
        self.committed.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self) -> Result<()> {
        if self.poisoned.load(Ordering::Acquire) {
            let message = "an earlier commit may or may not have happened; close the store and open it again";
            return Err(Error::new(ErrorKind::Poisoned, message).with_store(self.store.name()));
        }
        // A store that is closed says so itself.
        if self.store.is_open() { Ok(()) } else { self.store.position().map(drop) }
    }

    fn check_owned(&self, offsets: &ChangelogOffsets) -> Result<()> {
        match offsets.iter().find(|(partition, _)| !self.store.changelog_partitions().contains(partition)) {
            Some((foreign, _)) => self.refuse(format!("changelog partition {foreign} is not this store's")),
            None => Ok(()),
        }
    }

    fn refuse<T>(&self, message: String) -> Result<T> {
        Err(Error::new(ErrorKind::InvalidArgument, message).with_store(self.store.name()))
    }

    fn staged(&self) -> Result<Vec<(Bytes, Option<Bytes>)>> {
        let mut records = Vec::new();
        self.store.staged_changes(&mut |key, value| {
            records.push((Bytes::copy_from_slice(key), value.map(Bytes::copy_from_slice)));
            Ok(())
        })?;
        Ok(records)
    }

    /// Takes back what the file says, if the store has not done it. The commit before, `committed`, is in the store.
    fn undo(&self, committed: &Marks, error: Error) -> Error {
        let refused = error.commit_outcome() == Some(CommitOutcome::NotApplied);
        let undone = refused && committed.entry(Vec::new()).write(&self.path).is_ok();
        error.with_commit_outcome(if undone { CommitOutcome::NotApplied } else { CommitOutcome::Unknown })
    }

    /// Writes `entry` to the file, and then lets the store do what it says.
    fn step(&self, entry: &Entry, step: impl FnOnce(&S) -> Result<()>) -> Result<()> {
        // What the file holds now must be in the store for good before it is overwritten.
        not_applied(self.store.flush())?;
        let done = entry.write(&self.path).and_then(|()| {
            // It has happened, or will when the store is opened next.
            let mut committed = self.committed.write().unwrap_or_else(PoisonError::into_inner);
            step(&self.store).map_err(|error| self.undo(&committed, error))?;
            *committed = Marks { offsets: entry.offsets.clone(), position: entry.position.clone() };
            Ok(())
        });
        done.map_err(|error| {
            if error.commit_outcome() != Some(CommitOutcome::NotApplied) {
                self.poisoned.store(true, Ordering::Release);
            }
            error.with_store(self.store.name())
        })
    }
}

#[deny(clippy::missing_trait_methods)]
impl<S: StateStore> StateStore for FileCheckpoint<S> {
    fn name(&self) -> &str {
        self.store.name()
    }

    fn persistent(&self) -> bool {
        true
    }

    fn manages_offsets(&self) -> bool {
        true
    }

    fn changelog_partitions(&self) -> &[TopicPartition] {
        self.store.changelog_partitions()
    }

    fn commit(&self, changelog_offsets: &ChangelogOffsets) -> Result<()> {
        let mut staged_position = self.turn();
        not_applied(self.check().and_then(|()| self.check_owned(changelog_offsets)))?;
        let records = not_applied(self.staged())?;
        if records.is_empty() && changelog_offsets.is_empty() && staged_position.is_empty() {
            return Ok(());
        }
        let mut marks = self.committed().clone();
        marks.take(changelog_offsets, &staged_position);
        self.step(&marks.entry(records), |store| store.commit(&ChangelogOffsets::new()))?;
        *staged_position = Position::new();
        Ok(())
    }

    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.check()?;
        let owned = self.store.changelog_partitions().contains(partition);
        Ok(self.committed().offsets.get(partition).filter(|_| owned))
    }

    /// Every commit survives a power loss.
    fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.committed_offset(partition)
    }

    fn forget_offsets(&self) -> Result<()> {
        let _turn = self.turn();
        not_applied(self.check())?;
        self.step(&Entry::default(), S::forget_offsets)
    }

    fn stage_position(&self, partition: &TopicPartition, position: PartitionPosition) -> Result<()> {
        let mut staged_position = self.turn();
        self.check()?;
        partition.validate().map_err(|error| error.with_store(self.store.name()))?;
        staged_position.set(partition.clone(), position);
        Ok(())
    }

    fn position(&self) -> Result<Position> {
        self.check()?;
        Ok(self.committed().position.clone())
    }

    fn staged_changes(&self, visit: &mut VisitChange<'_>) -> Result<()> {
        self.check()?;
        self.store.staged_changes(visit)
    }

    fn committed_value(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.check()?;
        self.store.committed_value(key)
    }

    fn uncommitted_bytes(&self) -> u64 {
        self.store.uncommitted_bytes()
    }

    fn rollback(&self) -> Result<()> {
        let mut staged_position = self.turn();
        self.check()?;
        self.store.rollback()?;
        *staged_position = Position::new();
        Ok(())
    }

    fn restore(&self, batch: &WriteBatch) -> Result<()> {
        let staged_position = self.turn();
        not_applied(self.check().and_then(|()| self.check_owned(batch.offsets())))?;
        let possible = batch.position().iter().try_for_each(|(partition, _)| partition.validate());
        not_applied(possible.map_err(|error| error.with_store(self.store.name())))?;
        if !staged_position.is_empty() || !not_applied(self.staged())?.is_empty() {
            let message = "cannot restore over staged writes; commit them or roll them back";
            return not_applied(self.refuse(message.into()));
        }
        let mut marks = if batch.forgets_offsets() { Marks::default() } else { self.committed().clone() };
        marks.take(batch.offsets(), batch.position());
        let records = batch
            .records()
            .map(|(key, value)| (Bytes::copy_from_slice(key), value.map(|value| Bytes::copy_from_slice(value))));
        let entry = marks.entry(records.collect());
        self.step(&entry, |store| store.restore(&entry.batch()))
    }

    fn flush(&self) -> Result<()> {
        let _turn = self.turn();
        self.check()?;
        self.store.flush()
    }

    fn wipe(&self) -> Result<()> {
        let mut staged_position = self.turn();
        not_applied(self.check())?;
        self.step(&Entry { wipes: true, ..Entry::default() }, S::wipe)?;
        *staged_position = Position::new();
        Ok(())
    }

    fn is_open(&self) -> bool {
        self.store.is_open() && !self.poisoned.load(Ordering::Acquire)
    }

    fn close(&self) -> Result<()> {
        let mut staged_position = self.turn();
        *staged_position = Position::new();
        let closed = self.store.close();
        // From here on the store below answers `Closed`.
        self.poisoned.store(false, Ordering::Release);
        closed
    }
}
