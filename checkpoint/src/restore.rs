use std::{
    collections::BTreeMap,
    mem,
    time::{Duration, Instant},
};

use kstate_api::{Bytes, Error, ErrorKind, Offset, Position, Result, WriteBatch};

use crate::{
    ChangelogReader, ChangelogRecord, LogBounds, LoggedStore, decode_source_position, source_header::was_committed,
    unsettled::Unsettled,
};

/// How long one poll waits; a restore notices a stall and the position's moves in between.
const POLL: Duration = Duration::from_millis(100);

/// What a changelog does with its oldest records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogRetention {
    /// It is compacted: the newest record of each key stays, so the log holds the whole state from its start on.
    Compacted,
    /// It drops the oldest records, whatever their keys. A state whose records are gone cannot be rebuilt from it.
    DropsOldest,
}

/// How to restore.
///
/// ```
/// use kstate_checkpoint::RestoreOptions;
///
/// let options = RestoreOptions::new().max_batch_bytes(1 << 20);
/// ```
#[derive(Clone, Debug)]
pub struct RestoreOptions {
    retention: LogRetention,
    max_batch_bytes: usize,
    stall_timeout: Duration,
}

impl Default for RestoreOptions {
    fn default() -> Self {
        Self { retention: LogRetention::Compacted, max_batch_bytes: 4 << 20, stall_timeout: Duration::from_secs(30) }
    }
}

impl RestoreOptions {
    /// A compacted log, batches of 4 MiB, 30 s without progress are an error.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What the changelog does with its oldest records.
    #[must_use]
    pub fn retention(mut self, retention: LogRetention) -> Self {
        self.retention = retention;
        self
    }

    /// How many bytes to gather before they are applied to the store in one step.
    #[must_use]
    pub fn max_batch_bytes(mut self, bytes: usize) -> Self {
        self.max_batch_bytes = bytes;
        self
    }

    /// How long to wait for the next record or marker before the restore fails as `Unavailable`.
    #[must_use]
    pub fn stall_timeout(mut self, timeout: Duration) -> Self {
        self.stall_timeout = timeout;
        self
    }
}

/// Why a store was emptied before its restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WipeReason {
    /// It had no offset for this changelog, so nobody can tell what its records belong to.
    NoOffset,
    /// The log begins beyond what the store has: records in between are gone.
    LogStartBeyondStore,
    /// The store has more than the log ever held: the log was truncated or made anew.
    StoreBeyondLogEnd,
    /// The store holds the effect of source records that the group has not committed and that will come again: the
    /// group's offsets expired or were reset.
    StoreBeyondSource,
}

/// How far a restore has come.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RestoreProgress {
    /// The next offset to read.
    pub next: Offset,
    /// Where the restore ends.
    pub end: Offset,
    /// Records applied so far.
    pub applied: u64,
}

/// What a restore did.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Restored {
    /// The offset the store had before; `None` if it had none or was wiped.
    pub from: Option<Offset>,
    /// The end of the log when the restore began; the store now has everything before it.
    pub end: Offset,
    /// Records applied.
    pub applied: u64,
    /// Records passed over since the source commit of their checkpoint never happened (clause P3).
    pub uncommitted: u64,
    /// Records passed over since they had no key.
    pub keyless: u64,
    /// Why the store was wiped first, if it was.
    pub wiped: Option<WipeReason>,
}

