//! Steps and offsets of the toy store.

use std::{thread, time::Duration};

use bytes::Bytes;
use kstate_api::{
    Backend, ChangelogOffsets, CommitOutcome, Error, ErrorKind, Offset, PartitionPosition, Position,
    ReadOnlyKeyValueStoreExt, Result, StateStore, TopicPartition, VisitChange, WriteBatch,
};

use super::{
    bug::Bug,
    key_limit,
    store::{Changes, ToyStore},
};

/// A step of a closed store, whose error has lost its outcome.
fn without_outcome(result: Result<()>, bug: Bug) -> Result<()> {
    match result {
        Err(error) if bug == Bug::ClosedStoreHasNoOutcome && error.kind() == ErrorKind::Closed => {
            Err(Error::new(ErrorKind::Closed, "closed"))
        }
        result => result,
    }
}

impl StateStore for ToyStore {
    fn name(&self) -> &str {
        if self.bug == Bug::NameIsAnothers { "another" } else { self.inner.name() }
    }

    fn persistent(&self) -> bool {
        self.inner.persistent()
    }

    fn manages_offsets(&self) -> bool {
        !self.modest && self.bug != Bug::UnmanagedOffsetsAreFound
    }

    fn changelog_partitions(&self) -> &[TopicPartition] {
        if self.bug == Bug::PartitionsAreForgotten { &[] } else { &self.owned }
    }

