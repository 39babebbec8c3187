//! Two stores in lock step: nothing differs when nothing differs, and each planted difference is seen.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::{
    error::Error as _,
    path::Path,
    sync::{Arc, Mutex},
};

use kstate_api::{
    Backend, Bytes, Capabilities, ChangelogOffsets, CommitOutcome, Cursor, CursorExt, EmptyCursor, Error, ErrorKind,
    KeyRange, KeyValueStore, Offset, Order, Position, ReadOnlyKeyValueStore, ReadOnlyKeyValueStoreExt, Result, Row,
    Snapshot, StagedStore, StateStore, TopicPartition, WriteBatch,
};
use kstate_conformance_tests::{Compare, Faults, Faulty, Harness, Mismatch, StepFault, conformance_tests};
use kstate_store_memory::MemoryBackend;

fn changelog() -> TopicPartition {
    TopicPartition::new("counts-changelog", 0)
}

fn source() -> TopicPartition {
    TopicPartition::new("lines", 0)
}

fn offset(value: i64) -> Offset {
    Offset::new(value).unwrap()
}

fn at(value: i64) -> ChangelogOffsets {
    ChangelogOffsets::new().with(changelog(), offset(value))
}

type Memory = StagedStore<MemoryBackend>;

fn memory(partitions: &[TopicPartition]) -> Result<Memory> {
    StagedStore::open("counts", MemoryBackend::new(), partitions)
}

struct CompareHarness;

impl Harness for CompareHarness {
    type Store = Compare<Memory, Memory>;

    fn open(&self, _: &Path, partitions: &[TopicPartition]) -> Result<Self::Store> {
        Compare::new(memory(partitions)?, memory(partitions)?)
    }
}

mod suite {
    use super::*;

    conformance_tests! {
        harness: CompareHarness,
        persistent: false,
        manages_offsets: true,
        durable_commit: false,
        synced_commit: false,
        snapshots: true,
        reverse_scan: true,
        long_keys: true,
        multi_process_lock: false,
        closed_offsets: false,
        faults: false,
    }
}

/// One difference of a backend from a good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Difference {
    None,
    ValueIsAnother,
    ValueIsMissing,
    LastRowIsMissing,
    RowsComeTwice,
    DescendingAscends,
    CursorFails,
    CursorKeepsItsRow,
    DeleteIsLost,
    EmptyValueIsLost,
    OffsetIsTheNext,
    PositionIsLost,
    WipeKeepsOffsets,
    ForgettingIsLost,
    SnapshotIsEmpty,
    SnapshotHasNoOffset,
    SnapshotHasNoPosition,
    CommitIsRefused,
    CommitIsLost,
    FlushFails,
    CloseFails,
    ScanIsUnsupported,
}

#[derive(Debug)]
struct Different {
    backend: MemoryBackend,
    difference: Difference,
}

#[derive(Debug)]
struct DifferentCursor {
    cursor: Box<dyn Cursor>,
    difference: Difference,
    last: Option<(Bytes, Bytes)>,
    repeated: bool,
}

impl Cursor for DifferentCursor {
    fn advance(&mut self) -> Result<bool> {
        match self.difference {
            Difference::RowsComeTwice if self.cursor.row().is_some() && !self.repeated => {
                self.repeated = true;
                return Ok(true);
            }
            Difference::CursorFails if self.cursor.row().is_some() => {
                return Err(Error::new(ErrorKind::Io, "the cursor fails"));
            }
            _ => self.repeated = false,
        }
        if let Some((key, value)) = self.cursor.row() {
            self.last = Some((Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
        }
        let more = self.cursor.advance()?;
        let is_last = more && self.cursor.row().is_some_and(|(key, _)| key == b"c");
        Ok(more && !(is_last && self.difference == Difference::LastRowIsMissing))
    }

    fn row(&self) -> Option<Row<'_>> {
        match self.difference {
            Difference::CursorKeepsItsRow if self.cursor.row().is_none() => {
                self.last.as_ref().map(|(key, value)| (&**key, &**value))
            }
            Difference::LastRowIsMissing => self.cursor.row().filter(|(key, _)| *key != b"c"),
            _ => self.cursor.row(),
        }
    }
}

impl ReadOnlyKeyValueStore for Different {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        match self.difference {
            Difference::ValueIsAnother => self.backend.get_with(key, &mut |_| read(b"another")),
            Difference::ValueIsMissing => self.backend.get_with(key, &mut |_| {}).map(|_| false),
            _ => self.backend.get_with(key, read),
        }
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        let order = if self.difference == Difference::DescendingAscends { Order::Ascending } else { order };
        if self.difference == Difference::ScanIsUnsupported {
            return Err(Error::new(ErrorKind::Unsupported, "no scans"));
        }
        let cursor = self.backend.scan(range, order)?;
        Ok(Box::new(DifferentCursor { cursor, difference: self.difference, last: None, repeated: false }))
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        self.backend.approximate_num_entries()
    }
}

