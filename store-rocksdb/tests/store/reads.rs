//! Gets, ranges and snapshots.
use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use crate::common::{all, batch, changelog, drain, offset, open, rows, source};
use kstate_api::{
    Backend, Cursor, CursorExt, Durability, KeyRange, Order, ReadOnlyKeyValueStore, ReadOnlyKeyValueStoreExt, Snapshot,
    WriteBatch,
};

const KEYS: [&[u8]; 9] = [b"", b"\0", b"\0\0", b"a", b"a\0", b"a\xFF", b"b", b"\xFF", b"\xFF\xFF"];

/// Every range between any two keys, with every kind of bound, in both directions, from memory, from tables and from a
/// snapshot, as an ordered map has it.
#[test]
fn ranges_are_those_of_an_ordered_map() {
    let directory = tempfile::tempdir().unwrap();
    let backend = open(directory.path(), Durability::Process);
    let mut model = BTreeMap::new();
    let mut batch = WriteBatch::new();
    for (n, key) in KEYS.iter().enumerate().filter(|(n, _)| n % 3 != 1) {
        let value = vec![b'v'; n];
        batch.put(key, value.clone());
        model.insert(key.to_vec(), value);
    }
    backend.apply(&batch).unwrap();
    let bounds: Vec<Bound<&[u8]>> =
        KEYS.iter().flat_map(|key| [Bound::Included(*key), Bound::Excluded(*key)]).chain([Bound::Unbounded]).collect();
    let check = |store: &dyn ReadOnlyKeyValueStore| {
        for start in &bounds {
            for end in &bounds {
                let range = KeyRange::new(*start, *end);
                let inside = model.iter().filter(|(key, _)| range.contains(key));
                let mut expected: Vec<_> = inside.map(|(key, value)| (key.clone(), value.clone())).collect();
                let found = |order| drain(store.scan(&range, order).unwrap());
                assert_eq!(found(Order::Ascending), expected, "{range:?}");
                expected.reverse();
                assert_eq!(found(Order::Descending), expected, "{range:?}, descending");
            }
        }
    };
    check(&backend);
    check(&*backend.snapshot().unwrap());
    let snapshot = backend.snapshot().unwrap();
    backend.close().unwrap();
    drop(snapshot);
    check(&open(directory.path(), Durability::Process));
}

#[test]
fn a_get_shows_the_value_or_is_not_called() {
    let directory = tempfile::tempdir().unwrap();
    let backend = open(directory.path(), Durability::Process);
    backend.apply(&batch(&[("", "empty key"), ("empty", "")], 0)).unwrap();
    assert_eq!(backend.get(b"").unwrap().unwrap(), "empty key");
    assert_eq!(backend.get(b"empty").unwrap().unwrap(), "");
    assert!(!backend.get_with(b"none", &mut |_| panic!("there is no value")).unwrap());
}

#[test]
fn a_cursor_shows_what_was_there_when_it_was_made() {
    let directory = tempfile::tempdir().unwrap();
    let backend = open(directory.path(), Durability::Eventual);
    backend.apply(&batch(&[("a", "1"), ("b", "2"), ("c", "3")], 2)).unwrap();
    let mut started = backend.all().unwrap();
    assert!(started.advance().unwrap());
    let fresh = backend.scan(&KeyRange::all(), Order::Descending).unwrap();
    let mut later = batch(&[("a", "new"), ("b2", "new")], 3);
    later.delete("c");
    backend.apply(&later).unwrap();
    backend.flush().unwrap();
    assert_eq!(drain(started), rows(&[("b", "2"), ("c", "3")]));
    assert_eq!(drain(fresh), rows(&[("c", "3"), ("b", "2"), ("a", "1")]));
    backend.wipe().unwrap();
}

