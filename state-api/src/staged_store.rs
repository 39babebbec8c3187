use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    thread,
};

use bytes::Bytes;

use crate::{
    Backend, ChangelogOffsets, CommitOutcome, Cursor, EmptyCursor, Error, ErrorKind, KeyRange, KeyValueStore, Offset,
    Order, Position, ReadOnlyKeyValueStore, ReadOnlyKeyValueStoreExt, Result, Snapshot, StateStore, TopicPartition,
    VisitChange, WriteBatch, lifecycle::Lifecycle, merge_cursor::MergeCursor, name,
};

/// The longest key of a [`StagedStore`], in bytes.
pub const MAX_KEY_LEN: usize = 1 << 20;
/// The longest value of a [`StagedStore`], in bytes.
pub const MAX_VALUE_LEN: usize = 1 << 30;

/// A key-value store over any [`Backend`].
///
/// What is written since the last commit is one sorted overlay: the owner reads through it, a
/// [`commit`](StateStore::commit) hands it to the backend as one batch, and the changelog gets each key once however
/// often it was written. [`rollback`](StateStore::rollback) drops it.
///
/// ```
/// use kstate_api::{
///     ChangelogOffsets, KeyValueStore, Offset, ReadOnlyKeyValueStoreExt, StagedStore, StateStore, TopicPartition,
/// };
/// use kstate_store_memory::MemoryBackend;
///
/// # fn main() -> kstate_api::Result<()> {
/// let changelog = TopicPartition::new("counts-changelog", 0);
/// let store = StagedStore::open("counts", MemoryBackend::new(), &[changelog.clone()])?;
///
/// store.put(b"word", b"1")?;
/// assert_eq!(store.get(b"word")?.unwrap(), "1", "the owner reads its own writes");
/// assert_eq!(store.snapshot()?.get(b"word")?, None, "nobody else does");
///
/// store.commit(&ChangelogOffsets::new().with(changelog.clone(), Offset::new(7).unwrap()))?;
/// assert_eq!(store.snapshot()?.get(b"word")?.unwrap(), "1");
/// assert_eq!(store.committed_offset(&changelog)?.map(Offset::get), Some(7));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct StagedStore<B: Backend> {
    name: Arc<str>,
    changelog_partitions: Box<[TopicPartition]>,
    backend: B,
    staged: RwLock<WriteBatch>,
    /// Writes and commits take turns: a write between the engine's commit and the emptying of the overlay would be
    /// lost. Readers need only `staged`, and go on while a commit runs.
    writer: Mutex<()>,
    lifecycle: Arc<Lifecycle>,
}

impl<B: Backend> StagedStore<B> {
    /// Opens the store `name` over `backend`, as the owner of `changelog_partitions` (clause O5).
    ///
    /// # Errors
    /// `InvalidArgument` for a store name or a partition that Kafka or a file system would refuse.
    ///
    /// ```
    /// # use kstate_api::{StagedStore, TopicPartition};
    /// # use kstate_store_memory::MemoryBackend;
    /// let changelog = [TopicPartition::new("counts-changelog", 0)];
    /// assert!(StagedStore::open("counts", MemoryBackend::new(), &changelog).is_ok());
    /// assert!(StagedStore::open("my store", MemoryBackend::new(), &changelog).is_err());
    /// ```
    pub fn open(name: &str, backend: B, changelog_partitions: &[TopicPartition]) -> Result<Self> {
        name::validate("store", name)?;
        changelog_partitions.iter().try_for_each(TopicPartition::validate).map_err(|error| error.with_store(name))?;
        tracing::debug!(store = name, capabilities = ?backend.capabilities(), "store opened");
        Ok(Self {
            name: name.into(),
            changelog_partitions: changelog_partitions.into(),
            backend,
            staged: RwLock::default(),
            writer: Mutex::default(),
            lifecycle: Arc::default(),
        })
    }

