use std::sync::Arc;

use crate::{Capabilities, Offset, Position, ReadOnlyKeyValueStore, Result, TopicPartition, WriteBatch};

/// A storage engine below every kind of store: what someone with a new engine implements.
///
/// A backend applies batches atomically and reads what is committed. Staging, read-your-writes, rollback, isolation
/// and the check of owned partitions are [`StagedStore`](crate::StagedStore)'s, written once for all backends.
///
/// # Contract
/// - **Atomic** (O2): readers and a reopen after any crash see all of a batch or nothing of it: records, offsets and
///   position.
/// - **Exact** (O3): an offset is stored as given, a lower one too. A partition not in the batch keeps its own.
/// - **Consistent, whatever the durability** (O6): after a crash the records are those of the offset, always.
/// - **Honest failure** (O7): an error of [`apply`](Backend::apply) says `NotApplied` only if a later reopen cannot
///   show the batch; else it says `Unknown`, which is also what an error without an outcome means.
/// - **Bytes** (R1, R4): keys are ordered as unsigned bytes; the empty key and the empty value are stored. An engine
///   that takes no keys of [`MAX_KEY_LEN`](crate::MAX_KEY_LEN) says so
///   ([`Capabilities::with_max_key_len`]), and is never handed a longer key or bound.
/// - **Stable views** (R2, R3): cursors and snapshots show one commit, whole, while others are applied.
/// - **One owner** (D2): opening a directory that is open already, here or in another process, is `Locked` at once.
/// - **Typed failure**: damage is `Corrupted`, a format of a newer version is `NewerFormat` before anything is
///   touched, a full disk is `DiskFull`.
/// - **Close** (R5): it releases the directory even while cursors and snapshots are alive; they answer `Closed`, as
///   does every other call. Closing twice is fine. Dropping closes; dropping while panicking must not mark the
///   store as cleanly closed if that would skip a recovery.
///
/// Calls come from several threads: one at a time applies, flushes or wipes, any number reads. The methods of
/// [`ReadOnlyKeyValueStore`] read what is committed.
///
/// `kstate-store-memory` is the shortest complete example.
///
/// ```
/// use kstate_api::{Backend, Offset, ReadOnlyKeyValueStoreExt, TopicPartition, WriteBatch};
/// use kstate_store_memory::MemoryBackend;
///
/// # fn main() -> kstate_api::Result<()> {
/// let changelog = TopicPartition::new("counts-changelog", 0);
/// let backend = MemoryBackend::new();
/// let mut batch = WriteBatch::new();
/// batch.put("word", "1");
/// batch.set_offset(changelog.clone(), Offset::ZERO);
/// backend.apply(&batch)?;
/// assert_eq!(backend.get(b"word")?.unwrap(), "1");
/// assert_eq!(backend.committed_offset(&changelog)?, Some(Offset::ZERO));
/// # Ok(())
/// # }
/// ```
pub trait Backend: ReadOnlyKeyValueStore {
    /// What this backend can do as it was opened.
    ///
    /// ```
    /// # use kstate_api::{Backend, Capabilities};
    /// # let backend = kstate_store_memory::MemoryBackend::new();
    /// // In memory. An engine that syncs each batch answers `Capabilities::persisting(Durability::Sync)`.
    /// assert_eq!(backend.capabilities(), Capabilities::volatile());
    /// ```
    fn capabilities(&self) -> Capabilities;

    /// Applies `batch`: if it [forgets offsets](WriteBatch::forgets_offsets), drops all stored offsets and positions;
    /// then takes its records, offsets and positions. One atomic step (clauses O2, O3).
    ///
    /// # Errors
    /// Any kind, with its [`CommitOutcome`](crate::CommitOutcome) (clause O7).
    ///
    /// ```
    /// # use kstate_api::{ChangelogOffsets, WriteBatch};
    /// # use std::collections::BTreeMap;
    /// /// What a batch does, the position aside. An engine does it in one transaction.
    /// fn apply(batch: &WriteBatch, rows: &mut BTreeMap<Vec<u8>, Vec<u8>>, offsets: &mut ChangelogOffsets) {
    ///     if batch.forgets_offsets() {
    ///         *offsets = ChangelogOffsets::new();
    ///     }
    ///     for (key, value) in batch.records() {
    ///         match value {
    ///             Some(value) => rows.insert(key.to_vec(), value.to_vec()),
    ///             None => rows.remove(key),
    ///         };
    ///     }
    ///     offsets.extend(batch.offsets().clone());
    /// }
    /// # let mut batch = WriteBatch::new();
    /// # batch.put("new", "1");
    /// # batch.delete("old");
    /// # let mut rows = BTreeMap::from([(b"old".to_vec(), b"1".to_vec())]);
    /// # apply(&batch, &mut rows, &mut ChangelogOffsets::new());
    /// # assert_eq!(rows, BTreeMap::from([(b"new".to_vec(), b"1".to_vec())]));
    /// ```
    fn apply(&self, batch: &WriteBatch) -> Result<()>;

