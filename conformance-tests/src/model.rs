//! What a store has to answer, foretold by sorted maps.

use std::{collections::BTreeMap, fs, sync::Arc};

use bytes::Bytes;
use kstate_api::{
    ChangelogOffsets, Cursor, CursorExt, ErrorKind, KeyValueStore, Offset, Order, ReadOnlyKeyValueStoreExt, Snapshot,
    TopicPartition, WriteBatch,
};

use crate::{
    Capability, CaseResult, Clause, Ctx, Operation, Violation,
    check::{Rows, dump, ensure_eq, ensure_kind, scan},
    ctx::{changelog, offset, other_changelog, other_source, source},
    operation::{Change, keys, range},
};

/// How many snapshots are kept.
const SNAPSHOTS: usize = 3;

type StaticRow = (&'static [u8], &'static [u8]);
type Map = BTreeMap<&'static [u8], &'static [u8]>;

/// What one commit left.
#[derive(Clone, Debug, Default)]
struct Committed {
    rows: Map,
    offsets: [Option<i64>; 2],
    position: [Option<i64>; 2],
}

/// What is staged over it.
#[derive(Clone, Debug, Default)]
struct Staged {
    rows: BTreeMap<&'static [u8], Option<&'static [u8]>>,
    position: [Option<i64>; 2],
}

impl Staged {
    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.position == [None; 2]
    }
}

/// Runs operations on a store, and on the model beside it.
struct Run<'c> {
    ctx: &'c Ctx,
    /// Not there only while it is reopened.
    store: Option<Arc<dyn KeyValueStore>>,
    committed: Committed,
    staged: Staged,
    snapshots: Vec<(Arc<dyn Snapshot>, Committed)>,
    /// The cursor, and the rows it still has to show.
    cursor: Option<(Box<dyn Cursor>, Vec<StaticRow>)>,
}

/// Runs `operations` on a new store of `ctx`, and on the model.
pub(crate) fn run(ctx: &Ctx, operations: &[Operation]) -> CaseResult {
    if ctx.directory().exists() {
        fs::remove_dir_all(ctx.directory())?;
    }
    let mut run = Run {
        ctx,
        store: Some(ctx.open()?),
        committed: Committed::default(),
        staged: Staged::default(),
        snapshots: Vec::new(),
        cursor: None,
    };
    for operation in operations {
        run.apply(operation)?;
        run.check(operation)?;
    }
    run.reopen(false)?;
    run.check(&Operation::Reopen)?;
    run.store()?.close()?;
    Ok(())
}

fn apply_changes(rows: &mut Map, changes: impl IntoIterator<Item = Change>) {
    for (key, value) in changes {
        match value {
            Some(value) => rows.insert(key, value),
            None => rows.remove(key),
        };
    }
}

/// Takes over what is there.
fn update(old: &mut [Option<i64>; 2], new: [Option<i64>; 2]) {
    for (old, new) in old.iter_mut().zip(new) {
        *old = new.or(*old);
    }
}

fn copies<'r>(rows: impl IntoIterator<Item = (&'r &'static [u8], &'r &'static [u8])>) -> Rows {
    rows.into_iter().map(|(key, value)| (Bytes::from_static(key), Bytes::from_static(value))).collect()
}

fn changelogs() -> [TopicPartition; 2] {
    [changelog(), other_changelog()]
}

fn sources() -> [TopicPartition; 2] {
    [source(), other_source()]
}