#[test]
fn a_snapshot_stays_one_commit_through_flush_wipe_and_compaction() {
    let directory = tempfile::tempdir().unwrap();
    let backend = open(directory.path(), Durability::Eventual);
    let mut first = batch(&[("a", "1"), ("b", "2")], 5);
    first.set_position(source(), offset(9));
    backend.apply(&first).unwrap();
    let snapshot = backend.snapshot().unwrap();
    let check = || {
        assert_eq!(all(&*snapshot), rows(&[("a", "1"), ("b", "2")]));
        assert_eq!(snapshot.get(b"a").unwrap().unwrap(), "1");
        assert_eq!(snapshot.committed_offset(&changelog()).unwrap(), Some(offset(5)));
        assert_eq!(snapshot.position().unwrap().next(&source()), Some(offset(9)));
    };
    check();
    let mut second = batch(&[("a", "2")], 6);
    second.delete("b");
    second.set_position(source(), offset(10));
    backend.apply(&second).unwrap();
    check();
    backend.flush().unwrap();
    check();
    backend.wipe().unwrap();
    assert!(all(&backend).is_empty());
    check();
    backend.apply(&batch(&[("c", "3")], 0)).unwrap();
    backend.flush().unwrap();
    check();
}

/// Each commit sets all keys to its offset; no reader may see two commits at once, nor another offset than the records'.
#[test]
fn no_reader_sees_half_a_commit() {
    let directory = tempfile::tempdir().unwrap();
    let backend = open(directory.path(), Durability::Eventual);
    let commit = |n: i64| {
        let mut batch = WriteBatch::new();
        for key in 0..100 {
            batch.put(format!("{key:03}"), n.to_string());
        }
        batch.set_offset(changelog(), offset(n));
        backend.apply(&batch).unwrap();
    };
    commit(0);
    let (backend, done) = (&backend, &AtomicBool::new(false));
    let whole = |mut cursor: Box<dyn Cursor>| {
        let mut values = Vec::new();
        while let Some((_, value)) = cursor.next_row().unwrap() {
            values.push(value.to_vec());
        }
        assert_eq!(values.len(), 100);
        assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
        values.swap_remove(0)
    };
    thread::scope(|scope| {
        let read_until_done = |read: &dyn Fn()| {
            let mut reads = 0;
            while !done.load(Ordering::Acquire) {
                read();
                reads += 1;
            }
            reads
        };
        let snapshots = scope.spawn(move || {
            read_until_done(&|| {
                let snapshot = backend.snapshot().unwrap();
                let value = whole(snapshot.scan(&KeyRange::all(), Order::Descending).unwrap());
                let committed = snapshot.committed_offset(&changelog()).unwrap().unwrap();
                assert_eq!(value, committed.to_string().into_bytes());
            })
        });
        let scans = scope.spawn(move || read_until_done(&|| drop(whole(backend.all().unwrap()))));
        for n in 1..400 {
            commit(n);
            if n % 100 == 0 {
                backend.flush().unwrap();
            }
        }
        done.store(true, Ordering::Release);
        assert!(snapshots.join().unwrap() > 10 && scans.join().unwrap() > 10);
    });
}

/// A prefix extractor would make the engine's scans stop at the end of a prefix.
#[test]
fn scans_cross_prefixes_whatever_was_configured() {
    let directory = tempfile::tempdir().unwrap();
    let options = crate::common::options(Durability::Process).configure(|options| {
        options.set_prefix_extractor(kstate_store_rocksdb::rocksdb::SliceTransform::create_fixed_prefix(1));
        options.set_memtable_prefix_bloom_ratio(0.2);
    });
    let backend = kstate_store_rocksdb::RocksDbBackend::open(directory.path(), &options).unwrap();
    backend.apply(&batch(&[("a1", ""), ("b1", ""), ("c1", "")], 2)).unwrap();
    backend.flush().unwrap();
    let found = drain(backend.range(b"a0", b"c9").unwrap());
    assert_eq!(found, rows(&[("a1", ""), ("b1", ""), ("c1", "")]));
    assert_eq!(drain(backend.reverse_range(b"a0", b"b9").unwrap()), rows(&[("b1", ""), ("a1", "")]));
}