/// A snapshot without rows, without an offset, or both.
#[derive(Debug)]
struct DifferentSnapshot(Arc<dyn Snapshot>, Difference);

impl ReadOnlyKeyValueStore for DifferentSnapshot {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        if self.1 == Difference::SnapshotIsEmpty { Ok(false) } else { self.0.get_with(key, read) }
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        if self.1 == Difference::SnapshotIsEmpty {
            return Ok(Box::new(EmptyCursor));
        }
        let cursor = self.0.scan(range, order)?;
        Ok(Box::new(DifferentCursor { cursor, difference: self.1, last: None, repeated: false }))
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        self.0.approximate_num_entries()
    }
}

impl Snapshot for DifferentSnapshot {
    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        if self.1 == Difference::SnapshotHasNoOffset { Ok(None) } else { self.0.committed_offset(partition) }
    }

    fn position(&self) -> Result<Position> {
        if self.1 == Difference::SnapshotHasNoPosition { Ok(Position::new()) } else { self.0.position() }
    }
}

impl Backend for Different {
    fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    fn apply(&self, batch: &WriteBatch) -> Result<()> {
        let failed = |outcome| Err(Error::new(ErrorKind::Io, "the commit fails").with_commit_outcome(outcome));
        match self.difference {
            Difference::CommitIsRefused => return failed(CommitOutcome::NotApplied),
            Difference::CommitIsLost => return failed(CommitOutcome::Unknown),
            Difference::ForgettingIsLost if batch.forgets_offsets() => return Ok(()),
            _ => {}
        }
        let mut applied = WriteBatch::new();
        for (key, value) in batch.records() {
            let key = Bytes::copy_from_slice(key);
            match value.map(|value| Bytes::copy_from_slice(value.as_ref())) {
                Some(value) if value.is_empty() && self.difference == Difference::EmptyValueIsLost => {}
                Some(value) => applied.put(key, value),
                None if self.difference == Difference::DeleteIsLost => {}
                None => applied.delete(key),
            }
        }
        for (partition, offset) in batch.offsets().iter() {
            let next = self.difference == Difference::OffsetIsTheNext;
            applied.set_offset(partition.clone(), if next { offset.next() } else { offset });
        }
        for (partition, next) in batch.position().iter().filter(|_| self.difference != Difference::PositionIsLost) {
            applied.set_position(partition.clone(), next.clone());
        }
        if batch.forgets_offsets() {
            applied.forget_offsets();
        }
        self.backend.apply(&applied)
    }

    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.backend.committed_offset(partition)
    }

    fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.backend.durable_offset(partition)
    }

    fn position(&self) -> Result<Position> {
        self.backend.position()
    }

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        Ok(Arc::new(DifferentSnapshot(self.backend.snapshot()?, self.difference)))
    }

    fn flush(&self) -> Result<()> {
        match self.difference {
            Difference::FlushFails => Err(Error::new(ErrorKind::DiskFull, "the flush fails")),
            _ => self.backend.flush(),
        }
    }

    fn wipe(&self) -> Result<()> {
        let kept = self.backend.committed_offset(&changelog())?;
        self.backend.wipe()?;
        let mut batch = WriteBatch::new();
        if let Some(kept) = kept.filter(|_| self.difference == Difference::WipeKeepsOffsets) {
            batch.set_offset(changelog(), kept);
        }
        self.backend.apply(&batch)
    }

    fn close(&self) -> Result<()> {
        self.backend.close()?;
        match self.difference {
            Difference::CloseFails => Err(Error::new(ErrorKind::Io, "the close fails")),
            _ => Ok(()),
        }
    }
}

