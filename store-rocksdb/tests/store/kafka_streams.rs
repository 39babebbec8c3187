//! The layout is that of Kafka Streams: its directories open here, and ours there. The engine itself plays the Java
//! application, with the options and rows of `RocksDBStore` in 4.3.
use std::path::Path;

use crate::common::{all, batch, changelog, crashed, files, offset, open, options, rows, source};
use kstate_api::{Backend, BackendSupplier, Durability, ErrorKind, Position, ReadOnlyKeyValueStoreExt, codec};
use kstate_store_rocksdb::{
    RocksDbBackend, RocksDbBackends, RocksDbOptions,
    rocksdb::{
        ColumnFamilyDescriptor, DBWithThreadMode, FlushOptions, IteratorMode, Options, SingleThreaded, WriteOptions,
    },
};

const PLAIN: &str = "default";
const TIMESTAMPED: &str = "keyValueWithTimestamp";
const CLOSED: i64 = 0;
const OPEN: i64 = 1;

/// A Kafka Streams application that has a store open.
struct Streams {
    db: DBWithThreadMode<SingleThreaded>,
    data: &'static str,
    no_log: WriteOptions,
}

impl Streams {
    /// Opens the store as Java does; it does not under exactly-once if the status is not closed.
    fn open(directory: &Path, data: &'static str) -> Self {
        let mut options = Options::default();
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        options.set_atomic_flush(true);
        let mut names = vec![PLAIN, "offsets"];
        if data != PLAIN {
            names.push(data);
        }
        let families = names.iter().map(|name| ColumnFamilyDescriptor::new(*name, Options::default()));
        let db = DBWithThreadMode::open_cf_descriptors(&options, directory, families).unwrap();
        let mut no_log = WriteOptions::default();
        no_log.disable_wal(true);
        let streams = Self { db, data, no_log };
        streams.set("status", &OPEN.to_be_bytes());
        streams
    }

    fn put(&self, key: &str, value: &str) {
        self.db.put_cf_opt(self.db.cf_handle(self.data).unwrap(), key, value, &self.no_log).unwrap();
    }

    fn set(&self, row: &str, value: &[u8]) {
        self.db.put_cf_opt(self.db.cf_handle("offsets").unwrap(), row, value, &self.no_log).unwrap();
    }

    fn commit(&self, changelog_offset: i64) {
        self.set("counts-changelog-0", &changelog_offset.to_be_bytes());
        // A serialized position of Java's for no topic, and the tail that it writes.
        self.set("position", &[0; 40]);
    }

    fn close(self) {
        self.set("status", &CLOSED.to_be_bytes());
        // Closing flushes what did not go through the log.
    }

    /// What the next open finds if the application dies after a flush of its tables.
    fn die(self) {
        let families = ["offsets", self.data].map(|name| self.db.cf_handle(name).unwrap());
        self.db.flush_cfs_opt(&families.each_ref(), &FlushOptions::default()).unwrap();
    }
}

/// Everything in the `offsets` family, as any other program sees it.
fn offsets_family(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let names = DBWithThreadMode::<SingleThreaded>::list_cf(&Options::default(), directory).unwrap();
    let db = DBWithThreadMode::<SingleThreaded>::open_cf_for_read_only(&Options::default(), directory, names, false);
    let db = db.unwrap();
    let rows = db.iterator_cf(db.cf_handle("offsets").unwrap(), IteratorMode::Start);
    rows.map(|row| row.unwrap()).map(|(key, value)| (String::from_utf8(key.into()).unwrap(), value.into())).collect()
}

fn status(directory: &Path) -> i64 {
    let rows = offsets_family(directory);
    let (_, value) = rows.iter().find(|(key, _)| key == "status").unwrap();
    i64::from_be_bytes(value.as_slice().try_into().unwrap())
}

fn timestamped() -> RocksDbOptions {
    options(Durability::Process).timestamped(true)
}

