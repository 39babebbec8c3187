//! A power loss at every sync: the disk loses what was written since the one before, or keeps the first part of it
//! (clause O6). Any part of it, down to single sectors, is in `failures.rs`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard},
};

use kstate_api::{
    ChangelogOffsets, CursorExt, Durability, KeyValueStore, Offset, ReadOnlyKeyValueStoreExt, StagedStore, StateStore,
    TopicPartition, WriteBatch,
};
use kstate_store_redb::{RedbBackend, RedbOptions, redb::StorageBackend};

/// What a power loss may leave.
#[derive(Clone, Debug)]
struct Image {
    bytes: Vec<u8>,
    /// How many steps of the store had returned, and how many of them were durable by its own word.
    returned: usize,
    durable: usize,
}

#[derive(Debug, Default)]
struct Inner {
    /// What a read finds.
    bytes: Vec<u8>,
    synced: Vec<u8>,
    /// What was done since the last sync: new lengths, and writes.
    unsynced: Vec<(u64, Option<Vec<u8>>)>,
    images: Vec<Image>,
    returned: usize,
    durable: usize,
}

/// A disk in memory that keeps an image of what is safe at each sync. Clones are the same disk.
#[derive(Clone, Debug, Default)]
struct FrozenDisk(Arc<Mutex<Inner>>);

fn carry_out(bytes: &mut Vec<u8>, (at, data): &(u64, Option<Vec<u8>>)) {
    let at = usize::try_from(*at).unwrap();
    match data {
        None => bytes.resize(at, 0),
        Some(data) => bytes[at..at + data.len()].copy_from_slice(data),
    }
}

impl FrozenDisk {
    fn with(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(Inner { synced: bytes.clone(), bytes, ..Inner::default() })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    /// Notes that a step of the store has returned.
    fn note(&self, durable: bool) {
        let mut inner = self.inner();
        inner.returned += 1;
        if durable {
            inner.durable = inner.returned;
        }
    }
}

impl Inner {
    /// The power may fail now, with everything lost that is not synced, or half of it.
    fn freeze(&mut self) {
        let (returned, durable) = (self.returned, self.durable);
        let mut half = self.synced.clone();
        self.images.push(Image { bytes: half.clone(), returned, durable });
        for operation in &self.unsynced[..self.unsynced.len() / 2] {
            carry_out(&mut half, operation);
        }
        self.images.push(Image { bytes: half, returned, durable });
    }

    fn operate(&mut self, operation: (u64, Option<Vec<u8>>)) {
        carry_out(&mut self.bytes, &operation);
        self.unsynced.push(operation);
    }
}

impl StorageBackend for FrozenDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.inner().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).unwrap();
        let inner = self.inner();
        out.copy_from_slice(inner.bytes.get(start..start + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner().operate((len, None));
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.inner().operate((offset, Some(data.to_vec())));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let inner = &mut *self.inner();
        inner.freeze();
        for operation in inner.unsynced.drain(..) {
            carry_out(&mut inner.synced, &operation);
        }
        // And right after it.
        inner.images.push(Image { bytes: inner.synced.clone(), returned: inner.returned, durable: inner.durable });
        Ok(())
    }
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn changelog() -> TopicPartition {
    TopicPartition::new("counts-changelog", 0)
}

fn source() -> TopicPartition {
    TopicPartition::new("lines", 0)
}

fn scramble(seed: u64) -> u64 {
    let mixed = (seed ^ (seed >> 30)).wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB) ^ (mixed >> 31)
}

/// What the commit of offset `n` changes; its value is of a length that makes the file grow and shrink.
fn changes(n: i64) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let mut changes: Vec<_> = (0..12)
        .map(|i| {
            let draw = scramble(n.unsigned_abs() * 100 + i);
            let key = (draw % 40).to_be_bytes().to_vec();
            let len = usize::try_from(draw >> 8 & 0x7FF).unwrap();
            (key, (draw >> 32 & 3 != 0).then(|| format!("{n}:{}", "v".repeat(len)).into_bytes()))
        })
        .collect();
    changes.push((b"last".to_vec(), Some(n.to_string().into_bytes())));
    changes
}

/// What the store does, one atomic step after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Commit(i64),
    Restore(i64),
    Wipe,
}

const STEPS: i64 = 60;

fn steps() -> Vec<Step> {
    let step = |n| match n {
        n if n % 23 == 22 => vec![Step::Wipe, Step::Commit(n)],
        n if n % 5 == 3 => vec![Step::Restore(n)],
        n => vec![Step::Commit(n)],
    };
    (0..STEPS).flat_map(step).collect()
}

