use std::collections::BTreeSet;

use kstate_api::{Bytes, ChangelogOffsets, Error, ErrorKind, Offset, Position, Result, TopicPartition};

use crate::{ChangelogRecord, LoggedStore, Task, encode_source_position, unsettled::Unsettled};

/// What a checkpoint is about to write to the changelog of one store, and what became of it.
pub(crate) struct Changes<'t> {
    logged: &'t LoggedStore,
    /// The part of the checkpoint's position that is about the store's task.
    position: Position,
    header: Vec<u8>,
    /// Committed values that supersede records of a checkpoint that failed (clause P3).
    healed: Vec<(Bytes, Option<Bytes>)>,
}

impl<'t> Changes<'t> {
    /// The changes of every store of `tasks`, for a checkpoint at `position`.
    pub(crate) fn of_all(tasks: &'t [Task], position: &Position) -> Result<Vec<Self>> {
        let mut all = Vec::new();
        for task in tasks {
            for logged in task.stores() {
                all.push(Self::of(logged, task.position_in(position))?);
            }
        }
        Ok(all)
    }

    fn of(logged: &'t LoggedStore, position: Position) -> Result<Self> {
        let header = encode_source_position(&position)?;
        let mut changes = Self { logged, position, header, healed: Vec::new() };
        let unsettled = logged.unsettled();
        if unsettled.owed.is_empty() && unsettled.uncommitted.is_empty() {
            return Ok(changes);
        }
        let staged = changes.staged_keys()?;
        if !unsettled.owed.is_subset(&staged) {
            let message = "changes that the group may have committed were rolled back after a checkpoint that failed; \
                           restore the store from its changelog";
            return Err(Error::new(ErrorKind::Poisoned, message).with_store(logged.store().name()));
        }
        for key in unsettled.uncommitted.difference(&staged) {
            changes.healed.push((key.clone(), logged.store().committed_value(key)?));
        }
        Ok(changes)
    }

    /// What of `offsets` is of their changelog.
    pub(crate) fn acknowledged(&self, offsets: &ChangelogOffsets) -> Option<(TopicPartition, Offset)> {
        let changelog = self.logged.changelog();
        Some((changelog.clone(), offsets.get(changelog)?))
    }

    /// Calls `visit` with each record to write.
    pub(crate) fn visit(&self, visit: &mut dyn FnMut(&LoggedStore, ChangelogRecord<'_>) -> Result<()>) -> Result<()> {
        let store = self.logged.store();
        let mut visit = |key: &[u8], value: Option<&[u8]>| {
            let record = ChangelogRecord { key: Some(key), value, source_position: Some(&self.header) };
            visit(self.logged, record).map_err(|error| error.with_store(store.name()))
        };
        self.healed.iter().try_for_each(|(key, value)| visit(key, value.as_deref()))?;
        store.staged_changes(&mut visit)
    }

    /// Commits the store with what was acknowledged of its changelog.
    pub(crate) fn commit(&self, acknowledged: &ChangelogOffsets) -> Result<()> {
        let store = self.logged.store();
        for (source, position) in self.position.iter() {
            store.stage_position(source, position.clone())?;
        }
        store.commit(&self.acknowledged(acknowledged).into_iter().collect()).inspect_err(|_| self.are_owed())?;
        *self.logged.unsettled() = Unsettled::default();
        Ok(())
    }

    /// Notes that some of the changes may be in the changelog, and that the group has not committed them.
    pub(crate) fn are_uncommitted(&self) {
        // A store that does not tell is closed or poisoned: it is of no use before a restore, which finds out itself.
        if let Ok(staged) = self.staged_keys() {
            self.logged.unsettled().uncommitted.extend(staged);
        }
    }

    /// Notes that the changes are in the changelog, and that the group has committed them or may have.
    pub(crate) fn are_owed(&self) {
        if let Ok(staged) = self.staged_keys() {
            self.logged.unsettled().owed.extend(staged);
        }
    }

    fn staged_keys(&self) -> Result<BTreeSet<Bytes>> {
        let mut keys = BTreeSet::new();
        self.logged.store().staged_changes(&mut |key, _| {
            keys.insert(Bytes::copy_from_slice(key));
            Ok(())
        })?;
        Ok(keys)
    }
}
