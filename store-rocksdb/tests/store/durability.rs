//! What each level of durability keeps when the process dies.
use crate::common::{LEVELS, all, batch, changelog, crashed, offset, open, options, rows, source, tables};
use kstate_api::{
    Backend, BackendSupplier, Durability, ReadOnlyKeyValueStore, ReadOnlyKeyValueStoreExt, TopicPartition, WriteBatch,
};
use kstate_store_rocksdb::{RocksDbBackend, RocksDbBackends};
use tempfile::TempDir;

fn committed(backend: &RocksDbBackend) -> Option<i64> {
    backend.committed_offset(&changelog()).unwrap().map(kstate_api::Offset::get)
}

fn durable(backend: &RocksDbBackend) -> Option<i64> {
    backend.durable_offset(&changelog()).unwrap().map(kstate_api::Offset::get)
}

/// Until the engine has written what it has set about to write.
fn wait_for_flushes(backend: &RocksDbBackend) {
    let running = |name| backend.property(name).unwrap().unwrap() != "0";
    while running("rocksdb.mem-table-flush-pending") || running("rocksdb.num-running-flushes") {
        std::thread::yield_now();
    }
}

fn crash_after_commits(test: &str, durability: Durability) -> TempDir {
    crashed(test, durability, |directory, durability| {
        let backend = open(directory, durability);
        backend.apply(&batch(&[("a", "1")], 1)).unwrap();
        backend.flush().unwrap();
        assert_eq!(durable(&backend), Some(1));
        backend.apply(&batch(&[("a", "2"), ("b", "2")], 2)).unwrap();
        assert_eq!(committed(&backend), Some(2));
        assert_eq!(durable(&backend), Some(if durability == Durability::Sync { 2 } else { 1 }));
        std::mem::forget(backend);
    })
}

#[test]
fn eventual_keeps_the_last_flush() {
    let directory = crash_after_commits("durability::eventual_keeps_the_last_flush", Durability::Eventual);
    let backend = open(directory.path(), Durability::Eventual);
    assert_eq!((all(&backend), committed(&backend)), (rows(&[("a", "1")]), Some(1)));
}

#[test]
fn process_keeps_every_commit() {
    let directory = crash_after_commits("durability::process_keeps_every_commit", Durability::Process);
    // Also for whoever only looks.
    let supplier = RocksDbBackends::new(options(Durability::Process));
    let offsets = supplier.read_offsets(directory.path(), &[changelog()]).unwrap();
    assert_eq!(offsets.get(&changelog()), Some(offset(2)));
    let backend = open(directory.path(), Durability::Process);
    assert_eq!((all(&backend), committed(&backend)), (rows(&[("a", "2"), ("b", "2")]), Some(2)));
    assert_eq!(durable(&backend), Some(2), "the open has made tables of the log");
}

#[test]
fn sync_keeps_every_commit() {
    let directory = crash_after_commits("durability::sync_keeps_every_commit", Durability::Sync);
    let backend = open(directory.path(), Durability::Sync);
    assert_eq!((all(&backend), committed(&backend)), (rows(&[("a", "2"), ("b", "2")]), Some(2)));
}

#[test]
fn a_clean_close_keeps_everything_at_every_level() {
    for written in LEVELS {
        for read in LEVELS {
            let directory = tempfile::tempdir().unwrap();
            let backend = open(directory.path(), written);
            let mut commit = batch(&[("a", "1")], 1);
            commit.set_position(source(), offset(7));
            backend.apply(&commit).unwrap();
            backend.close().unwrap();
            let backend = open(directory.path(), read);
            assert_eq!((all(&backend), committed(&backend)), (rows(&[("a", "1")]), Some(1)));
            assert_eq!(durable(&backend), Some(1));
            assert_eq!(backend.position().unwrap().next(&source()), Some(offset(7)));
        }
    }
}