fn offset_of(directory: &Path, options: RocksDbOptions) -> Option<i64> {
    let offsets = RocksDbBackends::new(options).read_offsets(directory, &[changelog()]).unwrap();
    offsets.get(&changelog()).map(kstate_api::Offset::get)
}

#[test]
fn a_directory_of_kafka_streams_opens_with_its_offsets() {
    for (data, options) in [(PLAIN, options(Durability::Process)), (TIMESTAMPED, timestamped())] {
        let directory = tempfile::tempdir().unwrap();
        let streams = Streams::open(directory.path(), data);
        streams.put("a", "1");
        streams.put("b", "2");
        streams.commit(41);
        streams.close();

        assert_eq!(offset_of(directory.path(), options.clone()), Some(41));
        let backend = RocksDbBackend::open(directory.path(), &options).unwrap();
        assert_eq!(all(&backend), rows(&[("a", "1"), ("b", "2")]), "and no row of the bookkeeping");
        assert_eq!(backend.committed_offset(&changelog()).unwrap(), Some(offset(41)));
        assert_eq!(backend.durable_offset(&changelog()).unwrap(), Some(offset(41)));
        assert_eq!(backend.position().unwrap(), Position::new());
        backend.apply(&batch(&[("b", "3")], 42)).unwrap();
        backend.close().unwrap();

        // And back.
        assert_eq!(status(directory.path()), CLOSED);
        let streams = Streams::open(directory.path(), data);
        let get = |family: &str, key: &str| streams.db.get_cf(streams.db.cf_handle(family).unwrap(), key).unwrap();
        assert_eq!(get(data, "a").unwrap(), b"1");
        assert_eq!(get(data, "b").unwrap(), b"3");
        assert_eq!(get("offsets", "counts-changelog-0").unwrap(), 42_i64.to_be_bytes());
        assert_eq!(get("offsets", "position").unwrap(), [0; 40], "a lower bound of what the records reflect");
    }
}

/// Files that Kafka Streams 4.3.0 itself has written: two records, offset 41, and a position of its own.
#[test]
fn golden_files_of_kafka_streams_4_3_0_open_with_their_offsets() {
    let value = |timestamped: bool, value: &str| {
        let mut bytes = if timestamped { 7_i64.to_be_bytes().to_vec() } else { Vec::new() };
        bytes.extend(value.as_bytes());
        bytes
    };
    for (name, is_timestamped) in [("plain", false), ("timestamped", true)] {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kafka-streams-4.3.0").join(name);
        let directory = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(golden).unwrap().map(|entry| entry.unwrap().path()) {
            std::fs::copy(&file, directory.path().join(file.file_name().unwrap())).unwrap();
        }
        let options = options(Durability::Process).timestamped(is_timestamped);
        assert_eq!(offset_of(directory.path(), options.clone()), Some(41));
        let backend = RocksDbBackend::open(directory.path(), &options).unwrap();
        let expected = [("a", "1"), ("b", "2")].map(|(key, text)| (key.into(), value(is_timestamped, text)));
        assert_eq!(all(&backend), expected);
        assert_eq!(backend.committed_offset(&changelog()).unwrap(), Some(offset(41)));
        assert!(backend.position().unwrap().is_empty());
    }
}

