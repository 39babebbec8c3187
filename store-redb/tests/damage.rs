//! Files that are damaged, unfinished, foreign or of a newer version.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::{fs, path::Path};

use common::{Disk, Random, changelog, offset};
use kstate_api::{
    Backend, BackendSupplier, Bytes, ChangelogOffsets, CursorExt, Durability, ErrorKind, Order, ReadOnlyKeyValueStore,
    ReadOnlyKeyValueStoreExt, TopicPartition, WriteBatch, codec,
};
use kstate_store_redb::{
    RedbBackend, RedbBackends, RedbOptions,
    redb::{self, ReadableDatabase, TableDefinition},
};

const META: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("meta");

fn options() -> RedbOptions {
    RedbOptions::new().cache_size(1 << 20)
}

fn backends() -> RedbBackends {
    RedbBackends::new(options())
}

fn batch(rows: u32) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for n in 0..rows {
        batch.put(Bytes::copy_from_slice(&n.to_be_bytes()), format!("value {n}").repeat(10));
    }
    batch.set_offset(changelog(), offset(i64::from(rows)));
    batch.set_position(TopicPartition::new("source", 0), offset(7));
    batch
}

/// Makes a store in `directory`; if it is not closed, the file is as a crash leaves it.
fn make_store(directory: &Path, closed: bool) {
    let backend = RedbBackend::open(directory, &options()).unwrap();
    backend.apply(&batch(500)).unwrap();
    let file = directory.join("store.redb");
    let crashed = fs::read(&file).unwrap();
    backend.close().unwrap();
    if !closed {
        fs::write(file, crashed).unwrap();
    }
}

/// CRC-32 of IEEE 802.3, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

fn of_next_version(mut sealed: Vec<u8>) -> Vec<u8> {
    sealed.truncate(sealed.len() - 4);
    sealed[0] += 1;
    let checksum = crc32(&sealed);
    sealed.extend(checksum.to_be_bytes());
    sealed
}

/// Everything that can be asked of `directory` is refused in the same way, and leaves no trace.
fn assert_refused(directory: &Path, kind: ErrorKind) {
    let file = directory.join("store.redb");
    let before = fs::read(&file).unwrap();
    for _ in 0..2 {
        assert_eq!(RedbBackend::open(directory, &options()).unwrap_err().kind(), kind);
        assert_eq!(backends().open(directory).unwrap_err().kind(), kind);
        assert_eq!(backends().read_offsets(directory, &[changelog()]).unwrap_err().kind(), kind);
        assert!(fs::read(&file).unwrap() == before, "the file was touched");
    }
}

/// HO-60, the other way round: written by a version that does not exist yet.
#[test]
fn ho_60_a_store_of_a_newer_version_is_refused_untouched() {
    for closed in [true, false] {
        let temporary = tempfile::tempdir().unwrap();
        make_store(temporary.path(), true);
        let file = temporary.path().join("store.redb");
        let database = redb::Database::open(&file).unwrap();
        let transaction = database.begin_write().unwrap();
        let header = of_next_version(codec::encode_header("redb"));
        transaction.open_table(META).unwrap().insert(b"header".as_slice(), header.as_slice()).unwrap();
        transaction.commit().unwrap();
        let crashed = fs::read(&file).unwrap();
        database.close().unwrap();
        if !closed {
            fs::write(&file, crashed).unwrap();
        }
        assert_refused(temporary.path(), ErrorKind::NewerFormat);
    }
}

#[test]
fn ho_60_a_file_of_a_newer_engine_is_refused_untouched() {
    for closed in [true, false] {
        let temporary = tempfile::tempdir().unwrap();
        make_store(temporary.path(), closed);
        let file = temporary.path().join("store.redb");
        let mut bytes = fs::read(&file).unwrap();
        // The version in both commit slots of redb's header.
        (bytes[64], bytes[192]) = (4, 4);
        fs::write(&file, bytes).unwrap();
        assert_refused(temporary.path(), ErrorKind::NewerFormat);
    }
}