    /// The offset stored for `partition` by the last applied batch that had one; `None` if there is none
    /// (clauses O1, O3, O4).
    ///
    /// # Errors
    /// `Closed`, or whatever the engine met.
    ///
    /// ```
    /// # use kstate_api::{Backend, Offset, TopicPartition, WriteBatch};
    /// # let backend = kstate_store_memory::MemoryBackend::new();
    /// # let changelog = TopicPartition::new("counts-changelog", 0);
    /// for given in [7, 3] {
    ///     let mut batch = WriteBatch::new();
    ///     batch.set_offset(changelog.clone(), Offset::new(given).unwrap());
    ///     backend.apply(&batch)?;
    /// }
    /// assert_eq!(backend.committed_offset(&changelog)?, Offset::new(3), "a lower one too");
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>>;

    /// The offset that a reopen after a power loss would show *at least*; `None` if that could be none at all, as it
    /// is for a backend that is not persistent (clause O6).
    ///
    /// # Errors
    /// `Closed`, or whatever the engine met.
    ///
    /// ```
    /// # use kstate_api::{Backend, Offset, TopicPartition, WriteBatch};
    /// # let backend = kstate_store_memory::MemoryBackend::new();
    /// # let changelog = TopicPartition::new("counts-changelog", 0);
    /// let mut batch = WriteBatch::new();
    /// batch.set_offset(changelog.clone(), Offset::ZERO);
    /// backend.apply(&batch)?;
    /// assert_eq!(backend.durable_offset(&changelog)?, None, "nothing in memory survives");
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>>;

    /// The source position stored by the applied batches: for each partition, the last one given.
    ///
    /// # Errors
    /// `Closed`, or whatever the engine met.
    ///
    /// ```
    /// # use kstate_api::{Backend, Offset, TopicPartition, WriteBatch};
    /// # let backend = kstate_store_memory::MemoryBackend::new();
    /// let source = TopicPartition::new("lines", 0);
    /// let mut batch = WriteBatch::new();
    /// batch.set_position(source.clone(), Offset::new(8).unwrap());
    /// backend.apply(&batch)?;
    /// assert_eq!(backend.position()?.next(&source), Offset::new(8));
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn position(&self) -> Result<Position>;

    /// A stable view of the last commit, with its offsets and position, for any thread (clause R2).
    ///
    /// # Errors
    /// `Closed`, or whatever the engine met.
    ///
    /// ```
    /// # use kstate_api::{Backend, ReadOnlyKeyValueStoreExt, WriteBatch};
    /// # let backend = kstate_store_memory::MemoryBackend::new();
    /// let before = backend.snapshot()?;
    /// let mut batch = WriteBatch::new();
    /// batch.put("word", "1");
    /// backend.apply(&batch)?;
    /// assert_eq!((before.get(b"word")?, backend.get(b"word")?.unwrap()), (None, "1".into()));
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>>;

    /// Makes every earlier commit survive a power loss (clause O6). Does nothing in a backend that is not persistent.
    ///
    /// # Errors
    /// `Closed`, or whatever the engine met.
    ///
    /// ```
    /// # use kstate_api::{Backend, Offset, Result, TopicPartition, WriteBatch};
    /// /// What holds of every backend.
    /// fn flushed_is_durable(backend: &dyn Backend, changelog: &TopicPartition) -> Result<()> {
    ///     backend.flush()?;
    ///     if backend.capabilities().persistent() {
    ///         assert_eq!(backend.durable_offset(changelog)?, backend.committed_offset(changelog)?);
    ///     }
    ///     Ok(())
    /// }
    /// # let backend = kstate_store_memory::MemoryBackend::new();
    /// # let changelog = TopicPartition::new("counts-changelog", 0);
    /// # let mut batch = WriteBatch::new();
    /// # batch.set_offset(changelog.clone(), Offset::ZERO);
    /// # backend.apply(&batch).unwrap();
    /// # flushed_is_durable(&backend, &changelog).unwrap();
    /// ```
    fn flush(&self) -> Result<()>;