/// Each row, byte for byte.
#[test]
fn golden_rows_of_a_store() {
    let directory = tempfile::tempdir().unwrap();
    let backend = open(directory.path(), Durability::Process);
    backend.apply(&batch(&[("a", "1")], 258)).unwrap();
    backend.close().unwrap();
    let header = (String::from("kstate.header"), b"\x01kstate\x07rocksdb\xBB\x0C\x1E\x2E".to_vec());
    let changelog_row = (String::from("counts-changelog-0"), vec![0, 0, 0, 0, 0, 0, 1, 2]);
    let status_row = (String::from("status"), vec![0; 8]);
    assert_eq!(offsets_family(directory.path()), [changelog_row.clone(), header.clone(), status_row.clone()]);

    let backend = open(directory.path(), Durability::Process);
    let mut with_position = batch(&[], 259);
    with_position.set_position(source(), offset(8));
    backend.apply(&with_position).unwrap();
    let position = backend.position().unwrap();
    backend.close().unwrap();
    let found = offsets_family(directory.path());
    let keys: Vec<_> = found.iter().map(|(key, _)| key.as_str()).collect();
    let all = ["counts-changelog-0", "kstate.header", "kstate.position", "kstate.position-offsets", "status"];
    assert_eq!(keys, all);
    assert_eq!(found[2].1, codec::encode_position(&position).unwrap());
    let fingerprint = [
        &[0, 0, 0, 0, 0, 0, 0, 18],
        b"counts-changelog-0".as_slice(),
        &[0, 0, 0, 0, 0, 0, 0, 8],
        &[0, 0, 0, 0, 0, 0, 1, 3],
    ];
    assert_eq!(found[3].1, fingerprint.concat());
}

/// Java wipes a store with the status 1 under exactly-once. What we write is consistent whenever we die, so it must
/// never find that.
#[test]
fn after_our_crash_kafka_streams_finds_the_store_closed() {
    let test = "kafka_streams::after_our_crash_kafka_streams_finds_the_store_closed";
    let directory = crashed(test, Durability::Process, |directory, durability| {
        let backend = open(directory, durability);
        backend.apply(&batch(&[("a", "1")], 3)).unwrap();
        backend.flush().unwrap();
        backend.apply(&batch(&[("a", "2")], 4)).unwrap();
        std::mem::forget(backend);
    });
    assert_eq!(status(directory.path()), CLOSED);
    assert_eq!(offset_of(directory.path(), options(Durability::Process)), Some(4));
}

/// Records may be ahead of the offset then: at-least-once accepts that, exactly-once must not, before and after us.
#[test]
fn a_store_that_kafka_streams_died_with_is_taken_over_but_never_called_closed() {
    let directory = tempfile::tempdir().unwrap();
    let streams = Streams::open(directory.path(), PLAIN);
    streams.put("a", "1");
    streams.commit(3);
    streams.put("a", "ahead");
    streams.die();
    assert_eq!(status(directory.path()), OPEN);

    let backend = open(directory.path(), Durability::Process);
    assert_eq!(backend.get(b"a").unwrap().unwrap(), "ahead");
    assert_eq!(backend.committed_offset(&changelog()).unwrap(), Some(offset(3)));
    let mut next = batch(&[("b", "2")], 4);
    next.set_position(source(), offset(9));
    backend.apply(&next).unwrap();
    backend.close().unwrap();
    assert_ne!(status(directory.path()), CLOSED);

    let backend = open(directory.path(), Durability::Process);
    assert_eq!(backend.position().unwrap().next(&source()), Some(offset(9)), "nobody was here since");
    backend.wipe().unwrap();
    backend.apply(&batch(&[("a", "1")], 0)).unwrap();
    backend.close().unwrap();
    assert_eq!(status(directory.path()), CLOSED, "the doubtful records are gone");
}

#[test]
fn a_position_goes_when_kafka_streams_moves_the_store_on() {
    let ours = |directory: &Path| {
        let backend = open(directory, Durability::Process);
        let mut commit = batch(&[("a", "1")], 3);
        commit.set_position(source(), offset(9));
        backend.apply(&commit).unwrap();
        backend.close().unwrap();
    };
    let position_after = |theirs: fn(&Streams), close: bool| {
        let directory = tempfile::tempdir().unwrap();
        ours(directory.path());
        let streams = Streams::open(directory.path(), PLAIN);
        theirs(&streams);
        if close {
            streams.close();
        } else {
            streams.die();
        }
        open(directory.path(), Durability::Process).position().unwrap().next(&source())
    };
    assert_eq!(position_after(|_| {}, true), Some(offset(9)), "it changed nothing");
    let commits = |streams: &Streams| {
        streams.put("a", "2");
        streams.commit(4);
    };
    assert_eq!(position_after(commits, true), None);
    assert_eq!(position_after(commits, false), None);
    assert_eq!(position_after(|streams| streams.put("a", "ahead"), false), None);
}