#[test]
fn files_that_are_no_store_are_refused_untouched() {
    let foreign = |file: &Path, table: &str, key: &[u8], value: &[u8]| {
        let database = redb::Database::create(file).unwrap();
        let transaction = database.begin_write().unwrap();
        let definition: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new(table);
        transaction.open_table(definition).unwrap().insert(key, value).unwrap();
        transaction.commit().unwrap();
    };
    let other_layout = codec::encode_header("other");
    let mut damaged = codec::encode_header("redb");
    *damaged.last_mut().unwrap() ^= 1;
    let writers: [&dyn Fn(&Path); 6] = [
        &|file| fs::write(file, "a text file, and a longer one than redb's magic").unwrap(),
        &|file| fs::write(file, vec![0xAA; 100_000]).unwrap(),
        &|file| foreign(file, "users", b"a", b"b"),
        &|file| foreign(file, "meta", b"no header", b"b"),
        &|file| foreign(file, "meta", b"header", &other_layout),
        &|file| foreign(file, "meta", b"header", &damaged),
    ];
    for write in writers {
        let temporary = tempfile::tempdir().unwrap();
        write(&temporary.path().join("store.redb"));
        assert_refused(temporary.path(), ErrorKind::Corrupted);
    }
}

#[test]
fn damaged_offsets_and_positions_are_found_by_the_open() {
    for table in ["offsets", "meta"] {
        let temporary = tempfile::tempdir().unwrap();
        make_store(temporary.path(), true);
        let database = redb::Database::open(temporary.path().join("store.redb")).unwrap();
        let transaction = database.begin_write().unwrap();
        let key = if table == "meta" { "position" } else { "counts-changelog-0" };
        let definition: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new(table);
        let mut rows = transaction.open_table(definition).unwrap();
        assert!(rows.insert(key.as_bytes(), b"damaged".as_slice()).unwrap().is_some());
        drop(rows);
        transaction.commit().unwrap();
        database.close().unwrap();
        assert_refused(temporary.path(), ErrorKind::Corrupted);
    }
}

/// A crash between the file's creation and its first commit: nothing was ever in it.
#[test]
fn an_unfinished_file_is_an_empty_store() {
    let unfinished = {
        let mut bytes = fs_of_new_database();
        bytes[..9].fill(0);
        bytes
    };
    let empty_database = fs_of_new_database();
    for bytes in [Vec::new(), vec![0; 5], vec![0; 90_000], unfinished, empty_database] {
        let temporary = tempfile::tempdir().unwrap();
        let file = temporary.path().join("store.redb");
        fs::write(&file, &bytes).unwrap();
        assert!(backends().read_offsets(temporary.path(), &[changelog()]).unwrap().is_empty());
        assert!(fs::read(&file).unwrap() == bytes, "reading offsets touched it");
        let backend = backends().open(temporary.path()).unwrap();
        assert_eq!(backend.approximate_num_entries().unwrap(), 0);
        backend.apply(&batch(3)).unwrap();
        backend.close().unwrap();
        assert_eq!(backends().open(temporary.path()).unwrap().approximate_num_entries().unwrap(), 3);
    }
}

fn fs_of_new_database() -> Vec<u8> {
    let disk = Disk::new();
    let database = redb::Builder::new().create_with_backend(disk.clone()).unwrap();
    assert_eq!(database.begin_read().unwrap().list_tables().unwrap().count(), 0);
    disk.bytes()
}

/// A file that holds more than an unfinished one can is not taken for one, however it begins.
#[test]
fn a_file_with_a_wiped_beginning_is_damaged_not_empty() {
    let temporary = tempfile::tempdir().unwrap();
    make_store(temporary.path(), true);
    let file = temporary.path().join("store.redb");
    let mut bytes = fs::read(&file).unwrap();
    bytes[..4096].fill(0);
    fs::write(&file, bytes).unwrap();
    assert_refused(temporary.path(), ErrorKind::Corrupted);
}