    /// Deletes records, offsets and position together, atomically and durably.
    ///
    /// # Errors
    /// As [`apply`](Backend::apply).
    ///
    /// ```
    /// # use kstate_api::{Backend, Offset, ReadOnlyKeyValueStoreExt, TopicPartition, WriteBatch};
    /// # let backend = kstate_store_memory::MemoryBackend::new();
    /// # let changelog = TopicPartition::new("counts-changelog", 0);
    /// let mut batch = WriteBatch::new();
    /// batch.put("word", "1");
    /// batch.set_offset(changelog.clone(), Offset::ZERO);
    /// backend.apply(&batch)?;
    /// backend.wipe()?;
    /// assert!(backend.get(b"word")?.is_none() && backend.committed_offset(&changelog)?.is_none());
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn wipe(&self) -> Result<()>;

    /// Flushes and releases everything, the directory's lock too (clause R5).
    ///
    /// # Errors
    /// Whatever the engine met; it is closed nevertheless.
    ///
    /// ```
    /// # use kstate_api::{Backend, ErrorKind};
    /// # let backend = kstate_store_memory::MemoryBackend::new();
    /// let snapshot = backend.snapshot()?;
    /// backend.close()?;
    /// backend.close()?;
    /// assert_eq!(snapshot.position().unwrap_err().kind(), ErrorKind::Closed);
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn close(&self) -> Result<()>;
}

/// A stable, read-only view of one commit of a store (clause R2).
///
/// It never changes, whatever its store does; after the store closes it answers `Closed`. It can keep the engine
/// from freeing what was overwritten since: drop it when done.
///
/// ```
/// use kstate_api::{
///     ChangelogOffsets, KeyValueStore, Offset, ReadOnlyKeyValueStoreExt, StagedStore, StateStore, TopicPartition,
/// };
/// # use kstate_store_memory::MemoryBackend;
///
/// # fn main() -> kstate_api::Result<()> {
/// let changelog = TopicPartition::new("counts-changelog", 0);
/// let store = StagedStore::open("counts", MemoryBackend::new(), &[changelog.clone()])?;
/// store.put(b"word", b"1")?;
/// store.commit(&ChangelogOffsets::new().with(changelog.clone(), Offset::ZERO))?;
///
/// let snapshot = store.snapshot()?;
/// store.put(b"word", b"2")?;
/// store.commit(&ChangelogOffsets::new().with(changelog.clone(), Offset::ZERO.next()))?;
/// assert_eq!(snapshot.get(b"word")?.unwrap(), "1");
/// assert_eq!(snapshot.committed_offset(&changelog)?, Some(Offset::ZERO));
/// # Ok(())
/// # }
/// ```
pub trait Snapshot: ReadOnlyKeyValueStore {
    /// The changelog offset that belongs to this view (clauses O1, R2).
    ///
    /// # Errors
    /// `Closed`, or whatever the engine met.
    ///
    /// ```
    /// # use kstate_api::{ChangelogOffsets, KeyValueStore, Offset, StagedStore, StateStore, TopicPartition};
    /// # let changelog = TopicPartition::new("counts-changelog", 0);
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[changelog.clone()])?;
    /// let before = store.snapshot()?;
    /// store.commit(&ChangelogOffsets::new().with(changelog.clone(), Offset::ZERO))?;
    /// assert_eq!(before.committed_offset(&changelog)?, None);
    /// assert_eq!(store.snapshot()?.committed_offset(&changelog)?, Some(Offset::ZERO));
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>>;

    /// The source position that belongs to this view (clause R2).
    ///
    /// # Errors
    /// `Closed`, or whatever the engine met.
    ///
    /// ```
    /// # use kstate_api::{ChangelogOffsets, KeyValueStore, Offset, StagedStore, StateStore, TopicPartition};
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[])?;
    /// let source = TopicPartition::new("lines", 0);
    /// store.stage_position(&source, Offset::new(8).unwrap().into())?;
    /// store.commit(&ChangelogOffsets::new())?;
    /// // What this view shows was made from the first eight lines.
    /// assert_eq!(store.snapshot()?.position()?.next(&source), Offset::new(8));
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn position(&self) -> Result<Position>;
}
