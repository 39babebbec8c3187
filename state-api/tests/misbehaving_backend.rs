//! A store over a backend that breaks its contract keeps its own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use kstate_api::{
    Backend, Capabilities, ChangelogOffsets, Cursor, CursorExt, Error, ErrorKind, KeyRange, KeyValueStore, Offset,
    Order, Position, ReadOnlyKeyValueStore, ReadOnlyKeyValueStoreExt, Result, Row, Snapshot, StagedStore, StateStore,
    TopicPartition, WriteBatch,
};
use kstate_store_memory::MemoryBackend;

#[derive(Debug, Default)]
struct Misbehaving {
    below: MemoryBackend,
    panics: AtomicBool,
}

/// Fails at its second row, and looks complete after that.
#[derive(Debug)]
struct Forgetful {
    rows: Box<dyn Cursor>,
    steps: u32,
}

impl Cursor for Forgetful {
    fn advance(&mut self) -> Result<bool> {
        self.steps += 1;
        match self.steps {
            1 => self.rows.advance(),
            2 => Err(Error::new(ErrorKind::Io, "a bad block")),
            _ => Ok(false),
        }
    }

    fn row(&self) -> Option<Row<'_>> {
        self.rows.row()
    }
}

impl ReadOnlyKeyValueStore for Misbehaving {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.below.get_with(key, read)
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        Ok(Box::new(Forgetful { rows: self.below.scan(range, order)?, steps: 0 }))
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        self.below.approximate_num_entries()
    }
}

impl Backend for Misbehaving {
    fn capabilities(&self) -> Capabilities {
        self.below.capabilities()
    }

    fn apply(&self, batch: &WriteBatch) -> Result<()> {
        assert!(!self.panics.load(Ordering::Relaxed), "planted");
        self.below.apply(batch)
    }

    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.below.committed_offset(partition)
    }

    fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.below.durable_offset(partition)
    }

    fn position(&self) -> Result<Position> {
        self.below.position()
    }

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        self.below.snapshot()
    }

    fn flush(&self) -> Result<()> {
        self.below.flush()
    }

    fn wipe(&self) -> Result<()> {
        self.below.wipe()
    }

    fn close(&self) -> Result<()> {
        self.below.close()
    }
}

#[test]
fn o7_a_commit_that_panics_poisons_the_store() {
    let changelog = TopicPartition::new("changelog", 0);
    let store = StagedStore::open("counts", Misbehaving::default(), std::slice::from_ref(&changelog)).unwrap();
    store.put(b"a", b"1").unwrap();
    store.backend().panics.store(true, Ordering::Relaxed);
    let offsets = ChangelogOffsets::new().with(changelog, Offset::ZERO);
    catch_unwind(AssertUnwindSafe(|| store.commit(&offsets))).unwrap_err();

    store.backend().panics.store(false, Ordering::Relaxed);
    assert!(!store.is_open());
    assert_eq!(store.commit(&ChangelogOffsets::new()).unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(store.get(b"a").unwrap_err().kind(), ErrorKind::Poisoned);
    store.close().unwrap();
}

#[test]
fn r3_a_cursor_whose_backend_forgets_its_error_fails_for_good() {
    let store = StagedStore::open("counts", Misbehaving::default(), &[]).unwrap();
    for key in [b"a", b"b", b"c"] {
        store.put(key, b"1").unwrap();
    }
    store.commit(&ChangelogOffsets::new()).unwrap();
    let mut cursor = store.all().unwrap();
    assert!(cursor.next_row().unwrap().is_some());
    for _ in 0..3 {
        assert_eq!(cursor.next_row().unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(cursor.row(), None);
    }
}
