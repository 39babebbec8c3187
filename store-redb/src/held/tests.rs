#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use super::*;

/// Bytes in memory, and what was done to them.
#[derive(Clone, Debug, Default)]
struct Recorder {
    bytes: Arc<Mutex<Vec<u8>>>,
    done: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    fn with(bytes: Vec<u8>) -> Self {
        Self { bytes: Arc::new(Mutex::new(bytes)), done: Arc::default() }
    }

    fn done(&self) -> Vec<String> {
        std::mem::take(&mut *self.done.lock())
    }
}

impl StorageBackend for Recorder {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).unwrap();
        let bytes = self.bytes.lock();
        out.copy_from_slice(bytes.get(start..start + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.bytes.lock().resize(usize::try_from(len).unwrap(), 0);
        self.done.lock().push(format!("len {len}"));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.done.lock().push("sync".into());
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let start = usize::try_from(offset).unwrap();
        self.bytes.lock()[start..start + data.len()].copy_from_slice(data);
        self.done.lock().push(format!("write {offset}: {data:?}"));
        Ok(())
    }
}

fn open(storage: impl StorageBackend) -> redb::Database {
    redb::Builder::new().create_with_backend(storage).unwrap()
}

/// A database in use, as a crash would leave it.
fn crashed() -> Vec<u8> {
    let storage = Recorder::default();
    let database = open(storage.clone());
    let transaction = database.begin_write().unwrap();
    transaction.open_table(redb::TableDefinition::<u64, u64>::new("t")).unwrap().insert(1, 2).unwrap();
    transaction.commit().unwrap();
    storage.bytes.lock().clone()
}

#[test]
fn what_is_held_is_carried_out_as_redb_asked() {
    for before in [Vec::new(), crashed()] {
        let plain = Recorder::with(before.clone());
        let _database = open(plain.clone());

        let storage = Recorder::with(before.clone());
        let held = HeldStorage::new(storage.clone());
        let database = open(held.handle());
        assert_eq!(*storage.bytes.lock(), before);
        assert!(storage.done().is_empty(), "nothing happens before the release");
        held.release().unwrap();
        assert_eq!(storage.done(), plain.done());
        assert_eq!(*storage.bytes.lock(), *plain.bytes.lock());

        let transaction = database.begin_write().unwrap();
        transaction.open_table(redb::TableDefinition::<u64, u64>::new("t")).unwrap().insert(3, 4).unwrap();
        transaction.commit().unwrap();
        assert!(!storage.done().is_empty(), "and everything after it at once");
    }
}

#[test]
fn what_is_not_released_is_forgotten() {
    let (storage, before) = (Recorder::with(crashed()), crashed());
    let held = HeldStorage::new(storage.clone());
    open(held.handle()).close().unwrap();
    assert_eq!(*storage.bytes.lock(), before);
}

/// Reads through whatever is held, against a plain array.
#[test]
fn reads_see_what_is_held() {
    let mut state = 1_u64;
    let mut random = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % limit
    };
    for _ in 0..200 {
        let mut model: Vec<u8> = (0..random(50)).map(|n| 100 + u8::try_from(n).unwrap()).collect();
        let storage = Recorder::with(model.clone());
        let held = HeldStorage::new(storage.clone());
        let handle = held.handle();
        for byte in 1..20 {
            let len = random(60);
            match random(3) {
                0 => {
                    model.resize(len, 0);
                    handle.set_len(len as u64).unwrap();
                }
                1 if !model.is_empty() => {
                    let at = random(model.len());
                    let data = vec![byte; random(model.len() - at + 1)];
                    model[at..at + data.len()].copy_from_slice(&data);
                    handle.write(at as u64, &data).unwrap();
                }
                _ => {
                    let at = random(60);
                    let mut found = vec![0xEE; len];
                    let read = handle.read(at as u64, &mut found);
                    match model.get(at..at + len) {
                        Some(expected) => assert_eq!(found, expected),
                        None => assert_eq!(read.unwrap_err().kind(), io::ErrorKind::UnexpectedEof),
                    }
                }
            }
            assert_eq!(handle.len().unwrap(), model.len() as u64);
        }
        held.release().unwrap();
        assert_eq!(*storage.bytes.lock(), model);
    }
}
