use std::fmt::Debug;

use bytes::Bytes;

use crate::{ChangelogOffsets, Offset, PartitionPosition, Position, Result, TopicPartition, WriteBatch};

/// What [`StateStore::staged_changes`] calls with each key and its new value; `None` for a deleted one.
///
/// ```
/// use kstate_api::{KeyValueStore, StagedStore, StateStore};
/// # use kstate_store_memory::MemoryBackend;
/// # fn main() -> kstate_api::Result<()> {
/// # let store = StagedStore::open("counts", MemoryBackend::new(), &[])?;
/// store.put(b"b", b"1")?;
/// store.delete(b"a")?;
/// let mut changes = Vec::new();
/// store.staged_changes(&mut |key, value| {
///     changes.push((key.to_vec(), value.map(<[u8]>::to_vec)));
///     Ok(())
/// })?;
/// assert_eq!(changes, [(b"a".to_vec(), None), (b"b".to_vec(), Some(b"1".to_vec()))]);
/// # Ok(())
/// # }
/// ```
pub type VisitChange<'v> = dyn FnMut(&[u8], Option<&[u8]>) -> Result<()> + 'v;

/// A store of a task, which knows how far of its changelog it holds: the SPI of KIP-1035, in Rust.
///
/// # Contract
///
/// **Offsets.** O1: a committed offset is that of the last record whose effect is in the store. O2: one
/// [`commit`](StateStore::commit) is one atomic step. O3: an offset is stored as given. O4: nothing committed, not
/// persistent after a reopen, or not managing offsets means `None`. O5: a store is opened with the changelog
/// partitions it owns. O6: after any crash a store is exactly at *some* earlier commit. O7: a commit that fails says
/// whether it may have happened.
///
/// **Writes.** R4: an empty value is a value. R5: [`rollback`](StateStore::rollback), [`close`](StateStore::close) and
/// drop discard what is staged; closing never commits. Closing twice is fine; every other use of a closed store is
/// `Closed` and has no effect.
///
/// **Threads.** One thread owns a store, writes and commits; its reads see its staged writes. Others read through
/// [`KeyValueStore::snapshot`](crate::KeyValueStore::snapshot). Calls from several threads are safe all the same:
/// writes and commits take turns.
///
/// Everything is synchronous. From asynchronous code, call it where blocking is allowed.
///
/// The easy way to implement this trait is to implement [`Backend`](crate::Backend) and to use
/// [`StagedStore`](crate::StagedStore). Implement it directly for a store that is not made of a local engine.
///
/// ```
/// use kstate_api::{ChangelogOffsets, Offset, StagedStore, StateStore, TopicPartition, WriteBatch};
/// # use kstate_store_memory::MemoryBackend;
///
/// /// Restores one record and says how far the store has come.
/// fn catch_up(store: &dyn StateStore, changelog: &TopicPartition) -> kstate_api::Result<Option<Offset>> {
///     let mut batch = WriteBatch::new();
///     batch.put("word", "1");
///     batch.set_offset(changelog.clone(), Offset::ZERO);
///     store.restore(&batch)?;
///     store.committed_offset(changelog)
/// }
///
/// # fn main() -> kstate_api::Result<()> {
/// let changelog = TopicPartition::new("counts-changelog", 0);
/// let store = StagedStore::open("counts", MemoryBackend::new(), &[changelog.clone()])?;
/// assert_eq!(catch_up(&store, &changelog)?, Some(Offset::ZERO));
///
/// // O2: an empty map changes no offset. O5: a foreign partition is refused.
/// store.commit(&ChangelogOffsets::new())?;
/// assert_eq!(store.committed_offset(&changelog)?, Some(Offset::ZERO));
/// let foreign = ChangelogOffsets::new().with(TopicPartition::new("other", 0), Offset::ZERO);
/// assert!(store.commit(&foreign).is_err());
/// # Ok(())
/// # }
/// ```
pub trait StateStore: Debug + Send + Sync {
    /// The store's name: unique in its topology, and the name of its directory.
    ///
    /// ```
    /// # use kstate_api::{StagedStore, StateStore};
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[])?;
    /// assert_eq!(store.name(), "counts");
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn name(&self) -> &str;

    /// Whether a clean close and reopen keeps what was committed.
    ///
    /// ```
    /// # use kstate_api::{StagedStore, StateStore};
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[])?;
    /// assert!(!store.persistent(), "this one is in memory: restore it from the start of its changelog");
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn persistent(&self) -> bool;

    /// Whether the store keeps changelog offsets itself. One that does not has `None` for every offset; whoever runs
    /// it keeps them elsewhere.
    ///
    /// ```
    /// # use kstate_api::{StagedStore, StateStore};
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[])?;
    /// assert!(store.manages_offsets(), "every staged store does, over any backend");
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn manages_offsets(&self) -> bool;

    /// The changelog partitions it was opened with (clause O5).
    ///
    /// ```
    /// # use kstate_api::{StagedStore, StateStore, TopicPartition};
    /// let changelog = [TopicPartition::new("counts-changelog", 0)];
    /// let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &changelog)?;
    /// assert_eq!(store.changelog_partitions(), changelog);
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn changelog_partitions(&self) -> &[TopicPartition];

    /// Makes everything staged since the last commit, and `changelog_offsets`, visible and recoverable together or not
    /// at all (clause O2), the staged position too. An offset is stored exactly as given, a lower one too (clause O3);
    /// a partition that is not named keeps its own. So an empty map commits the records and changes no offset.
    ///
    /// # Errors
    /// `InvalidArgument` for a partition the store does not own, and nothing is applied (clause O5); `Closed`;
    /// `Poisoned`; or what the engine met. Each has a [`CommitOutcome`](crate::CommitOutcome): after `NotApplied`
    /// everything is still staged and the call can be repeated; after `Unknown` the store is poisoned (clause O7).
    ///
    /// ```
    /// # use kstate_api::{ChangelogOffsets, KeyValueStore, Offset, StagedStore, StateStore, TopicPartition};
    /// # let changelog = TopicPartition::new("counts-changelog", 0);
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[changelog.clone()])?;
    /// store.put(b"word", b"1")?;
    /// let acknowledged = Offset::new(7).unwrap(); // where the broker put the record of it
    /// store.commit(&ChangelogOffsets::new().with(changelog.clone(), acknowledged))?;
    /// assert_eq!(store.committed_offset(&changelog)?, Some(acknowledged));
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn commit(&self, changelog_offsets: &ChangelogOffsets) -> Result<()>;

    /// The offset committed for `partition`: that of the last record whose effect is in the store (clause O1). A
    /// restore resumes at its [`next`](Offset::next). `None` if nothing was committed, if the store was opened anew and
    /// is not persistent, or if it does not manage offsets (clause O4).
    ///
    /// # Errors
    /// `Closed`, `Poisoned`, or what the engine met.
    ///
    /// ```
    /// # use kstate_api::{ChangelogOffsets, Offset, StagedStore, StateStore, TopicPartition};
    /// # let changelog = TopicPartition::new("counts-changelog", 0);
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[changelog.clone()])?;
    /// assert_eq!(store.committed_offset(&changelog)?, None, "restore from where the changelog starts");
    /// store.commit(&ChangelogOffsets::new().with(changelog.clone(), Offset::ZERO))?;
    /// let resume_at = store.committed_offset(&changelog)?.map(Offset::next);
    /// assert_eq!(resume_at, Offset::new(1));
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>>;

    /// The offset that a reopen after a power loss would show at least (clause O6).
    ///
    /// # Errors
    /// `Closed`, `Poisoned`, or what the engine met.
    ///
    /// ```
    /// # use kstate_api::{ChangelogOffsets, Offset, StagedStore, StateStore, TopicPartition};
    /// # let changelog = TopicPartition::new("counts-changelog", 0);
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[changelog.clone()])?;
    /// store.commit(&ChangelogOffsets::new().with(changelog.clone(), Offset::ZERO))?;
    /// assert_eq!(store.durable_offset(&changelog)?, None, "this one is in memory");
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>>;

    /// Removes every committed offset and position, at once and durably as a commit; records stay, and so does what is
    /// staged. The next restore begins at the start of the changelog.
    ///
    /// # Errors
    /// As [`commit`](StateStore::commit).
    ///
    /// ```
    /// # use kstate_api::{ChangelogOffsets, Offset, StagedStore, StateStore, TopicPartition};
    /// # use kstate_api::{KeyValueStore, ReadOnlyKeyValueStoreExt};
    /// # let changelog = TopicPartition::new("counts-changelog", 0);
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[changelog.clone()])?;
    /// store.put(b"word", b"1")?;
    /// store.commit(&ChangelogOffsets::new().with(changelog.clone(), Offset::ZERO))?;
    /// store.forget_offsets()?;
    /// assert_eq!(store.committed_offset(&changelog)?, None);
    /// assert_eq!(store.get(b"word")?.unwrap(), "1");
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn forget_offsets(&self) -> Result<()>;

    /// Stages the source position of `partition`: the next record to process, and what is finished above it. The next
    /// commit takes it along, as given (clauses O2, A5).
    ///
    /// # Errors
    /// `InvalidArgument` for a partition Kafka could not have; `Closed`; `Poisoned`.
    ///
    /// ```
    /// # use kstate_api::{ChangelogOffsets, KeyValueStore, Offset, StagedStore, StateStore, TopicPartition};
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[])?;
    /// let source = TopicPartition::new("lines", 0);
    /// store.put(b"word", b"1")?; // made from the line at offset 7
    /// store.stage_position(&source, Offset::new(8).unwrap().into())?;
    /// store.commit(&ChangelogOffsets::new())?;
    /// assert_eq!(store.position()?.next(&source), Offset::new(8));
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn stage_position(&self, partition: &TopicPartition, position: PartitionPosition) -> Result<()>;

    /// The committed source position.
    ///
    /// # Errors
    /// `Closed`, `Poisoned`, or what the engine met.
    ///
    /// ```
    /// # use kstate_api::{Offset, StagedStore, StateStore, TopicPartition};
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[])?;
    /// store.stage_position(&TopicPartition::new("lines", 0), Offset::ZERO.into())?;
    /// assert!(store.position()?.is_empty(), "what is staged is not committed");
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn position(&self) -> Result<Position>;

    /// Calls `visit` with each key written since the last commit, once, in ascending order, and its value; `None` was
    /// deleted. This is what goes to the changelog.
    ///
    /// `visit` must not call the store. Its error ends the visit and is returned.
    ///
    /// # Errors
    /// `Closed`, `Poisoned`, or that of `visit`.
    ///
    /// ```
    /// # use kstate_api::{KeyValueStore, StagedStore, StateStore};
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[])?;
    /// store.put(b"word", b"1")?;
    /// store.put(b"word", b"2")?;
    /// let mut values = Vec::new();
    /// store.staged_changes(&mut |_key, value| Ok(values.push(value.map(<[u8]>::to_vec))))?;
    /// assert_eq!(values, [Some(b"2".to_vec())]);
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn staged_changes(&self, visit: &mut VisitChange<'_>) -> Result<()>;

    /// The committed value of `key`, a key as [`staged_changes`](StateStore::staged_changes) gives it, and `None` if
    /// there is none; what is staged does not count. This is what goes to the changelog to supersede a record that was
    /// never committed.
    ///
    /// # Errors
    /// `Closed`, `Poisoned`, or what the engine met.
    ///
    /// ```
    /// # use kstate_api::{ChangelogOffsets, KeyValueStore, StagedStore, StateStore};
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[])?;
    /// store.put(b"word", b"1")?;
    /// store.commit(&ChangelogOffsets::new())?;
    /// store.put(b"word", b"2")?;
    /// assert_eq!(store.committed_value(b"word")?.unwrap(), "1");
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn committed_value(&self, key: &[u8]) -> Result<Option<Bytes>>;

    /// About how many bytes of memory the staged writes take.
    ///
    /// ```
    /// # use kstate_api::{ChangelogOffsets, KeyValueStore, StagedStore, StateStore};
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[])?;
    /// store.put(b"word", b"1")?;
    /// if store.uncommitted_bytes() > 64 << 20 {
    ///     store.commit(&ChangelogOffsets::new())?; // earlier than planned: 64 MiB are enough
    /// }
    /// # assert!(store.uncommitted_bytes() >= 5);
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn uncommitted_bytes(&self) -> u64;

    /// Drops everything staged since the last commit, positions too (clause R5).
    ///
    /// # Errors
    /// `Closed`, `Poisoned`.
    ///
    /// ```
    /// # use kstate_api::{KeyValueStore, ReadOnlyKeyValueStoreExt, StagedStore, StateStore};
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[])?;
    /// store.put(b"word", b"1")?;
    /// store.rollback()?;
    /// assert_eq!(store.get(b"word")?, None);
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn rollback(&self) -> Result<()>;

    /// Applies records that were read from the changelog, with the offset of the last one: one atomic step past the
    /// staging (clauses O1, O2, O5).
    ///
    /// # Errors
    /// `InvalidArgument` while anything is staged, for a partition the store does not own, or for a key or value that
    /// is too long for it; else as [`commit`](StateStore::commit).
    ///
    /// ```
    /// # use kstate_api::{Offset, StagedStore, StateStore, TopicPartition, WriteBatch};
    /// # let changelog = TopicPartition::new("counts-changelog", 0);
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[changelog.clone()])?;
    /// let mut read = WriteBatch::new();
    /// read.put("word", "1");
    /// read.delete("gone");
    /// read.set_offset(changelog.clone(), Offset::new(41).unwrap());
    /// store.restore(&read)?;
    /// assert_eq!(store.committed_offset(&changelog)?, Offset::new(41));
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn restore(&self, batch: &WriteBatch) -> Result<()>;

    /// Makes every earlier commit survive a power loss (clause O6), if the store is persistent.
    ///
    /// # Errors
    /// `Closed`, `Poisoned`, or what the engine met.
    ///
    /// ```
    /// # use kstate_api::{KeyValueStore, StagedStore, StateStore};
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[])?;
    /// store.put(b"word", b"1")?;
    /// store.flush()?;
    /// assert_eq!(store.committed_value(b"word")?, None, "a flush commits nothing");
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn flush(&self) -> Result<()>;

    /// Deletes everything: records, offsets and position in one atomic step, and what is staged.
    ///
    /// # Errors
    /// As [`commit`](StateStore::commit).
    ///
    /// ```
    /// # use kstate_api::{ChangelogOffsets, Offset, StagedStore, StateStore, TopicPartition};
    /// # use kstate_api::{KeyValueStore, ReadOnlyKeyValueStoreExt};
    /// # let changelog = TopicPartition::new("counts-changelog", 0);
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[changelog.clone()])?;
    /// store.put(b"word", b"1")?;
    /// store.commit(&ChangelogOffsets::new().with(changelog.clone(), Offset::ZERO))?;
    /// store.wipe()?;
    /// assert!(store.get(b"word")?.is_none() && store.committed_offset(&changelog)?.is_none());
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn wipe(&self) -> Result<()>;

    /// Whether reads and writes are possible: neither closed nor poisoned.
    ///
    /// ```
    /// # use kstate_api::{StagedStore, StateStore};
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[])?;
    /// assert!(store.is_open());
    /// store.close()?;
    /// assert!(!store.is_open());
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn is_open(&self) -> bool;

    /// Discards what is staged, flushes what is committed, and releases everything (clause R5). Closing twice is fine.
    ///
    /// # Errors
    /// What the engine met; the store is closed nevertheless.
    ///
    /// ```
    /// # use kstate_api::{ErrorKind, KeyValueStore, StagedStore, StateStore};
    /// # let store = StagedStore::open("counts", kstate_store_memory::MemoryBackend::new(), &[])?;
    /// store.put(b"word", b"1")?; // never committed, so it goes
    /// store.close()?;
    /// store.close()?;
    /// assert_eq!(store.put(b"word", b"1").unwrap_err().kind(), ErrorKind::Closed);
    /// # Ok::<(), kstate_api::Error>(())
    /// ```
    fn close(&self) -> Result<()>;
}