    /// The backend below, for what only it can tell.
    ///
    /// ```
    /// # use kstate_api::{Backend, StagedStore};
    /// # use kstate_store_memory::MemoryBackend;
    /// # fn main() -> kstate_api::Result<()> {
    /// let store = StagedStore::open("counts", MemoryBackend::new(), &[])?;
    /// assert!(!store.backend().capabilities().persistent());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn backend(&self) -> &B {
        &self.backend
    }

    // No user code runs under these locks and every change to the batch is one call, so a thread that panicked with
    // one of them left nothing half done: poisoning carries no news.
    fn writer(&self) -> MutexGuard<'_, ()> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn staged(&self) -> RwLockReadGuard<'_, WriteBatch> {
        self.staged.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn staged_mut(&self) -> RwLockWriteGuard<'_, WriteBatch> {
        self.staged.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_open(&self) -> Result<()> {
        self.lifecycle.check().map_err(|error| error.with_store(&self.name))
    }

    fn named<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| error.with_store(&self.name))
    }

    fn refuse<T>(&self, message: String) -> Result<T> {
        Err(Error::new(ErrorKind::InvalidArgument, message).with_store(&self.name))
    }

    fn owns(&self, partition: &TopicPartition) -> bool {
        self.changelog_partitions.contains(partition)
    }

    fn check_owned(&self, offsets: &ChangelogOffsets) -> Result<()> {
        match offsets.iter().find(|(partition, _)| !self.owns(partition)) {
            Some((foreign, _)) => self.refuse(format!("changelog partition {foreign} is not this store's")),
            None => Ok(()),
        }
    }

    fn check_len(&self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        if key.len() > MAX_KEY_LEN {
            return self.refuse(format!("a key of {} bytes; {MAX_KEY_LEN} are allowed", key.len()));
        }
        match value.map(<[u8]>::len) {
            Some(len) if len > MAX_VALUE_LEN => {
                self.refuse(format!("a value of {len} bytes; {MAX_VALUE_LEN} are allowed"))
            }
            _ => Ok(()),
        }
    }

    /// Runs one atomic step of the backend and poisons the store if nobody can tell whether it happened.
    fn step(&self, step: impl FnOnce(&B) -> Result<()>) -> Result<()> {
        step(&self.backend).map_err(|error| {
            let outcome = error.commit_outcome().unwrap_or(CommitOutcome::Unknown);
            if outcome == CommitOutcome::Unknown {
                self.lifecycle.poison();
            }
            error.with_commit_outcome(outcome).with_store(&self.name)
        })
    }

    fn stage(&self, write: impl FnOnce(&mut WriteBatch)) -> Result<()> {
        let _turn = self.writer();
        self.check_open()?;
        write(&mut self.staged_mut());
        Ok(())
    }
}

impl<B: Backend> StateStore for StagedStore<B> {
    fn name(&self) -> &str {
        &self.name
    }

    fn persistent(&self) -> bool {
        self.backend.capabilities().persistent()
    }

    fn manages_offsets(&self) -> bool {
        true
    }

    fn changelog_partitions(&self) -> &[TopicPartition] {
        &self.changelog_partitions
    }

    fn commit(&self, changelog_offsets: &ChangelogOffsets) -> Result<()> {
        let _turn = self.writer();
        self.check_open()
            .and_then(|()| self.check_owned(changelog_offsets))
            .map_err(|error| error.with_commit_outcome(CommitOutcome::NotApplied))?;
        self.staged_mut().set_offsets(changelog_offsets);
        let committed = {
            let staged = self.staged();
            if staged.is_empty() { Ok(()) } else { self.step(|backend| backend.apply(&staged)) }
        };
        match committed {
            Ok(()) => {
                // Freed outside the lock: readers need not wait for it.
                let applied = self.staged_mut().take();
                tracing::trace!(store = &*self.name, records = applied.len(), "committed");
                Ok(())
            }
            Err(error) => {
                self.staged_mut().clear_offsets();
                tracing::warn!(store = &*self.name, %error, "commit failed");
                Err(error)
            }
        }
    }

    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.check_open()?;
        // An offset of another task's partition may lie in the store's files; it is nobody's business here.
        if self.owns(partition) { self.named(self.backend.committed_offset(partition)) } else { Ok(None) }
    }

    fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.check_open()?;
        if self.owns(partition) { self.named(self.backend.durable_offset(partition)) } else { Ok(None) }
    }

    fn forget_offsets(&self) -> Result<()> {
        let _turn = self.writer();
        self.check_open().map_err(|error| error.with_commit_outcome(CommitOutcome::NotApplied))?;
        let mut batch = WriteBatch::new();
        batch.forget_offsets();
        self.step(|backend| backend.apply(&batch))
    }

    fn stage_position(&self, partition: &TopicPartition, next: Offset) -> Result<()> {
        self.named(partition.validate())?;
        self.stage(|staged| staged.set_position(partition.clone(), next))
    }

    fn position(&self) -> Result<Position> {
        self.check_open()?;
        self.named(self.backend.position())
    }

    fn staged_changes(&self, visit: &mut VisitChange<'_>) -> Result<()> {
        self.check_open()?;
        self.staged().records().try_for_each(|(key, value)| visit(key, value.map(Bytes::as_ref)))
    }

    fn uncommitted_bytes(&self) -> u64 {
        self.staged().byte_size() as u64
    }

    fn rollback(&self) -> Result<()> {
        self.stage(|staged| *staged = WriteBatch::new())
    }

    fn restore(&self, batch: &WriteBatch) -> Result<()> {
        let _turn = self.writer();
        self.check_open()
            .and_then(|()| self.check_owned(batch.offsets()))
            .and_then(|()| {
                if self.staged().is_empty() {
                    Ok(())
                } else {
                    self.refuse("cannot restore over staged writes; commit them or roll them back".into())
                }
            })
            .map_err(|error| error.with_commit_outcome(CommitOutcome::NotApplied))?;
        self.step(|backend| backend.apply(batch))
    }

    fn flush(&self) -> Result<()> {
        let _turn = self.writer();
        self.check_open()?;
        self.named(self.backend.flush())
    }

    fn wipe(&self) -> Result<()> {
        let _turn = self.writer();
        self.check_open().map_err(|error| error.with_commit_outcome(CommitOutcome::NotApplied))?;
        self.step(B::wipe)?;
        *self.staged_mut() = WriteBatch::new();
        tracing::info!(store = &*self.name, "wiped");
        Ok(())
    }

    fn is_open(&self) -> bool {
        self.lifecycle.is_open()
    }

    fn close(&self) -> Result<()> {
        let _turn = self.writer();
        if !self.lifecycle.close() {
            return Ok(());
        }
        *self.staged_mut() = WriteBatch::new();
        tracing::debug!(store = &*self.name, "store closed");
        self.named(self.backend.close())
    }
}