#[test]
fn an_offset_that_kafka_streams_does_not_know_is_none_and_other_negatives_are_damage() {
    let directory = tempfile::tempdir().unwrap();
    let store = |value: &[u8]| {
        let streams = Streams::open(directory.path(), PLAIN);
        streams.put("a", "1");
        streams.set("counts-changelog-0", value);
        streams.close();
    };
    let supplier = RocksDbBackends::new(options(Durability::Process));
    store(&(-4_i64).to_be_bytes());
    assert_eq!(offset_of(directory.path(), options(Durability::Process)), None);
    let backend = open(directory.path(), Durability::Process);
    assert_eq!(backend.committed_offset(&changelog()).unwrap(), None);
    assert_eq!(backend.durable_offset(&changelog()).unwrap(), None);
    drop(backend);
    for damaged in [(-1_i64).to_be_bytes().as_slice(), b"short"] {
        store(damaged);
        let error = supplier.read_offsets(directory.path(), &[changelog()]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupted);
        let backend = open(directory.path(), Durability::Process);
        assert_eq!(backend.committed_offset(&changelog()).unwrap_err().kind(), ErrorKind::Corrupted);
        backend.wipe().unwrap();
        assert_eq!(backend.committed_offset(&changelog()).unwrap(), None);
        backend.close().unwrap();
    }
}

#[test]
fn a_store_of_before_4_3_has_records_but_no_offsets() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.create_if_missing(true);
    let db = DBWithThreadMode::<SingleThreaded>::open(&options, directory.path()).unwrap();
    db.put("a", "1").unwrap();
    drop(db);
    assert_eq!(offset_of(directory.path(), crate::common::options(Durability::Process)), None);
    let backend = open(directory.path(), Durability::Process);
    assert_eq!(all(&backend), rows(&[("a", "1")]));
    assert_eq!(backend.committed_offset(&changelog()).unwrap(), None);
}

#[test]
fn the_other_layout_is_refused_and_nothing_is_harmed() {
    for (data, wrong) in [(PLAIN, timestamped()), (TIMESTAMPED, options(Durability::Process))] {
        let directory = tempfile::tempdir().unwrap();
        let streams = Streams::open(directory.path(), data);
        streams.put("a", "1");
        streams.commit(41);
        streams.close();
        let before = files(directory.path());
        let error = RocksDbBackend::open(directory.path(), &wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(error.to_string().contains("timestamped"), "{error}");
        let offsets = RocksDbBackends::new(wrong).read_offsets(directory.path(), &[changelog()]);
        assert_eq!(offsets.unwrap_err().kind(), ErrorKind::Config);
        assert_eq!(files(directory.path()), before);
    }
}

/// Kafka Streams refuses a plain store that has the family of timestamped records, empty or not.
#[test]
fn a_plain_store_has_no_empty_family_of_the_other_layout() {
    let directory = tempfile::tempdir().unwrap();
    let backend = RocksDbBackend::open(directory.path(), &timestamped()).unwrap();
    backend.apply(&batch(&[("a", "1")], 0)).unwrap();
    backend.wipe().unwrap();
    backend.close().unwrap();
    let backend = open(directory.path(), Durability::Process);
    backend.apply(&batch(&[("b", "2")], 1)).unwrap();
    backend.close().unwrap();
    let mut names = DBWithThreadMode::<SingleThreaded>::list_cf(&Options::default(), directory.path()).unwrap();
    names.sort();
    assert_eq!(names, [PLAIN, "offsets"]);
    assert_eq!(all(&open(directory.path(), Durability::Process)), rows(&[("b", "2")]));
}