/// A flush that the engine starts by itself counts, too; and a lower offset that may be on disk by now.
#[test]
fn eventual_knows_what_the_engine_has_flushed_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let backend = RocksDbBackend::open(directory.path(), &options(Durability::Eventual).write_buffer_size(64 << 10));
    let backend = backend.unwrap();
    assert_eq!(durable(&backend), None);
    for n in 0..100 {
        let mut commit = batch(&[], n);
        commit.put(format!("{n}"), vec![0; 4096]);
        backend.apply(&commit).unwrap();
    }
    wait_for_flushes(&backend);
    assert!(durable(&backend).unwrap() > 0);
    backend.apply(&batch(&[], 0)).unwrap();
    assert_eq!(durable(&backend), None, "the last flush that was asked for knew none");
    backend.flush().unwrap();
    assert_eq!(durable(&backend), Some(0));
    let mut forget = WriteBatch::new();
    forget.forget_offsets();
    backend.apply(&forget).unwrap();
    assert_eq!((committed(&backend), durable(&backend)), (None, None));
}

#[test]
fn process_knows_only_of_flushes_that_were_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let backend = open(directory.path(), Durability::Process);
    backend.apply(&batch(&[], 5)).unwrap();
    assert_eq!(durable(&backend), None);
    backend.flush().unwrap();
    backend.apply(&batch(&[], 9)).unwrap();
    assert_eq!(durable(&backend), Some(5));
    backend.apply(&batch(&[], 3)).unwrap();
    assert_eq!(durable(&backend), Some(3));
}

#[test]
fn a_wipe_is_durable_at_every_level_and_takes_everything() {
    for durability in LEVELS {
        let test = "durability::a_wipe_is_durable_at_every_level_and_takes_everything";
        let directory = crashed(test, durability, |directory, durability| {
            let backend = open(directory, durability);
            let mut commit = batch(&[("", "empty key"), ("a", "1")], 1);
            commit.put(vec![0xFF; 3], "last");
            commit.set_position(source(), offset(7));
            backend.apply(&commit).unwrap();
            backend.flush().unwrap();
            backend.apply(&batch(&[("b", "2")], 2)).unwrap();
            backend.wipe().unwrap();
            std::mem::forget(backend);
        });
        let backend = open(directory.path(), durability);
        assert!(all(&backend).is_empty(), "{durability:?}");
        assert_eq!(committed(&backend), None);
        assert!(backend.position().unwrap().is_empty());
        assert_eq!(backend.approximate_num_entries().unwrap(), 0);
        backend.apply(&batch(&[("a", "again")], 0)).unwrap();
        assert_eq!(backend.get(b"a").unwrap().unwrap(), "again");
        assert_eq!(committed(&backend), Some(0));
    }
}

/// Commits that fill one column family only, until the engine flushes; then a crash. With or without the log.
fn fill_one_family(test: &str, fill: fn(&mut WriteBatch, i64)) {
    for durability in [Durability::Eventual, Durability::Process] {
        let directory = crashed(test, durability, |directory, durability| {
            // Against the contract, and set back.
            let options = options(durability).write_buffer_size(64 << 10).configure(|options| {
                options.set_atomic_flush(false);
            });
            let backend = RocksDbBackend::open(directory, &options).unwrap();
            let mut n = 0;
            while tables(directory).is_empty() || n % 7 != 3 {
                let mut commit = batch(&[("n", &n.to_string())], n);
                fill(&mut commit, n);
                backend.apply(&commit).unwrap();
                n += 1;
            }
            wait_for_flushes(&backend);
            std::mem::forget(backend);
        });
        let backend = open(directory.path(), durability);
        let record = backend.get(b"n").unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap());
        assert_eq!(record, committed(&backend).map(|n| n.to_string()), "{durability:?}");
        assert!(record.is_some(), "nothing was flushed");
    }
}

#[test]
fn ho_16_a_flush_of_the_records_takes_the_offset_along() {
    fill_one_family("durability::ho_16_a_flush_of_the_records_takes_the_offset_along", |commit, n| {
        commit.put(format!("{n}"), vec![0; 4096]);
    });
}

#[test]
fn ho_16_a_flush_of_the_offsets_takes_the_records_along() {
    fill_one_family("durability::ho_16_a_flush_of_the_offsets_takes_the_records_along", |commit, n| {
        for partition in 0..200 {
            commit.set_position(TopicPartition::new("x".repeat(200), partition), offset(n));
        }
    });
}
