//! What is particular to this backend; the contract is proven by the conformance suite.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeSet,
    ops::Bound,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use kstate_api::{
    Backend, BackendSupplier, Bytes, CommitOutcome, CursorExt, ErrorKind, KeyRange, Offset, Order,
    ReadOnlyKeyValueStore, ReadOnlyKeyValueStoreExt, TopicPartition, WriteBatch,
};
use kstate_store_memory::{MemoryBackend, MemoryBackends};

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

fn numbered(rows: impl IntoIterator<Item = u32>, value: &'static str) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for n in rows {
        batch.put(Bytes::copy_from_slice(&key(n)), value);
    }
    batch
}

/// Cursors take rows in chunks of 8 to 64: every range around the joints, both ways, against a plain map.
#[test]
fn scans_across_chunks_miss_nothing_and_repeat_nothing() {
    let backend = MemoryBackend::new();
    backend.apply(&numbered(0..300, "v")).unwrap();
    let model: BTreeSet<Vec<u8>> = (0..300).map(|n| key(n).to_vec()).collect();
    let ends = [0, 1, 7, 8, 9, 23, 24, 25, 55, 56, 57, 119, 120, 121, 183, 184, 185, 298, 299, 300];
    for start in ends {
        for end in ends {
            let (start, end) = (key(start), key(end));
            let starts = [Bound::Included(&start[..]), Bound::Excluded(&start[..]), Bound::Unbounded];
            let last = [Bound::Included(&end[..]), Bound::Excluded(&end[..]), Bound::Unbounded];
            for bounds in starts.into_iter().flat_map(|start| last.map(|end| (start, end))) {
                let range = KeyRange::new(bounds.0, bounds.1);
                let mut expected: Vec<_> = model.iter().filter(|key| range.contains(key)).cloned().collect();
                for order in [Order::Ascending, Order::Descending] {
                    let rows = backend.scan(&range, order).unwrap().entries();
                    let keys: Vec<_> = rows.map(|row| row.unwrap().0.to_vec()).collect();
                    assert_eq!(keys, expected, "{range:?} {order:?}");
                    expected.reverse();
                }
            }
        }
    }
}

#[test]
fn a_snapshot_and_a_cursor_keep_their_commit() {
    let backend = MemoryBackend::new();
    let changelog = TopicPartition::new("changelog", 0);
    let mut batch = numbered(0..100, "old");
    batch.set_offset(changelog.clone(), Offset::ZERO);
    backend.apply(&batch).unwrap();
    let (snapshot, mut cursor) = (backend.snapshot().unwrap(), backend.all().unwrap());
    assert!(cursor.advance().unwrap());

    let mut batch = numbered(50..150, "new");
    (0..50).for_each(|n| batch.delete(Bytes::copy_from_slice(&key(n))));
    batch.set_offset(changelog.clone(), Offset::MAX);
    batch.set_position(TopicPartition::new("source", 0), Offset::ZERO);
    backend.apply(&batch).unwrap();
    assert_eq!(backend.committed_offset(&changelog).unwrap(), Some(Offset::MAX));
    assert_eq!(backend.approximate_num_entries().unwrap(), 100);
    backend.wipe().unwrap();
    assert_eq!(backend.all().unwrap().entries().count(), 0);
    assert_eq!(backend.committed_offset(&changelog).unwrap(), None);
    assert!(backend.position().unwrap().is_empty());

    assert_eq!(snapshot.committed_offset(&changelog).unwrap(), Some(Offset::ZERO));
    assert!(snapshot.position().unwrap().is_empty());
    assert_eq!(snapshot.get(&key(0)).unwrap().unwrap(), "old");
    assert_eq!(snapshot.approximate_num_entries().unwrap(), 100);
    let rows: Vec<_> = cursor.entries().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 99);
    assert!(rows.iter().all(|(_, value)| value == "old"));
}

#[test]
fn what_was_taken_before_the_close_is_closed_too() {
    for drop_it in [false, true] {
        let backend = MemoryBackend::new();
        backend.apply(&numbered(0..10, "v")).unwrap();
        let (snapshot, mut started, mut fresh) =
            (backend.snapshot().unwrap(), backend.all().unwrap(), backend.all().unwrap());
        assert!(started.advance().unwrap());
        if drop_it {
            drop(backend);
        } else {
            backend.close().unwrap();
            backend.close().unwrap();
            assert_eq!(backend.get(&key(0)).unwrap_err().kind(), ErrorKind::Closed);
            let refused = backend.apply(&numbered(0..1, "w")).unwrap_err();
            assert_eq!(
                (refused.kind(), refused.commit_outcome()),
                (ErrorKind::Closed, Some(CommitOutcome::NotApplied))
            );
            assert_eq!(backend.flush().unwrap_err().kind(), ErrorKind::Closed);
            assert_eq!(backend.durable_offset(&TopicPartition::new("c", 0)).unwrap_err().kind(), ErrorKind::Closed);
        }
        for _ in 0..2 {
            assert_eq!(started.advance().unwrap_err().kind(), ErrorKind::Closed);
            assert_eq!(fresh.advance().unwrap_err().kind(), ErrorKind::Closed);
        }
        assert!(started.row().is_none());
        assert_eq!(snapshot.get(&key(0)).unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(snapshot.all().unwrap_err().kind(), ErrorKind::Closed);
    }
}

/// Two threads apply against the rules; no commit may be lost, and readers see whole ones all the same.
#[test]
fn readers_see_whole_commits() {
    let backend = Arc::new(MemoryBackend::new());
    backend.apply(&numbered(0..40, "first")).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let writers = [1, 2].map(|writer| {
        let backend = Arc::clone(&backend);
        thread::spawn(move || {
            for n in 0..200 {
                let value = Bytes::from(format!("{writer}-{n}"));
                let mut batch = WriteBatch::new();
                (0..40).for_each(|n| batch.put(Bytes::copy_from_slice(&key(n)), value.clone()));
                batch.put(Bytes::copy_from_slice(&key(1000 * writer + n)), "its own");
                backend.apply(&batch).unwrap();
            }
        })
    });
    let reader = {
        let (backend, done) = (Arc::clone(&backend), Arc::clone(&done));
        thread::spawn(move || {
            while !done.load(Ordering::Acquire) {
                let shared = backend.range(&key(0), &key(39)).unwrap();
                let mut values: Vec<_> = shared.entries().map(|row| row.unwrap().1).collect();
                assert_eq!(values.len(), 40);
                values.dedup();
                assert_eq!(values.len(), 1, "{values:?}");
            }
        })
    };
    for writer in writers {
        writer.join().unwrap();
    }
    done.store(true, Ordering::Release);
    reader.join().unwrap();
    assert_eq!(backend.approximate_num_entries().unwrap(), 40 + 2 * 200);
}

#[test]
fn nothing_is_durable_and_nothing_touches_the_disk() {
    let (changelog, directory) = (TopicPartition::new("changelog", 0), std::path::Path::new("never-made"));
    let backends = MemoryBackends::new();
    assert!(!backends.persistent());
    let backend = backends.open(directory).unwrap();
    let mut batch = WriteBatch::new();
    batch.set_offset(changelog.clone(), Offset::ZERO);
    backend.apply(&batch).unwrap();
    backend.flush().unwrap();
    assert_eq!(backend.durable_offset(&changelog).unwrap(), None);
    drop(backend);
    assert!(backends.read_offsets(directory, std::slice::from_ref(&changelog)).unwrap().is_empty());
    assert_eq!(backends.open(directory).unwrap().committed_offset(&changelog).unwrap(), None);
    assert!(!directory.exists());
}