/// Brings a store from its committed offset to the present end of its changelog (clause P4).
///
/// `committed` is what the consumer group has committed of the task's source partitions: a fact from the broker, where
/// a missing partition means that nothing was ever committed, not that a look-up failed. Changes of a checkpoint that
/// the group never committed are passed over, for their source records will come again (clause P3). A record without
/// the header is applied; one with a header that cannot be read fails the restore, for either would be a guess.
///
/// What was passed over is healed by the next [`checkpoint`](crate::checkpoint). Until then the store's offset stays
/// before it, so that a restore after a crash finds it again.
///
/// Each batch is one atomic step of the store with its offset, so the restore can be killed anywhere and resumed.
///
/// # Errors
/// What the broker or the store met; `Unavailable` if the log stops short of its end for too long; `Unsupported` if the
/// log has dropped records that the store does not have ([`LogRetention::DropsOldest`]). The store then holds a prefix
/// of the log and its offset, and is not ready for use.
pub fn restore(
    logged: &LoggedStore,
    committed: &Position,
    reader: &mut dyn ChangelogReader,
    options: &RestoreOptions,
    progress: &mut dyn FnMut(RestoreProgress),
) -> Result<Restored> {
    let bounds = reader.bounds(logged.changelog())?;
    *logged.unsettled() = Unsettled::default();
    let (from, wiped) = starting_point(logged, committed, bounds, options)?;
    let next = from.map_or(bounds.start, Offset::next);
    let restored = Restored { from, end: bounds.end, applied: 0, uncommitted: 0, keyless: 0, wiped };
    if next >= bounds.end {
        return Ok(restored);
    }
    reader.seek(logged.changelog(), next)?;
    let batch = WriteBatch::new();
    let mut run = Run { logged, committed, options, batch, last: None, tail: BTreeMap::new(), header: None, restored };
    run.read_to_end(next, reader, progress)?;
    logged.unsettled().uncommitted.extend(mem::take(&mut run.tail).into_keys());
    tracing::info!(
        store = logged.store().name(),
        changelog = %logged.changelog(),
        applied = run.restored.applied,
        uncommitted = run.restored.uncommitted,
        end = %bounds.end,
        "restored"
    );
    Ok(run.restored)
}

/// The offset the store can be trusted to have, after a wipe where it has none.
fn starting_point(
    logged: &LoggedStore,
    committed: &Position,
    bounds: LogBounds,
    options: &RestoreOptions,
) -> Result<(Option<Offset>, Option<WipeReason>)> {
    let store = logged.store();
    let stored = store.committed_offset(logged.changelog())?;
    let reason = match stored {
        None => WipeReason::NoOffset,
        Some(offset) if offset.next() > bounds.end => WipeReason::StoreBeyondLogEnd,
        Some(offset) if offset.next() < bounds.start => WipeReason::LogStartBeyondStore,
        // The source is committed before the store, so a store is never ahead of its group by itself.
        Some(_) if !was_committed(&store.position()?, committed) => WipeReason::StoreBeyondSource,
        Some(offset) => return Ok((Some(offset), None)),
    };
    if options.retention == LogRetention::DropsOldest && bounds.start > Offset::ZERO {
        let message = format!(
            "changelog {} begins at offset {}: what the store needs before it was dropped, and the log is not compacted",
            logged.changelog(),
            bounds.start
        );
        return Err(Error::new(ErrorKind::Unsupported, message).with_store(store.name()));
    }
    if reason == WipeReason::NoOffset {
        tracing::debug!(store = store.name(), changelog = %logged.changelog(), "no offset: restoring from the start");
    } else {
        tracing::warn!(
            store = store.name(),
            changelog = %logged.changelog(),
            ?reason,
            ?stored,
            ?bounds,
            "the store does not match its changelog: wiping it and restoring from the start"
        );
    }
    store.wipe()?;
    Ok((None, Some(reason)))
}

/// One restore under way.
struct Run<'r> {
    logged: &'r LoggedStore,
    committed: &'r Position,
    options: &'r RestoreOptions,
    batch: WriteBatch,
    /// The last offset read, applied or passed over.
    last: Option<Offset>,
    /// The keys that were passed over and not met again since, each with the first offset of such a record.
    tail: BTreeMap<Bytes, Offset>,
    /// The last header and whether its checkpoint was committed: all records of a checkpoint have the same.
    header: Option<(Vec<u8>, bool)>,
    restored: Restored,
}

