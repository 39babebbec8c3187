//! What a power loss does to the newest files of a store whose process died: their ends are gone, or garbage (clause
//! O6). It opens at some commit, whole, or is `Corrupted`; nothing else, and nothing panics.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use kstate_api::{Backend, Durability, ErrorKind, Offset, WriteBatch};
use kstate_store_rocksdb::RocksDbBackend;
use tempfile::TempDir;

use crate::common::{LEVELS, Rows, all, changelog, crashed, offset, options, source};

/// How many commits there are; after each so many a flush.
const COMMITS: i64 = 60;
const FLUSH_EACH: i64 = 13;
/// At how many places a file is cut, and how many bytes of it are turned, one each time.
const PLACES: u64 = 24;

fn scramble(seed: u64) -> u64 {
    let mixed = (seed ^ (seed >> 30)).wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB) ^ (mixed >> 31)
}

fn batch(n: i64) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for i in 0..10 {
        let draw = scramble(n.unsigned_abs() * 100 + i);
        let key = format!("{:02}", draw % 30);
        if (draw >> 32).is_multiple_of(4) {
            batch.delete(key);
        } else {
            batch.put(key, format!("{n}:{}", "v".repeat(usize::try_from(draw >> 40 & 0xFF).unwrap())));
        }
    }
    batch.put("last", n.to_string());
    batch.set_offset(changelog(), offset(n));
    batch.set_position(source(), offset(2 * n));
    batch
}

fn rows_at(last: Option<Offset>) -> Rows {
    let mut rows = BTreeMap::new();
    for n in 0..=last.map_or(-1, Offset::get) {
        for (key, value) in batch(n).records() {
            match value {
                Some(value) => rows.insert(key.to_vec(), value.to_vec()),
                None => rows.remove(key),
            };
        }
    }
    rows.into_iter().collect()
}

fn work(directory: &Path, durability: Durability) {
    let backend = RocksDbBackend::open(directory, &options(durability)).unwrap();
    for n in 0..COMMITS {
        backend.apply(&batch(n)).unwrap();
        if n % FLUSH_EACH == FLUSH_EACH - 1 {
            backend.flush().unwrap();
        }
    }
    // It dies with its cursors open and its last commits in the log only.
    std::mem::forget(backend);
}

/// The newest of a store's files that are called so.
fn newest(directory: &Path, is_one: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| is_one(path.file_name().unwrap().to_str().unwrap())).max()
}

fn copied(directory: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
    }
    copy
}

/// The offset at which the store opens, whose rows and position have to be those of the offset; `Err` if it is
/// `Corrupted`.
fn opened(directory: &Path, durability: Durability, what: &str) -> Result<Option<Offset>, ()> {
    let backend = match RocksDbBackend::open(directory, &options(durability)) {
        Ok(backend) => backend,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corrupted, "{what}: {error}");
            return Err(());
        }
    };
    let last = backend.committed_offset(&changelog()).unwrap();
    let position = backend.position().unwrap().next(&source()).map(Offset::get);
    assert_eq!(position, last.map(|last| 2 * last.get()), "{what}: the position is not that of {last:?}");
    assert!(all(&backend) == rows_at(last), "{what}: the rows are not those of {last:?}");
    // It goes on from there.
    let next = last.map_or(0, |last| last.get() + 1);
    backend.apply(&batch(next)).unwrap();
    backend.close().unwrap();
    let reopened = RocksDbBackend::open(directory, &options(durability)).unwrap();
    assert_eq!(all(&reopened), rows_at(Some(offset(next))), "{what}: after one commit more and a close");
    Ok(last)
}

/// What a damage does to the bytes of a file at a place.
type Damage = fn(&mut Vec<u8>, usize);

const DAMAGES: [(&str, Damage); 4] = [
    ("cut", |bytes, place| bytes.truncate(place)),
    ("turned", |bytes, place| bytes[place] ^= 0x40),
    ("nulled to the end", |bytes, place| bytes[place..].fill(0)),
    ("garbled to the end", |bytes, place| {
        (0_u64..).zip(&mut bytes[place..]).for_each(|(n, byte)| *byte = u8::try_from(scramble(n) & 0xFF).unwrap());
    }),
];

/// Damages the newest file that is called so at many places, and returns how often the store opened, and was
/// `Corrupted`.
fn damage(directory: &Path, durability: Durability, is_one: impl Fn(&str) -> bool) -> (usize, usize) {
    let Some(file) = newest(directory, is_one) else { return (0, 0) };
    let name = file.file_name().unwrap().to_str().unwrap().to_owned();
    let whole = fs::read(&file).unwrap();
    let (mut some_commit, mut corrupted) = (0, 0);
    for (how, damage) in DAMAGES {
        for n in 0..PLACES {
            // All over the file, and close to its end.
            let len = whole.len() as u64;
            let place = if n % 4 == 3 { len.saturating_sub(1 + n * 3) } else { scramble(n + len) % len.max(1) };
            let copy = copied(directory);
            let mut bytes = whole.clone();
            if bytes.is_empty() {
                continue;
            }
            damage(&mut bytes, usize::try_from(place).unwrap());
            fs::write(copy.path().join(&name), &bytes).unwrap();
            let what = format!("{durability:?}: {name} of {len} bytes, {how} at {place}");
            match opened(copy.path(), durability, &what) {
                Ok(_) => some_commit += 1,
                Err(()) => corrupted += 1,
            }
        }
    }
    (some_commit, corrupted)
}

fn is_log(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "log")
}

/// Damages the newest log and the manifest of a store that died at each level.
fn damaged_at(test: &str, durability: Durability) {
    let directory = crashed(test, durability, work);
    let intact = copied(directory.path());
    let last = opened(intact.path(), durability, "intact").unwrap().map(Offset::get);
    let flushed = COMMITS / FLUSH_EACH * FLUSH_EACH - 1;
    assert!(last >= Some(if durability == Durability::Eventual { flushed } else { COMMITS - 1 }), "{last:?}");
    let log = damage(directory.path(), durability, is_log);
    println!("{durability:?}: (some commit, corrupted) by the log {log:?}");
    assert!(durability == Durability::Eventual || log.0 > 0, "no damaged log was read up to the damage");
    // With a log the manifest has nothing but the store's creation, which was synced before the first commit.
    if durability == Durability::Eventual {
        let manifest = damage(directory.path(), durability, |name| name.starts_with("MANIFEST-"));
        println!("{durability:?}: (some commit, corrupted) by the manifest {manifest:?}");
        assert!(manifest.1 > 0, "no damaged manifest was found out");
    }
}

#[test]
fn a_power_loss_leaves_a_whole_commit_or_is_corrupted_eventual() {
    assert_eq!(LEVELS.len(), 3, "each level has its test");
    damaged_at("power_loss::a_power_loss_leaves_a_whole_commit_or_is_corrupted_eventual", Durability::Eventual);
}

#[test]
fn a_power_loss_leaves_a_whole_commit_or_is_corrupted_process() {
    damaged_at("power_loss::a_power_loss_leaves_a_whole_commit_or_is_corrupted_process", Durability::Process);
}

#[test]
fn a_power_loss_leaves_a_whole_commit_or_is_corrupted_sync() {
    damaged_at("power_loss::a_power_loss_leaves_a_whole_commit_or_is_corrupted_sync", Durability::Sync);
}