    fn commit(&self, changelog_offsets: &ChangelogOffsets) -> Result<()> {
        if self.bug == Bug::OffsetsAreStoredByPlace {
            return self.inner.commit(&self.placed(changelog_offsets));
        }
        let owned = self.owned(changelog_offsets);
        let is_foreign = owned != *changelog_offsets;
        let mut offsets = changelog_offsets.clone();
        match self.bug {
            Bug::ForeignOffsetIsDropped => offsets = owned,
            Bug::CommitOfAKnownOffsetIsSkipped
                if offsets.iter().any(|(partition, offset)| {
                    self.inner.committed_offset(partition).is_ok_and(|known| known == Some(offset))
                }) =>
            {
                return self.inner.rollback();
            }
            Bug::PositionDuringACommitIsLost => {
                let staged = self.pending(|pending| pending.position.clone());
                staged
                    .iter()
                    .try_for_each(|(partition, position)| self.inner.stage_position(partition, position.clone()))?;
                self.inner.commit(&offsets)?;
                thread::sleep(Duration::from_micros(200));
                self.pending(|pending| pending.position.clear());
                return Ok(());
            }
            Bug::CommitBesideACloseIsLost if self.inner.is_open() => {
                thread::sleep(Duration::from_micros(200));
                return match self.inner.commit(&offsets) {
                    Err(error) if error.kind() == ErrorKind::Closed => Ok(()),
                    committed => committed,
                };
            }
            Bug::DeletesDuringACommitAreLost => {
                self.inner.commit(&offsets)?;
                thread::sleep(Duration::from_micros(200));
                let mut changes = self.changes()?;
                if changes.iter().any(|(_, value)| value.is_none()) {
                    changes.retain(|(_, value)| value.is_some());
                    self.inner.rollback()?;
                    self.stage(&changes)?;
                }
                return Ok(());
            }
            Bug::ForeignCommitIsHalfApplied if is_foreign => {
                self.inner.commit(&owned)?;
                return Err(Self::refused("foreign"));
            }
            Bug::FailedCommitLeavesItsOffsets => {
                let mut earlier = self.pending(|pending| pending.offsets.clone());
                earlier.extend(offsets);
                offsets = earlier;
            }
            Bug::RowsVanishDuringACommit => {
                let batch = self.batch(&offsets)?;
                self.inner.rollback()?;
                thread::sleep(Duration::from_millis(1));
                self.pending(|pending| pending.position.clear());
                return self.inner.restore(&batch);
            }
            _ => {}
        }
        let batch = if self.bug == Bug::UnknownCommitIsHalfRepeated { Some(self.batch(&offsets)?) } else { None };
        let committed = without_outcome(self.inner.commit(&offsets), self.bug);
        match &committed {
            Ok(()) => self.pending(|pending| {
                pending.position.clear();
                pending.offsets = ChangelogOffsets::new();
                pending.failed = false;
            }),
            Err(error) => {
                let unknown = error.commit_outcome() == Some(CommitOutcome::Unknown);
                self.pending(|pending| pending.failed = true);
                match self.bug {
                    Bug::FailedCommitRollsBack => self.inner.rollback()?,
                    Bug::FailedCommitLeavesItsOffsets => self.pending(|pending| pending.offsets = offsets),
                    Bug::UnknownIsCalledNotApplied if unknown => {
                        let error = Error::new(ErrorKind::Io, "injected");
                        return Err(error.with_commit_outcome(CommitOutcome::NotApplied));
                    }
                    Bug::UnknownCommitIsHalfRepeated if unknown => self.pending(|pending| pending.half = batch),
                    _ => {}
                }
            }
        }
        if self.bug == Bug::WritesDuringACommitAreLost {
            thread::sleep(Duration::from_micros(200));
            self.inner.rollback()?;
        }
        committed
    }

    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        match self.bug {
            _ if self.modest => self.inner.committed_offset(partition).map(|_| None),
            Bug::ForeignOffsetIsFound => self.backend.committed_offset(partition),
            _ => self.inner.committed_offset(&self.place(partition)),
        }
    }

    fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        if self.modest {
            return self.inner.durable_offset(partition).map(|_| None);
        }
        self.inner.durable_offset(&self.place(partition))
    }

    fn forget_offsets(&self) -> Result<()> {
        let foreign = if self.bug == Bug::ForgettingKeepsForeignOffsets { Some(self.foreign()?) } else { None };
        without_outcome(self.inner.forget_offsets(), self.bug)?;
        if let Some(foreign) = foreign {
            self.backend.apply(&foreign)?;
        }
        if self.bug == Bug::ForgettingRollsBack { self.inner.rollback() } else { Ok(()) }
    }

    fn stage_position(&self, partition: &TopicPartition, position: PartitionPosition) -> Result<()> {
        match self.bug {
            Bug::BadPartitionIsAccepted if partition.validate().is_err() => return Ok(()),
            Bug::PositionIsNotStaged => {
                let mut batch = WriteBatch::new();
                batch.set_position(partition.clone(), position);
                return self.backend.apply(&batch);
            }
            Bug::FinishedRangesAreDropped => return self.inner.stage_position(partition, position.without_finished()),
            _ => {}
        }
        if self.bug != Bug::PositionDuringACommitIsLost || !self.inner.is_open() || partition.validate().is_err() {
            self.inner.stage_position(partition, position.clone())?;
        }
        self.pending(|pending| pending.position.insert(partition.clone(), position));
        Ok(())
    }

    fn position(&self) -> Result<Position> {
        self.inner.position()
    }

    fn staged_changes(&self, visit: &mut VisitChange<'_>) -> Result<()> {
        let mut changes = self.changes()?;
        match self.bug {
            Bug::StagedChangesLackDeletes => changes.retain(|(_, value)| value.is_some()),
            Bug::StagedChangesComeBackwards => changes.reverse(),
            Bug::StagedChangesEndAfterAThousand => changes.truncate(1000),
            Bug::FailedCommitLosesItsChanges if self.pending(|pending| pending.failed) => changes.clear(),
            Bug::StagedChangesIgnoreErrors => {
                for (key, value) in &changes {
                    drop(visit(key, value.as_deref()));
                }
                return Ok(());
            }
            _ => {}
        }
        changes.iter().try_for_each(|(key, value)| visit(key, value.as_deref()))
    }

    fn committed_value(&self, key: &[u8]) -> Result<Option<Bytes>> {
        match self.bug {
            Bug::CommittedValueIsTheOwners => self.get(key),
            Bug::CommittedValueIsNever => Ok(None),
            _ => self.inner.committed_value(key),
        }
    }

    fn uncommitted_bytes(&self) -> u64 {
        match self.bug {
            Bug::UncommittedBytesAreZero => 0,
            Bug::UncommittedBytesLackKeys => {
                let changes = self.changes().unwrap_or_default();
                changes.iter().flat_map(|(_, value)| value).map(|value| value.len() as u64).sum()
            }
            Bug::OverwrittenBytesCount => {
                let now = self.inner.uncommitted_bytes();
                self.pending(|pending| {
                    pending.most_staged = if now == 0 { 0 } else { now.max(pending.most_staged) };
                    pending.most_staged
                })
            }
            Bug::UncommittedBytesOnlyGrow => self.pending(|pending| pending.ever_staged),
            _ => self.inner.uncommitted_bytes(),
        }
    }

    fn rollback(&self) -> Result<()> {
        match self.bug {
            Bug::RollbackDoesNothing if self.inner.is_open() => Ok(()),
            Bug::RollbackKeepsThePosition => {
                self.inner.rollback()?;
                let position = self.pending(|pending| pending.position.clone());
                position
                    .iter()
                    .try_for_each(|(partition, position)| self.inner.stage_position(partition, position.clone()))
            }
            _ => {
                self.inner.rollback()?;
                self.pending(|pending| pending.position.clear());
                Ok(())
            }
        }
    }

    fn restore(&self, batch: &WriteBatch) -> Result<()> {
        let mut restored = WriteBatch::new();
        let without_offsets = batch.offsets().is_empty() && self.bug == Bug::RestoreWithoutOffsetsForgetsThem;
        if batch.forgets_offsets() || without_offsets {
            restored.forget_offsets();
        }
        match self.bug {
            Bug::RestoreWithoutRecordsIsSkipped if batch.records().len() == 0 => return Ok(()),
            Bug::RestoreOfAKnownOffsetIsSkipped if self.is_known(batch.offsets())? => return Ok(()),
            _ => {}
        }
        restored.set_offsets(&self.placed(batch.offsets()));
        if self.bug != Bug::RestoreIgnoresThePosition {
            let taken = batch
                .position()
                .iter()
                .filter(|(partition, _)| self.bug != Bug::BadPositionIsRestored || partition.validate().is_ok());
            taken.for_each(|(partition, position)| {
                let position = match self.bug {
                    Bug::RestoreDropsFinishedRanges => position.clone().without_finished(),
                    _ => position.clone(),
                };
                restored.set_position(partition.clone(), position);
            });
        }
        let most = if self.bug == Bug::RestoreEndsAfterTenThousandRecords { 10_000 } else { usize::MAX };
        for (key, value) in batch.records().take(most) {
            match value {
                Some(_) if self.bug == Bug::RestoreKeepsWhatIsThere && self.inner.contains_key(key)? => {}
                Some(value) => restored.put(key, value.clone()),
                None if self.bug == Bug::RestoredTombstoneIsAValue => restored.put(key, ""),
                None if self.bug == Bug::LargeRestoreLosesDeletes && batch.len() > 3 => {}
                None => restored.delete(key),
            }
        }
        if self.bug == Bug::RestoreIgnoresTheKeyLimit {
            key_limit::without_long_keys(&mut restored);
        }
        match self.bug {
            Bug::ForeignRestoreIsApplied => self.backend.apply(&restored),
            Bug::RestoreIsNotWritten | Bug::LargeRestoreIsTakenInTwo => {
                self.backend.restoring(true);
                let done = self.inner.restore(&restored);
                self.backend.restoring(false);
                done
            }
            Bug::RestoreShowsInTwoSteps => {
                let mut records = WriteBatch::new();
                for (key, value) in restored.records() {
                    match value {
                        Some(value) => records.put(Bytes::copy_from_slice(key), value.clone()),
                        None => records.delete(Bytes::copy_from_slice(key)),
                    }
                }
                self.inner.restore(&records)?;
                thread::sleep(Duration::from_millis(2));
                self.inner.restore(&restored)
            }
            Bug::RestoreRollsBack => {
                self.inner.rollback()?;
                self.inner.restore(&restored)
            }
            Bug::RestoreIsStaged => batch.records().try_for_each(|(key, value)| match value {
                Some(value) => self.inner.put(key, value),
                None => self.inner.delete(key),
            }),
            _ => without_outcome(self.inner.restore(&restored), self.bug),
        }
    }

    fn flush(&self) -> Result<()> {
        if self.bug == Bug::FlushCommits {
            self.inner.commit(&ChangelogOffsets::new())?;
        }
        self.inner.flush()
    }

    fn wipe(&self) -> Result<()> {
        let staged = if self.bug == Bug::WipeKeepsWhatIsStaged { self.changes()? } else { Changes::new() };
        let foreign = if self.bug == Bug::WipeKeepsForeignOffsets { Some(self.foreign()?) } else { None };
        let wiped = without_outcome(self.inner.wipe(), self.bug);
        if wiped.is_err() && self.bug == Bug::FailedWipeRollsBack {
            self.inner.rollback()?;
        }
        wiped?;
        if let Some(foreign) = foreign {
            self.backend.apply(&foreign)?;
        }
        self.pending(|pending| pending.position.clear());
        self.stage(&staged)
    }

    fn is_open(&self) -> bool {
        self.inner.is_open() || (self.bug == Bug::UnknownDoesNotPoison && !self.pending(|pending| pending.closed))
    }

    fn close(&self) -> Result<()> {
        match self.bug {
            Bug::CloseCommits if self.inner.is_open() => self.inner.commit(&ChangelogOffsets::new())?,
            Bug::SecondCloseFails if !self.inner.is_open() => return Err(Error::new(ErrorKind::Closed, "closed")),
            Bug::SecondCloseFreesTheSuccessor => self.backend.close()?,
            _ => {}
        }
        if let Some(half) = self.pending(|pending| pending.half.take()) {
            let mut records = WriteBatch::new();
            half.records().for_each(|(key, value)| match value {
                Some(value) => records.put(key, value.clone()),
                None => records.delete(key),
            });
            self.backend.apply(&records)?;
        }
        if self.bug == Bug::PoisonedEngineStaysOpen && !self.inner.is_open() {
            return Ok(());
        }
        self.pending(|pending| pending.closed = true);
        self.inner.close()
    }
}