impl<B: Backend> ReadOnlyKeyValueStore for StagedStore<B> {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.check_open()?;
        // Taken out of the lock first, for `read` may take its time.
        let staged = self.staged().get(key).map(Option::<&Bytes>::cloned);
        match staged {
            Some(Some(value)) => {
                read(&value);
                Ok(true)
            }
            Some(None) => Ok(false),
            None => self.named(self.backend.get_with(key, read)),
        }
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        self.check_open()?;
        let cursor = |staged, committed| {
            Box::new(MergeCursor::new(staged, committed, order, Arc::clone(&self.lifecycle))) as Box<dyn Cursor>
        };
        if range.is_inverted() {
            tracing::warn!(
                store = &*self.name,
                ?range,
                "the range's start lies after its end, so it is empty; signed numbers do not sort as bytes"
            );
            return Ok(cursor(Vec::new(), Box::new(EmptyCursor)));
        }
        // Both views are taken under the lock: a commit empties the overlay only after the engine shows its rows.
        let staged = self.staged();
        let rows = staged.records_in(range).map(|(key, value)| (key.clone(), value.cloned()));
        let rows = match order {
            Order::Ascending => rows.collect(),
            Order::Descending => rows.rev().collect(),
        };
        Ok(cursor(rows, self.named(self.backend.scan(range, order))?))
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        self.check_open()?;
        let staged = self.staged();
        let puts = staged.records().filter(|(_, value)| value.is_some()).count();
        let deletes = staged.len() - puts;
        let committed = self.named(self.backend.approximate_num_entries())?;
        Ok(committed.saturating_add(puts as u64).saturating_sub(deletes as u64))
    }
}

impl<B: Backend> KeyValueStore for StagedStore<B> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_len(key, Some(value))?;
        let (key, value) = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
        self.stage(|staged| staged.put(key, value))
    }

    fn put_all(&self, entries: &[(&[u8], Option<&[u8]>)]) -> Result<()> {
        entries.iter().try_for_each(|(key, value)| self.check_len(key, *value))?;
        self.stage(|staged| {
            for (key, value) in entries {
                let key = Bytes::copy_from_slice(key);
                match value {
                    Some(value) => staged.put(key, Bytes::copy_from_slice(value)),
                    None => staged.delete(key),
                }
            }
        })
    }

    fn put_if_absent(&self, key: &[u8], value: &[u8]) -> Result<Option<Bytes>> {
        self.check_len(key, Some(value))?;
        let _turn = self.writer();
        let present = self.get(key)?;
        if present.is_none() {
            self.staged_mut().put(Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
        }
        Ok(present)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.check_len(key, None)?;
        let key = Bytes::copy_from_slice(key);
        self.stage(|staged| staged.delete(key))
    }

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        self.check_open()?;
        self.named(self.backend.snapshot())
    }
}

impl<B: Backend> Drop for StagedStore<B> {
    fn drop(&mut self) {
        // While panicking the backend drops without a word, as in a crash: a close could mark damage as clean.
        if !thread::panicking()
            && let Err(error) = self.close()
        {
            tracing::warn!(store = &*self.name, %error, "closing a dropped store failed");
        }
    }
}