impl Run<'_> {
    fn read_to_end(
        &mut self,
        mut next: Offset,
        reader: &mut dyn ChangelogReader,
        progress: &mut dyn FnMut(RestoreProgress),
    ) -> Result<()> {
        let end = self.restored.end;
        let mut moved = Instant::now();
        // By position, not by record: markers, aborted and compacted records occupy offsets and never arrive.
        while next < end {
            let mut read = None;
            reader.poll(POLL, &mut |offset, record| read = Some((offset, self.take(offset, record))))?;
            let position = match read {
                Some((offset, taken)) => {
                    taken?;
                    offset.next()
                }
                None => reader.position()?.max(next),
            };
            if position > next {
                moved = Instant::now();
            } else if moved.elapsed() > self.options.stall_timeout {
                return Err(self.stalled(next));
            }
            next = position;
            if self.batch.byte_size() >= self.options.max_batch_bytes {
                self.apply(self.last)?;
                progress(RestoreProgress { next, end, applied: self.restored.applied });
            }
        }
        // Everything before the end is in the store now, whatever the last offsets were.
        self.apply(end.previous())?;
        progress(RestoreProgress { next: end, end, applied: self.restored.applied });
        Ok(())
    }

    fn take(&mut self, offset: Offset, record: ChangelogRecord<'_>) -> Result<()> {
        if offset >= self.restored.end {
            // Written after the restore began; it is not this restore's.
            return Ok(());
        }
        if let Some(header) = record.source_position
            && !self.is_committed(offset, header)?
        {
            self.last = Some(offset);
            self.restored.uncommitted += 1;
            if let Some(key) = record.key {
                self.tail.entry(Bytes::copy_from_slice(key)).or_insert(offset);
            }
            return Ok(());
        }
        if let Some(key) = record.key {
            self.tail.remove(key);
        }
        self.last = Some(offset);
        match (record.key, record.value) {
            (None, _) => {
                let changelog = self.logged.changelog();
                tracing::warn!(%changelog, %offset, "a changelog record without a key changes nothing");
                self.restored.keyless += 1;
                return Ok(());
            }
            (Some(key), Some(value)) => self.batch.put(key, Bytes::copy_from_slice(value)),
            (Some(key), None) => self.batch.delete(key),
        }
        self.restored.applied += 1;
        Ok(())
    }

    /// Whether the source commit of the checkpoint with this header has happened. If so, the batch takes its position.
    fn is_committed(&mut self, offset: Offset, header: &[u8]) -> Result<bool> {
        if let Some((last, committed)) = &self.header
            && last == header
        {
            return Ok(*committed);
        }
        // Neither applying nor passing over would be right for a header that cannot be read.
        let position = decode_source_position(header).map_err(|error| self.unreadable(offset, error))?;
        let committed = was_committed(&position, self.committed);
        if committed {
            for (source, next) in position.iter() {
                self.batch.set_position(source.clone(), next);
            }
        }
        self.header = Some((header.to_vec(), committed));
        Ok(committed)
    }

    fn stalled(&self, next: Offset) -> Error {
        let (changelog, end) = (self.logged.changelog(), self.restored.end);
        let message = format!("changelog {changelog} gives nothing at {next}, before its end {end}");
        Error::new(ErrorKind::Unavailable, message).with_store(self.logged.store().name())
    }

    fn unreadable(&self, offset: Offset, error: Error) -> Error {
        let message = format!("changelog {} at offset {offset}: {error}", self.logged.changelog());
        Error::new(error.kind(), message).with_store(self.logged.store().name()).with_source(error)
    }

    /// Applies the batch, with the offset `last` unless something before it has to be healed still.
    fn apply(&mut self, last: Option<Offset>) -> Result<()> {
        let before_tail = self.tail.values().min().map(|first| first.previous());
        if let Some(last) = before_tail.map_or(last, |before_tail| before_tail.min(last)) {
            self.batch.set_offset(self.logged.changelog().clone(), last);
        }
        self.logged.store().restore(&self.batch)?;
        self.batch = WriteBatch::new();
        Ok(())
    }
}