fn pair(difference: Difference) -> Compare<Memory, StagedStore<Different>> {
    let backend = Different { backend: MemoryBackend::new(), difference };
    let candidate = StagedStore::open("counts", backend, &[changelog()]).unwrap();
    Compare::new(memory(&[changelog()]).unwrap(), candidate).unwrap()
}

/// What an application does in its life.
fn use_store(store: &dyn KeyValueStore) -> Result<()> {
    store.put_all(&[(b"a", Some(b"1")), (b"b", Some(b"")), (b"c", Some(b"3")), (b"d", Some(b"4"))])?;
    store.commit(&at(0))?;
    store.delete(b"d")?;
    store.stage_position(&source(), offset(7).into())?;
    store.commit(&at(1))?;
    store.get(b"a")?;
    store.put_if_absent(b"a", b"2")?;
    store.put(b"e", b"5")?;
    store.rollback()?;
    for order in [Order::Ascending, Order::Descending] {
        let mut rows = store.scan(&KeyRange::all(), order)?;
        while rows.advance()? {}
    }
    let snapshot = store.snapshot()?;
    snapshot.get(b"a")?;
    snapshot.committed_offset(&changelog())?;
    snapshot.position()?;
    snapshot.all()?.entries().try_for_each(|row| row.map(drop))?;
    store.flush()?;
    store.forget_offsets()?;
    store.commit(&at(3))?;
    store.wipe()?;
    store.close()
}

fn mismatch(error: &Error) -> Mismatch {
    error.source().and_then(|source| source.downcast_ref()).cloned().unwrap_or_else(|| panic!("no mismatch: {error:?}"))
}

