//! Damage, newer formats, full disks.
use std::{fs, path::Path};

use crate::common::{all, batch, changelog, files, offset, open, options, rows, source, tables};
use kstate_api::{Backend, BackendSupplier, Durability, ErrorKind, ReadOnlyKeyValueStoreExt, codec};
use kstate_store_rocksdb::{
    RocksDbBackend, RocksDbBackends,
    rocksdb::{DBWithThreadMode, Options, SingleThreaded},
};

pub(crate) fn filled(directory: &Path) {
    let backend = open(directory, Durability::Process);
    backend.apply(&batch(&[("a", "1")], 8)).unwrap();
    backend.close().unwrap();
}

/// Opens the store's families and others with the bare engine.
fn engine(directory: &Path, families: &[&str]) -> DBWithThreadMode<SingleThreaded> {
    let mut options = Options::default();
    options.create_missing_column_families(true);
    DBWithThreadMode::open_cf(&options, directory, families).unwrap()
}

pub(crate) fn open_error(directory: &Path) -> kstate_api::Error {
    RocksDbBackend::open(directory, &options(Durability::Process)).unwrap_err()
}

fn assert_refused(directory: &Path, kind: ErrorKind) {
    let before = files(directory);
    let error = open_error(directory);
    assert_eq!(error.kind(), kind, "{error}");
    assert_eq!(files(directory), before, "something was touched");
    let offsets = RocksDbBackends::new(options(Durability::Process)).read_offsets(directory, &[changelog()]);
    assert_eq!(offsets.unwrap_err().kind(), kind);
    assert_eq!(files(directory), before, "something was touched");
}

#[test]
fn ho_60_a_newer_header_is_refused_before_anything_is_touched() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    let db = engine(directory.path(), &["default", "offsets"]);
    let offsets = db.cf_handle("offsets").unwrap();
    let header = codec::encode_header("rocksdb");
    let mut newer = header.clone();
    newer[0] = 2;
    // The checksum is linear: it changes by what the change alone, with zeros after it, changes it.
    let checksum = checksum_of(&newer[..newer.len() - 4]).to_be_bytes();
    let end = newer.len() - 4;
    newer[end..].copy_from_slice(&checksum);
    db.put_cf(offsets, "kstate.header", newer).unwrap();
    drop(db);
    assert_refused(directory.path(), ErrorKind::NewerFormat);
    let db = engine(directory.path(), &["default", "offsets"]);
    db.put_cf(db.cf_handle("offsets").unwrap(), "kstate.header", header).unwrap();
    drop(db);
    assert_eq!(all(&open(directory.path(), Durability::Process)), rows(&[("a", "1")]));
}

/// CRC-32 of IEEE 802.3, bit by bit.
fn checksum_of(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[test]
fn ho_60_a_column_family_of_a_later_kafka_streams_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    drop(engine(directory.path(), &["default", "offsets", "keyValueWithTimestampAndHeaders"]));
    assert_refused(directory.path(), ErrorKind::NewerFormat);
    assert!(open_error(directory.path()).to_string().contains("keyValueWithTimestampAndHeaders"));
}

#[test]
fn ho_60_a_table_format_of_a_later_engine_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    for table in tables(directory.path()) {
        let mut bytes = fs::read(&table).unwrap();
        // The footer ends in the version, 4 bytes little-endian, and a magic number of 8 bytes.
        let version = bytes.len() - 12;
        assert_eq!(bytes[version..version + 4], [6, 0, 0, 0], "the one that Kafka Streams 4.x can read");
        bytes[version] = 8;
        fs::write(&table, bytes).unwrap();
    }
    assert_refused(directory.path(), ErrorKind::NewerFormat);
}

#[test]
fn damage_is_corrupted() {
    let damages: [fn(&Path); 4] = [
        |directory| tables(directory).iter().for_each(|table| fs::write(table, b"nonsense").unwrap()),
        |directory| tables(directory).iter().for_each(|table| fs::remove_file(table).unwrap()),
        |directory| fs::remove_file(directory.join("CURRENT")).unwrap(),
        |directory| {
            let manifest = fs::read_to_string(directory.join("CURRENT")).unwrap();
            fs::write(directory.join(manifest.trim_end()), b"nonsense").unwrap();
        },
    ];
    for (n, damage) in damages.into_iter().enumerate() {
        let directory = tempfile::tempdir().unwrap();
        filled(directory.path());
        damage(directory.path());
        eprintln!("damage {n}");
        assert_refused(directory.path(), ErrorKind::Corrupted);
    }
}