impl Run<'_> {
    fn store(&self) -> Result<&dyn KeyValueStore, Violation> {
        self.store.as_deref().ok_or_else(|| Violation::new("the suite itself has lost its store"))
    }

    /// What the owner sees.
    fn visible(&self) -> Map {
        let mut rows = self.committed.rows.clone();
        apply_changes(&mut rows, self.staged.rows.iter().map(|(key, value)| (*key, *value)));
        rows
    }

    fn apply(&mut self, operation: &Operation) -> CaseResult {
        match operation {
            Operation::Put(key, value) => {
                self.store()?.put(key, value)?;
                self.staged.rows.insert(key, Some(value));
            }
            Operation::Delete(key) => {
                self.store()?.delete(key)?;
                self.staged.rows.insert(key, None);
            }
            Operation::PutAll(changes) => {
                self.store()?.put_all(changes)?;
                self.staged.rows.extend(changes.iter().copied());
            }
            Operation::PutIfAbsent(key, value) => {
                let present = self.visible().get(key).copied();
                let seen = self.store()?.put_if_absent(key, value)?;
                ensure_eq!(seen, present.map(Bytes::from_static), "what {operation:?} found");
                if present.is_none() {
                    self.staged.rows.insert(key, Some(value));
                }
            }
            Operation::StagePosition(partition, next) => {
                let no_such = || Violation::new(format!("the suite itself has no source partition {partition}"));
                let source = sources().into_iter().nth(*partition).ok_or_else(no_such)?;
                self.store()?.stage_position(&source, offset(*next).into())?;
                *self.staged.position.get_mut(*partition).ok_or_else(no_such)? = Some(*next);
            }
            Operation::Commit(first, second) => self.commit([*first, *second])?,
            Operation::Rollback => {
                self.store()?.rollback()?;
                self.staged = Staged::default();
            }
            Operation::Restore(changes, last, forget) => self.restore(changes, *last, *forget)?,
            Operation::ForgetOffsets => {
                self.store()?.forget_offsets()?;
                self.committed.offsets = [None; 2];
                self.committed.position = [None; 2];
            }
            Operation::Wipe => {
                self.store()?.wipe()?;
                self.committed = Committed::default();
                self.staged = Staged::default();
            }
            Operation::Flush => self.store()?.flush()?,
            Operation::Reopen => self.reopen(false)?,
            Operation::DropAndReopen => self.reopen(true)?,
            Operation::Snapshot if self.ctx.declares(Capability::Snapshots) => {
                if self.snapshots.len() == SNAPSHOTS {
                    self.snapshots.remove(0);
                }
                self.snapshots.push((self.store()?.snapshot()?, self.committed.clone()));
            }
            Operation::Snapshot => {}
            Operation::ReadSnapshot(n) => self.read_snapshot(*n)?,
            Operation::Scan(start, end, order) => {
                if self.can_scan(*order) {
                    let range = range(start, end);
                    let mut expected = copies(self.visible().iter().filter(|(key, _)| range.contains(key)));
                    if *order == Order::Descending {
                        expected.reverse();
                    }
                    let seen = scan(self.store()?, &range, *order)?;
                    let differs = || format!("the rows of {operation:?}: expected {expected:?}, saw {seen:?}");
                    if seen != expected {
                        return Err(Violation::new(differs()).of(Clause::R1));
                    }
                }
            }
            Operation::OpenCursor(order) => {
                if self.can_scan(*order) {
                    let mut rows: Vec<_> = self.visible().into_iter().collect();
                    // The next one is taken from the end.
                    if *order == Order::Ascending {
                        rows.reverse();
                    }
                    self.cursor = Some((self.store()?.scan(&kstate_api::KeyRange::all(), *order)?, rows));
                }
            }
            Operation::StepCursor(steps) => self.step_cursor(*steps).map_err(|violation| violation.of(Clause::R3))?,
        }
        Ok(())
    }

    fn can_scan(&self, order: Order) -> bool {
        order == Order::Ascending || self.ctx.declares(Capability::ReverseScan)
    }

    fn commit(&mut self, last: [Option<i64>; 2]) -> CaseResult {
        let offsets: ChangelogOffsets = changelogs()
            .into_iter()
            .zip(last)
            .filter_map(|(partition, last)| Some((partition, offset(last?))))
            .collect();
        self.store()?.commit(&offsets)?;
        let staged = std::mem::take(&mut self.staged);
        apply_changes(&mut self.committed.rows, staged.rows);
        update(&mut self.committed.offsets, last);
        update(&mut self.committed.position, staged.position);
        Ok(())
    }

    fn restore(&mut self, changes: &[Change], last: i64, forget: bool) -> CaseResult {
        let mut batch = WriteBatch::new();
        for (key, value) in changes {
            match value {
                Some(value) => batch.put(*key, *value),
                None => batch.delete(*key),
            }
        }
        batch.set_offset(changelog(), offset(last));
        if forget {
            batch.forget_offsets();
        }
        let restored = self.store()?.restore(&batch);
        if !self.staged.is_empty() {
            ensure_kind(restored, ErrorKind::InvalidArgument, "a restore over staged writes")?;
            return Ok(());
        }
        restored?;
        apply_changes(&mut self.committed.rows, changes.iter().copied());
        if forget {
            self.committed.offsets = [None; 2];
            self.committed.position = [None; 2];
        }
        update(&mut self.committed.offsets, [Some(last), None]);
        Ok(())
    }

    fn reopen(&mut self, by_drop: bool) -> CaseResult {
        if !by_drop {
            self.store()?.close()?;
        }
        drop(self.store.take());
        for (snapshot, _) in self.snapshots.drain(..) {
            ensure_kind(snapshot.get(b"a"), ErrorKind::Closed, "a get from a snapshot after the close")?;
        }
        if let Some((mut cursor, _)) = self.cursor.take() {
            ensure_kind(cursor.advance(), ErrorKind::Closed, "a step of a cursor after the close")?;
        }
        self.store = Some(self.ctx.open()?);
        self.staged = Staged::default();
        if !self.ctx.declares(Capability::Persistent) {
            self.committed = Committed::default();
        }
        Ok(())
    }

    fn read_snapshot(&self, n: usize) -> CaseResult {
        if let Some((snapshot, committed)) = self.snapshots.get(n) {
            let seen = dump(snapshot)?;
            let expected = copies(&committed.rows);
            if seen != expected {
                let message = format!("the rows of snapshot {n}: expected {expected:?}, saw {seen:?}");
                return Err(Violation::new(message).of(Clause::R2));
            }
            if self.ctx.declares(Capability::ManagesOffsets) {
                for (partition, last) in changelogs().iter().zip(committed.offsets) {
                    let seen = snapshot.committed_offset(partition)?.map(Offset::get);
                    ensure_eq!(seen, last, "the offset of {partition} in snapshot {n}");
                }
            }
        }
        Ok(())
    }

    fn step_cursor(&mut self, steps: usize) -> CaseResult {
        if let Some((cursor, rows)) = &mut self.cursor {
            for _ in 0..steps {
                ensure_eq!(cursor.next_row()?, rows.pop(), "the next row of the open cursor");
            }
        }
        Ok(())
    }

    /// Compares all that the store answers with the model.
    fn check(&self, after: &Operation) -> CaseResult {
        let store = self.store()?;
        let visible = self.visible();
        let (seen, expected) = (dump(store)?, copies(&visible));
        if seen != expected {
            let message = format!("the owner's rows after {after:?}: expected {expected:?}, saw {seen:?}");
            return Err(Violation::new(message).of(Clause::R2));
        }
        for key in keys() {
            let expected = visible.get(key).copied().map(Bytes::from_static);
            ensure_eq!(store.get(key)?, expected, "the value of {key:?} after {after:?}");
        }
        let mut changes = Vec::new();
        store.staged_changes(&mut |key, value| {
            changes.push((key.to_vec(), value.map(<[u8]>::to_vec)));
            Ok(())
        })?;
        let staged = self.staged.rows.iter();
        let staged: Vec<_> = staged.map(|(key, value)| (key.to_vec(), value.map(<[u8]>::to_vec))).collect();
        ensure_eq!(changes, staged, "the staged changes after {after:?}");
        ensure_eq!(store.uncommitted_bytes() == 0, staged.is_empty(), "whether nothing counts after {after:?}");
        if self.ctx.declares(Capability::ManagesOffsets) {
            for (partition, last) in changelogs().iter().zip(self.committed.offsets) {
                let seen = store.committed_offset(partition)?.map(Offset::get);
                ensure_eq!(seen, last, "the offset of {partition} after {after:?}");
            }
            let position = store.position()?;
            for (partition, next) in sources().iter().zip(self.committed.position) {
                let seen = position.next(partition).map(Offset::get);
                ensure_eq!(seen, next, "the position of {partition} after {after:?}");
            }
        }
        Ok(())
    }
}
