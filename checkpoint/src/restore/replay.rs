use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

use kstate_api::{Bytes, Error, ErrorKind, Offset, Position, Result, WriteBatch};

use super::{RestoreOptions, RestoreProgress, Restored, applier::Applier, start::check_group};
use crate::{ChangelogReader, ChangelogRecord, LoggedStore, decode_source_position, source_header::was_committed};

/// How long one poll waits; a stall and the position's moves are noticed in between.
const POLL: Duration = Duration::from_millis(100);

/// What to do with records of a checkpoint that the group has not committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uncommitted {
    /// Pass over them: their source records will come again, and nobody else writes.
    PassOver,
    /// Stop before them: their checkpoint may yet be committed.
    Stop,
}

/// A changelog on its way into a store.
pub(crate) struct Replay<'r> {
    logged: &'r LoggedStore,
    committed: &'r Position,
    options: &'r RestoreOptions,
    uncommitted: Uncommitted,
    batch: WriteBatch,
    /// The last offset read, applied or passed over.
    last: Option<Offset>,
    /// The keys that were passed over and not met again since, each with the first offset of such a record.
    tail: BTreeMap<Bytes, Offset>,
    /// The last header and whether its checkpoint was committed: all records of a checkpoint have the same.
    header: Option<(Vec<u8>, bool)>,
    /// Where it stopped.
    stopped_at: Option<Offset>,
    restored: Restored,
}

impl<'r> Replay<'r> {
    /// Of the changelog of `logged`, of which the group has committed `committed`, to the end that `restored` names.
    pub(crate) fn new(
        logged: &'r LoggedStore,
        committed: &'r Position,
        options: &'r RestoreOptions,
        uncommitted: Uncommitted,
        restored: Restored,
    ) -> Self {
        Self {
            logged,
            committed,
            options,
            uncommitted,
            batch: WriteBatch::new(),
            last: None,
            tail: BTreeMap::new(),
            header: None,
            stopped_at: None,
            restored,
        }
    }

    /// What it did so far.
    pub(crate) fn restored(&self) -> Restored {
        self.restored
    }

    /// The keys of records that were passed over and have to be healed.
    pub(crate) fn into_tail(self) -> impl Iterator<Item = Bytes> {
        self.tail.into_keys()
    }

    /// Reads from `next` on to the end, or to where it has to stop; returns the offset after what was read.
    pub(crate) fn run(
        &mut self,
        next: Offset,
        reader: &mut dyn ChangelogReader,
        progress: &mut dyn FnMut(RestoreProgress),
    ) -> Result<Offset> {
        let logged = self.logged;
        thread::scope(|scope| self.read(next, reader, Applier::new(scope, logged), progress))
    }

    fn read(
        &mut self,
        mut next: Offset,
        reader: &mut dyn ChangelogReader,
        mut applier: Applier<'_, '_>,
        progress: &mut dyn FnMut(RestoreProgress),
    ) -> Result<Offset> {
        let end = self.restored.end;
        let mut moved = Instant::now();
        // By position, not by record: markers, aborted and compacted records occupy offsets and never arrive.
        while next < end {
            let mut read = None;
            reader.poll(POLL, &mut |offset, record| read = Some((offset, self.take(offset, record))))?;
            let position = match read {
                Some((offset, taken)) => {
                    taken?;
                    if let Some(stopped_at) = self.stopped_at {
                        return self.end_at(stopped_at, self.last, applier, progress);
                    }
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
                let batch = self.batch_to(self.last);
                let given = applier.give(batch, self.progress(next), progress);
                given.map_err(|error| self.refused(error))?;
            }
        }
        // Everything before the end is in the store then, whatever the last offsets were.
        self.end_at(end, end.previous(), applier, progress)
    }

    /// Applies what is left, with the offset `last`; the restore has come to `next` then.
    fn end_at(
        &mut self,
        next: Offset,
        last: Option<Offset>,
        applier: Applier<'_, '_>,
        progress: &mut dyn FnMut(RestoreProgress),
    ) -> Result<Offset> {
        let batch = self.batch_to(last);
        let finished = applier.finish(&batch, self.progress(next), progress);
        finished.map_err(|error| self.refused(error))?;
        Ok(next)
    }

    fn progress(&self, next: Offset) -> RestoreProgress {
        RestoreProgress { next, end: self.restored.end, applied: self.restored.applied }
    }

    fn take(&mut self, offset: Offset, record: ChangelogRecord<'_>) -> Result<()> {
        if offset >= self.restored.end {
            // Written after the restore began; it is not this restore's.
            return Ok(());
        }
        if let Some(header) = record.source_position
            && !self.is_committed(offset, header)?
        {
            if self.uncommitted == Uncommitted::Stop {
                self.stopped_at = Some(offset);
                return Ok(());
            }
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
        let committed = was_committed(&position, self.committed, &self.options.bare);
        if committed {
            for (source, position) in position.iter() {
                self.batch.set_position(source.clone(), position.clone());
            }
        } else {
            check_group(self.logged, &position, self.committed, self.options)?;
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

    /// The store's error, and if it is about a record, where that is: another engine may have written it.
    fn refused(&self, error: Error) -> Error {
        let (ErrorKind::InvalidArgument, Some(last)) = (error.kind(), self.last) else { return error };
        let changelog = self.logged.changelog();
        let message = format!(
            "changelog {changelog} has a record at or before offset {last} that the store does not take: {error}"
        );
        let told = Error::new(error.kind(), message).with_store(self.logged.store().name());
        match error.commit_outcome() {
            Some(outcome) => told.with_commit_outcome(outcome).with_source(error),
            None => told.with_source(error),
        }
    }

    /// What was read, with the offset `last` unless something before it has to be healed still.
    fn batch_to(&mut self, last: Option<Offset>) -> WriteBatch {
        let mut batch = std::mem::take(&mut self.batch);
        let before_tail = self.tail.values().min().map(|first| first.previous());
        if let Some(last) = before_tail.map_or(last, |before_tail| before_tail.min(last)) {
            batch.set_offset(self.logged.changelog().clone(), last);
        }
        batch
    }
}