/// A block that rots while the store is open, or was opened without a look at it.
#[test]
fn a_damaged_record_is_corrupted_in_gets_and_in_scans() {
    let directory = tempfile::tempdir().unwrap();
    let backend = open(directory.path(), Durability::Process);
    let mut commit = batch(&[], 0);
    for n in 0..1000 {
        commit.put(format!("{n:04}"), vec![b'v'; 100]);
    }
    backend.apply(&commit).unwrap();
    backend.close().unwrap();
    let table = tables(directory.path()).into_iter().max_by_key(|table| fs::metadata(table).unwrap().len()).unwrap();
    let mut bytes = fs::read(&table).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&table, bytes).unwrap();

    let backend = open(directory.path(), Durability::Process);
    let mut failed = 0;
    for n in 0..1000 {
        match backend.get(format!("{n:04}").as_bytes()) {
            Ok(value) => assert_eq!(value.unwrap(), vec![b'v'; 100]),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupted);
                failed += 1;
            }
        }
    }
    assert!((1..100).contains(&failed), "{failed} gets failed");
    for order in [kstate_api::Order::Ascending, kstate_api::Order::Descending] {
        use kstate_api::ReadOnlyKeyValueStore;
        let mut cursor = backend.scan(&kstate_api::KeyRange::all(), order).unwrap();
        let mut seen = 0;
        let error = loop {
            match cursor.advance() {
                Ok(more) => assert!(more, "a result that only looks complete"),
                Err(error) => break error,
            }
            seen += 1;
        };
        assert!(seen > 100);
        assert_eq!(error.kind(), ErrorKind::Corrupted);
        for _ in 0..3 {
            assert_eq!(cursor.row(), None);
            assert_eq!(cursor.advance().unwrap_err().kind(), ErrorKind::Corrupted, "for good");
        }
    }
}

#[test]
fn reading_offsets_makes_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let supplier = RocksDbBackends::new(options(Durability::Process));
    let missing = directory.path().join("missing");
    assert!(supplier.read_offsets(&missing, &[changelog()]).unwrap().is_empty());
    assert!(!missing.exists());
    let empty = directory.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert!(supplier.read_offsets(&empty, &[changelog()]).unwrap().is_empty());
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);

    let store = directory.path().join("store");
    let owner = open(&store, Durability::Process);
    owner.apply(&batch(&[("a", "1")], 8)).unwrap();
    let before = files(&store);
    let read = || supplier.read_offsets(&store, &[changelog(), source()]).unwrap();
    assert_eq!(read().get(&changelog()), Some(offset(8)), "beside the owner");
    assert_eq!(read().len(), 1);
    assert_eq!(files(&store), before);
    owner.apply(&batch(&[("a", "2")], 9)).unwrap();
    assert_eq!(read().get(&changelog()), Some(offset(9)));
    owner.close().unwrap();
    let before = files(&store);
    assert_eq!(read().get(&changelog()), Some(offset(9)));
    assert_eq!(files(&store), before);
}

/// The owner flushes, compacts and deletes files all the time.
#[test]
fn reading_offsets_works_while_the_owner_is_busy() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(Durability::Process).write_buffer_size(64 << 10);
    let owner = RocksDbBackend::open(directory.path(), &options).unwrap();
    owner.apply(&batch(&[], 0)).unwrap();
    let supplier = RocksDbBackends::new(options);
    std::thread::scope(|scope| {
        let reads = scope.spawn(|| {
            let mut last = 0;
            for _ in 0..100 {
                match supplier.read_offsets(directory.path(), &[changelog()]) {
                    Ok(offsets) => {
                        let offset = offsets.get(&changelog()).unwrap().get();
                        assert!(offset >= last, "{offset} after {last}");
                        last = offset;
                    }
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Busy, "{error}"),
                }
            }
            last
        });
        let mut n = 0;
        while !reads.is_finished() {
            n += 1;
            let mut commit = batch(&[], n);
            commit.put(format!("{}", n % 50), vec![0; 4096]);
            owner.apply(&commit).unwrap();
        }
        assert!(reads.join().unwrap() > 0);
    });
}

#[test]
fn what_the_engine_refuses_to_open_with_is_a_configuration_error() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(Durability::Process).configure(|options| {
        options.set_keep_log_file_num(0);
    });
    let error = RocksDbBackend::open(directory.path(), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(std::error::Error::source(&error).is_some());
}