/// Rows and offset after each number of steps.
fn states() -> Vec<(Rows, Option<i64>)> {
    let mut states = vec![(Rows::new(), None)];
    for step in steps() {
        let mut rows = states.last().unwrap().0.clone();
        let last = match step {
            Step::Wipe => {
                rows.clear();
                None
            }
            Step::Commit(n) | Step::Restore(n) => {
                for (key, value) in changes(n) {
                    match value {
                        Some(value) => rows.insert(key, value),
                        None => rows.remove(&key),
                    };
                }
                Some(n)
            }
        };
        states.push((rows, last));
    }
    states
}

fn take(store: &StagedStore<RedbBackend>, step: Step) {
    let offset = |n: i64| Offset::new(n).unwrap();
    match step {
        Step::Wipe => store.wipe().unwrap(),
        Step::Commit(n) => {
            for (key, value) in changes(n) {
                match value {
                    Some(value) => store.put(&key, &value).unwrap(),
                    None => store.delete(&key).unwrap(),
                }
            }
            store.stage_position(&source(), offset(2 * n).into()).unwrap();
            store.commit(&ChangelogOffsets::new().with(changelog(), offset(n))).unwrap();
        }
        Step::Restore(n) => {
            let mut batch = WriteBatch::new();
            for (key, value) in changes(n) {
                match value {
                    Some(value) => batch.put(key, value),
                    None => batch.delete(key),
                }
            }
            batch.set_position(source(), offset(2 * n));
            batch.set_offset(changelog(), offset(n));
            store.restore(&batch).unwrap();
        }
    }
}

fn open(disk: &FrozenDisk, durability: Durability) -> StagedStore<RedbBackend> {
    let options = RedbOptions::new().durability(durability).flush_every(7, u64::MAX).cache_size(1 << 20);
    let backend = RedbBackend::open_storage(disk.clone(), &options).unwrap();
    StagedStore::open("counts", backend, &[changelog()]).unwrap()
}

/// Which of `states` the store in `disk` is in, all of it: rows, offset and position.
fn state_of(disk: &FrozenDisk, durability: Durability, states: &[(Rows, Option<i64>)], about: usize) -> usize {
    let store = open(disk, durability);
    let last = store.committed_offset(&changelog()).unwrap().map(Offset::get);
    let position = store.position().unwrap().next(&source()).map(Offset::get);
    let rows: Rows =
        store.all().unwrap().entries().map(Result::unwrap).map(|(key, value)| (key.into(), value.into())).collect();
    assert_eq!(position, last.map(|last| 2 * last), "the position is not that of the offset {last:?}");
    // An empty store is found twice: the later one is as good.
    let candidates = states.iter().enumerate().filter(|(_, state)| **state == (rows.clone(), last));
    let nearest = candidates.map(|(n, _)| n).min_by_key(|n| n.abs_diff(about));
    let nearest = nearest.unwrap_or_else(|| panic!("rows and offset {last:?} are of no commit"));
    // It goes on from there.
    store.put(b"after", b"1").unwrap();
    store.commit(&ChangelogOffsets::new()).unwrap();
    store.close().unwrap();
    assert_eq!(open(disk, durability).get(b"after").unwrap().unwrap(), "1");
    nearest
}

#[test]
fn a_power_loss_at_any_sync_leaves_a_whole_commit() {
    let states = states();
    for durability in [Durability::Sync, Durability::Eventual] {
        let disk = FrozenDisk::default();
        let store = open(&disk, durability);
        for (n, step) in steps().into_iter().enumerate() {
            take(&store, step);
            let flushed = durability == Durability::Eventual && n % 11 == 10;
            disk.note(durability == Durability::Sync);
            if flushed {
                store.flush().unwrap();
                let mut inner = disk.inner();
                inner.durable = inner.returned;
            }
        }
        store.close().unwrap();
        disk.inner().freeze();
        let images = std::mem::take(&mut disk.inner().images);
        let mut seen = Vec::new();
        for Image { bytes, returned, durable } in images {
            let state = state_of(&FrozenDisk::with(bytes), durability, &states, returned);
            // A step that had not returned may have happened.
            assert!((durable..=returned + 1).contains(&state), "{durability:?}: {state}, of {durable}..={returned}");
            seen.push(state);
        }
        let last = *seen.last().unwrap();
        assert_eq!(last, steps().len(), "{durability:?}: a close loses something");
        seen.dedup();
        println!("{durability:?}: {} different states", seen.len());
        // Each sync of `Sync` is a commit, and each that was durable of `Eventual`.
        let wanted = if durability == Durability::Sync { steps().len() } else { 8 };
        assert!(seen.len() >= wanted, "{durability:?}: the power failed at {} different states only", seen.len());
    }
}