#[test]
fn offsets_are_read_without_touching_the_file() {
    let temporary = tempfile::tempdir().unwrap();
    let absent = temporary.path().join("absent");
    assert!(backends().read_offsets(&absent, &[changelog()]).unwrap().is_empty());
    assert!(!absent.exists());
    let empty = temporary.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert!(backends().read_offsets(&empty, &[changelog()]).unwrap().is_empty());
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
    for closed in [true, false] {
        let directory = temporary.path().join(format!("{closed}"));
        make_store(&directory, closed);
        let before = fs::read(directory.join("store.redb")).unwrap();
        let asked = [changelog(), TopicPartition::new("other", 1)];
        let expected = ChangelogOffsets::new().with(changelog(), offset(500));
        for _ in 0..2 {
            assert_eq!(backends().read_offsets(&directory, &asked).unwrap(), expected, "closed: {closed}");
        }
        assert!(fs::read(directory.join("store.redb")).unwrap() == before, "closed: {closed}");
        let backend = backends().open(&directory).unwrap();
        assert_eq!(backend.approximate_num_entries().unwrap(), 500);
        let refused = backends().read_offsets(&directory, &asked).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Locked);
    }
}

/// All rows, both ways, by scan and by get, and the offset.
fn read_all(backend: &RedbBackend) -> kstate_api::Result<Vec<(Bytes, Bytes)>> {
    let rows: Vec<_> = backend.all()?.entries().collect::<Result<_, _>>()?;
    let mut reverse: Vec<_> =
        backend.scan(&kstate_api::KeyRange::all(), Order::Descending)?.entries().collect::<Result<_, _>>()?;
    reverse.reverse();
    for (key, _) in &rows {
        backend.get(key)?;
    }
    backend.committed_offset(&changelog())?;
    backend.position()?;
    assert_eq!(rows.len(), reverse.len());
    Ok(rows)
}

/// Whatever happens to the file, nobody sees a panic; and with the check, nobody sees a wrong row.
#[test]
fn random_damage_is_an_error_at_worst() {
    let mut random = Random(3);
    let disk = Disk::new();
    let backend = RedbBackend::open_storage(disk.clone(), &options()).unwrap();
    backend.apply(&batch(500)).unwrap();
    let expected = read_all(&backend).unwrap();
    let crashed = disk.bytes();
    backend.close().unwrap();
    let closed = disk.bytes();
    let mut refused = 0;
    for trial in 0..600 {
        let mut bytes = if random.coin() { crashed.clone() } else { closed.clone() };
        match random.below(4) {
            0 => bytes.truncate(random.below(bytes.len())),
            1 => {
                let page = random.below(bytes.len() / 4096) * 4096;
                bytes[page..page + 4096].fill(0);
            }
            _ => {
                // Much of the file is not in use; most damage shall hit what is.
                let end = if random.coin() { 320 } else { bytes.len() };
                for _ in 0..=random.below(8) {
                    let at = random.below(end);
                    bytes[at] = u8::try_from(random.below(256)).unwrap();
                }
            }
        }
        let check = random.coin();
        let durability = if random.coin() { Durability::Sync } else { Durability::Eventual };
        let disk = Disk::with(bytes);
        let opened = RedbBackend::open_storage(disk, &options().check_integrity(check).durability(durability));
        let typed = |error: kstate_api::Error| {
            let kinds = [ErrorKind::Corrupted, ErrorKind::NewerFormat, ErrorKind::Unsupported, ErrorKind::Poisoned];
            assert!(kinds.contains(&error.kind()), "trial {trial}: {error:?}");
        };
        match opened {
            Ok(backend) => {
                match read_all(&backend) {
                    Ok(rows) if check => {
                        // redb may fall back to the commit before, which is the empty store; whole, then.
                        let committed = backend.committed_offset(&changelog()).unwrap();
                        let whole = if committed.is_some() { &expected[..] } else { &[] };
                        assert!(rows == whole, "trial {trial}");
                    }
                    Ok(_) => {}
                    Err(error) => typed(error),
                }
                let _ = backend.apply(&batch(100)).map_err(typed);
                let _ = backend.wipe().map_err(typed);
                let _ = backend.close().map_err(typed);
            }
            Err(error) => {
                refused += 1;
                typed(error);
            }
        }
    }
    assert!(refused > 100, "{refused} of 600 refused");
}