#[test]
fn each_difference_is_seen_where_it_shows() {
    use Difference as D;
    let differences = [
        (D::ValueIsAnother, r#"get_with(b"a")"#, r#"Some(b"1")"#, r#"Some(b"another")"#),
        (D::ValueIsMissing, r#"get_with(b"a")"#, r#"Some(b"1")"#, "None"),
        (D::LastRowIsMissing, "Ascending", r#"Some((b"c", b"3"))"#, "None"),
        (D::RowsComeTwice, "Ascending", r#"Some((b"b", b""))"#, r#"Some((b"a", b"1"))"#),
        (D::DescendingAscends, "Descending", r#"Some((b"c", b"3"))"#, r#"Some((b"a", b"1"))"#),
        (D::CursorFails, "Ascending", r#"Some((b"b", b""))"#, "Io"),
        (D::CursorKeepsItsRow, "Ascending", "None", "Corrupted (the cursor ended, but has a row)"),
        (D::DeleteIsLost, "Ascending", "None", r#"Some((b"d", b"4"))"#),
        (D::EmptyValueIsLost, "Ascending", r#"Some((b"b", b""))"#, r#"Some((b"c", b"3"))"#),
        (D::OffsetIsTheNext, "committed_offset(counts-changelog-0)", "Some(Offset(0))", "Some(Offset(1))"),
        (D::PositionIsLost, "position()", "Offset(7)", "Position({})"),
        (D::WipeKeepsOffsets, "committed_offset(counts-changelog-0)", "None", "Some(Offset(3))"),
        (D::ForgettingIsLost, "committed_offset(counts-changelog-0)", "None", "Some(Offset(1))"),
        (D::SnapshotIsEmpty, r#"get_with(b"a")"#, r#"Some(b"1")"#, "None"),
        (D::SnapshotHasNoOffset, "of a snapshot", "Some(Offset(1))", "None"),
        (D::SnapshotHasNoPosition, "position() of a snapshot", "Offset(7)", "Position({})"),
        (D::CommitIsRefused, "commit(", "()", "Io, NotApplied"),
        (D::CommitIsLost, "commit(", "()", "Io, Unknown"),
        (D::FlushFails, "flush()", "()", "DiskFull"),
        (D::CloseFails, "close()", "()", "Io"),
        (D::ScanIsUnsupported, "scan(", "Cursor", "Unsupported"),
    ];
    for (difference, call, trusted, candidate) in differences {
        let store = pair(difference);
        let error = use_store(&store).expect_err(&format!("{difference:?} was not seen"));
        assert_eq!(error.kind(), ErrorKind::Corrupted, "{difference:?}: {error}");
        assert_eq!(error.store(), Some("counts"), "{difference:?}");
        let seen = mismatch(&error);
        assert!(seen.call().contains(call), "{difference:?}: {seen}");
        assert!(seen.trusted().contains(trusted), "{difference:?}: {seen}");
        assert!(seen.candidate().contains(candidate), "{difference:?}: {seen}");
    }
    use_store(&pair(D::None)).unwrap();
}

#[test]
fn after_a_difference_the_pair_is_poisoned_until_it_is_closed() {
    let store = pair(Difference::OffsetIsTheNext);
    store.put(b"a", b"1").unwrap();
    let mut before = store.all().unwrap();
    assert!(before.advance().unwrap());
    let error = store.commit(&at(0)).unwrap_err();
    assert_eq!(error.commit_outcome(), Some(CommitOutcome::Unknown));
    assert!(!store.is_open());
    for error in [
        store.get(b"a").unwrap_err(),
        store.put(b"a", b"1").unwrap_err(),
        store.all().unwrap_err(),
        store.position().unwrap_err(),
        before.advance().unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
        assert!(mismatch(&error).call().contains("committed_offset"), "{error}");
    }
    assert_eq!(before.row(), None);
    let refused = store.commit(&at(1)).unwrap_err();
    assert_eq!((refused.kind(), refused.commit_outcome()), (ErrorKind::Poisoned, Some(CommitOutcome::NotApplied)));
    store.close().unwrap();
    assert_eq!(store.get(b"a").unwrap_err().kind(), ErrorKind::Closed);
    assert!(!store.trusted().is_open() && !store.candidate().is_open());
}

#[test]
fn a_difference_that_is_reported_does_no_harm() {
    let reported = Arc::new(Mutex::new(Vec::new()));
    let report = Arc::clone(&reported);
    let store =
        pair(Difference::LastRowIsMissing).report_to(move |mismatch| report.lock().unwrap().push(mismatch.clone()));
    store.put_all(&[(b"a", Some(b"1")), (b"c", Some(b"3")), (b"d", Some(b"4"))]).unwrap();
    store.commit(&at(0)).unwrap();
    let keys: Vec<_> = store.all().unwrap().entries().map(|row| row.unwrap().0).collect();
    assert_eq!(keys, ["a", "c", "d"], "the trusted store's rows");
    assert_eq!(reported.lock().unwrap().len(), 1, "once for a scan: {reported:?}");
    assert_eq!(store.get(b"c").unwrap().unwrap(), "3");
    assert!(store.is_open());
    store.close().unwrap();
    assert_eq!(reported.lock().unwrap().len(), 1, "{reported:?}");

    // Not even one that fails at every commit.
    let store = pair(Difference::CommitIsLost).report_to(|_| {});
    for n in 0..3 {
        store.put(b"a", b"1").unwrap();
        store.commit(&at(n)).unwrap();
    }
    assert_eq!(store.committed_offset(&changelog()).unwrap(), Some(offset(2)));
    assert_eq!(store.get(b"a").unwrap().unwrap(), "1");
}

#[test]
fn staged_changes_are_compared_before_they_are_shown() {
    let (trusted, candidate) = (memory(&[]).unwrap(), memory(&[]).unwrap());
    trusted.put(b"a", b"1").unwrap();
    candidate.put(b"a", b"1").unwrap();
    let store = Compare::new(trusted, candidate).unwrap();
    let mut shown = 0;
    store
        .staged_changes(&mut |_, _| {
            shown += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(shown, 1);
    let stop = store.staged_changes(&mut |_, _| Err(Error::new(ErrorKind::Unavailable, "no broker")));
    assert_eq!(stop.unwrap_err().kind(), ErrorKind::Unavailable, "a visitor's error is no difference");
    store.candidate().delete(b"b").unwrap();
    let seen = store.staged_changes(&mut |_, _| panic!("shown")).unwrap_err();
    assert!(mismatch(&seen).call().starts_with("staged_changes"), "{seen}");
}

#[test]
fn errors_are_compared_by_kind_and_by_outcome() {
    let faults = Faults::new();
    let trusted = Faulty::new(memory(&[]).unwrap(), faults.clone());
    let store = Compare::new(trusted, memory(&[]).unwrap()).unwrap();
    let long = vec![0; 2 << 20];
    assert_eq!(store.put(&long, b"").unwrap_err().kind(), ErrorKind::InvalidArgument, "both refuse it");
    store.candidate().close().unwrap();
    faults.fail_next_read();
    let seen = mismatch(&store.get(b"a").unwrap_err());
    assert!(seen.trusted().starts_with("Io (") && seen.candidate().starts_with("Closed ("), "{seen}");

    let faults = Faults::new();
    let backend = Different { backend: MemoryBackend::new(), difference: Difference::CommitIsLost };
    let trusted = Faulty::new(memory(&[changelog()]).unwrap(), faults.clone());
    let store = Compare::new(trusted, StagedStore::open("counts", backend, &[changelog()]).unwrap()).unwrap();
    faults.fail_next_step(StepFault::Refused);
    let error = store.commit(&at(0)).unwrap_err();
    assert_eq!(error.commit_outcome(), Some(CommitOutcome::Unknown), "one of the two may have it");
    let seen = mismatch(&error);
    assert!(seen.trusted().contains("NotApplied") && seen.candidate().contains("Unknown"), "{seen}");
}

#[test]
fn a_write_that_only_one_has_staged_is_seen_in_the_bytes() {
    let store = pair(Difference::None);
    store.candidate().put(b"a", b"1").unwrap();
    assert_eq!(store.uncommitted_bytes(), 0, "as in the trusted store");
    assert_eq!(store.get(b"b").unwrap_err().kind(), ErrorKind::Poisoned);
}

#[test]
fn what_differs_from_the_start_is_refused() {
    let owner = |partitions: &[TopicPartition]| memory(partitions).unwrap();
    let refused = Compare::new(owner(&[changelog()]), owner(&[])).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Config);
    assert!(refused.to_string().contains("counts-changelog-0"), "{refused}");
    let (ahead, behind) = (owner(&[changelog()]), owner(&[changelog()]));
    ahead.commit(&at(5)).unwrap();
    let refused = Compare::new(ahead, behind).unwrap_err();
    assert_eq!(mismatch(&refused).trusted(), "Some(Offset(5))");
    // Rows are compared when asked for.
    let (one, two) = (owner(&[]), owner(&[]));
    one.put(b"a", b"1").unwrap();
    let store = Compare::new(one, two).unwrap();
    assert!(mismatch(&store.compare_rows().unwrap_err()).call().contains("Ascending"));
}

#[test]
fn nothing_is_compared_with_a_trusted_store_that_cannot_tell() {
    let faults = Faults::new();
    let trusted = Faulty::new(memory(&[changelog()]).unwrap(), faults.clone());
    let store = Compare::new(trusted, memory(&[changelog()]).unwrap()).unwrap();
    store.put(b"a", b"1").unwrap();
    faults.fail_next_step(StepFault::LostAfter);
    let lost = store.commit(&at(1)).unwrap_err();
    assert_eq!((lost.kind(), lost.commit_outcome()), (ErrorKind::Io, Some(CommitOutcome::Unknown)));
    let poisoned = store.get(b"a").unwrap_err();
    assert!(poisoned.kind() == ErrorKind::Poisoned && poisoned.source().is_none(), "{poisoned}");
    assert!(!store.is_open());
    store.close().unwrap();
    // One that was refused on one side only is a difference.
    let faults = Faults::new();
    let trusted = Faulty::new(memory(&[changelog()]).unwrap(), faults.clone());
    let store = Compare::new(trusted, memory(&[changelog()]).unwrap()).unwrap();
    faults.fail_next_step(StepFault::Refused);
    assert!(mismatch(&store.commit(&at(1)).unwrap_err()).trusted().contains("NotApplied"));
}
