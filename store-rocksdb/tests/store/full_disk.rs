//! Full disks, real ones: small file systems in memory, which only root may mount. Where that is not allowed the tests
//! say on standard error that they were skipped; `KSTATE_REQUIRE_TMPFS=1` makes that a failure.

use std::{
    env, fs,
    io::Write,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use crate::{
    common::{LEVELS, all, batch, changelog, offset, open, options, rows},
    failures::{filled, open_error},
};
use kstate_api::{Backend, CommitOutcome, Durability, ErrorKind, ReadOnlyKeyValueStoreExt};
use kstate_store_rocksdb::RocksDbBackend;

/// A small file system of its own, gone with it.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        let mount = mount.args(["-t", "tmpfs", "-o", "size=24m", "tmpfs"]).arg(directory.path()).output();
        match mount {
            Ok(output) if output.status.success() => Some(Self(directory)),
            refused => {
                assert!(env::var_os("KSTATE_REQUIRE_TMPFS").is_none(), "cannot mount a small disk: {refused:?}");
                eprintln!("SKIPPED: mounting a small disk needs root: {refused:?}");
                None
            }
        }
    }

    fn ballast(&self) -> PathBuf {
        self.0.path().join("ballast")
    }

    fn fill(&self) {
        let mut ballast = fs::File::create(self.ballast()).unwrap();
        while ballast.write(&[0; 4096]).is_ok_and(|written| written > 0) {}
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.0.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

#[test]
fn ho_18_a_full_disk_is_an_error_and_after_a_reopen_it_goes_on() {
    for durability in LEVELS {
        let Some(disk) = SmallDisk::mount() else { return };
        let directory = disk.0.path().join("store");
        let options = options(durability).write_buffer_size(256 << 10);
        let backend = RocksDbBackend::open(&directory, &options).unwrap();
        backend.apply(&batch(&[("a", "1")], 8)).unwrap();
        backend.flush().unwrap();

        disk.fill();
        // Eventual writes nothing before it flushes, and the log has some space in advance.
        let mut kept = 8;
        let error = loop {
            let mut commit = batch(&[], kept + 1);
            commit.put("n", (kept + 1).to_string());
            commit.put("large", vec![b'x'; 64 << 10]);
            let result = match backend.apply(&commit) {
                Ok(()) if durability == Durability::Eventual => backend.flush().inspect(|()| kept += 1),
                Ok(()) => {
                    kept += 1;
                    Ok(())
                }
                Err(error) => {
                    assert!(error.commit_outcome().is_some(), "{error}");
                    Err(error)
                }
            };
            if let Err(error) = result {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::DiskFull, "{durability:?}: {error}");
        // A commit that was refused before it was tried leaves the store as it was.
        if durability != Durability::Eventual && error.commit_outcome() != Some(CommitOutcome::NotApplied) {
            assert_eq!(backend.committed_offset(&changelog()).unwrap(), Some(offset(kept)));
            let error = backend.apply(&batch(&[("z", "")], 99)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
            assert_eq!(error.commit_outcome(), Some(CommitOutcome::NotApplied));
            assert_eq!(backend.flush().unwrap_err().kind(), ErrorKind::Poisoned);
        }
        assert!(backend.durable_offset(&changelog()).unwrap().unwrap() <= offset(kept));

        // Still full: closing says so if it could not keep all, and lets go.
        let closed = backend.close();
        fs::remove_file(disk.ballast()).unwrap();
        let backend = RocksDbBackend::open(&directory, &options).unwrap();
        let found = backend.committed_offset(&changelog()).unwrap().unwrap().get();
        eprintln!("{durability:?}: kept {kept}, found {found}, close {closed:?}");
        assert!(found == kept || found == kept + 1, "{durability:?}: {found} after {kept}");
        let record = backend.get(b"n").unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap());
        assert_eq!(record, (found > 8).then(|| found.to_string()), "records and offset agree");
        assert_eq!(backend.get(b"z").unwrap(), None);
        backend.apply(&batch(&[("k9", "v9")], 9)).unwrap();
        backend.close().unwrap();
        let backend = RocksDbBackend::open(&directory, &options).unwrap();
        assert_eq!(backend.get(b"k9").unwrap().unwrap(), "v9");
        assert_eq!(backend.committed_offset(&changelog()).unwrap(), Some(offset(9)));
    }
}

#[test]
fn ho_18_a_full_disk_never_holds_up_a_commit_for_ever() {
    let Some(disk) = SmallDisk::mount() else { return };
    let directory = disk.0.path().join("store");
    let options = options(Durability::Eventual).write_buffer_size(256 << 10);
    let backend = RocksDbBackend::open(&directory, &options).unwrap();
    backend.apply(&batch(&[("a", "1")], 8)).unwrap();
    backend.flush().unwrap();
    disk.fill();

    // Without a log a commit needs no room until the buffers are full; then the engine stops writes.
    let started = Instant::now();
    let mut commit = batch(&[], 9);
    commit.put("large", vec![b'x'; 64 << 10]);
    let error = (0..1000).find_map(|_| backend.apply(&commit).err()).expect("the buffers never fill up");
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    assert_eq!(error.kind(), ErrorKind::DiskFull, "{error}");

    fs::remove_file(disk.ballast()).unwrap();
    drop(backend);
    let backend = RocksDbBackend::open(&directory, &options).unwrap();
    assert_eq!(backend.get(b"a").unwrap().unwrap(), "1");
    backend.apply(&commit).unwrap();
    backend.flush().unwrap();
    assert_eq!(backend.durable_offset(&changelog()).unwrap(), Some(offset(9)));
}

/// Space that comes back while the store is open: whatever is answered with `Ok` from then on is kept.
#[test]
fn ho_18_nothing_is_called_done_that_is_not_kept() {
    for durability in LEVELS {
        let Some(disk) = SmallDisk::mount() else { return };
        let directory = disk.0.path().join("store");
        let options = options(durability).write_buffer_size(256 << 10);
        let backend = RocksDbBackend::open(&directory, &options).unwrap();
        backend.apply(&batch(&[("a", "1")], 8)).unwrap();
        backend.flush().unwrap();
        disk.fill();
        let mut n = 8;
        let mut step = |succeeded: &mut i64| {
            n += 1;
            let mut commit = batch(&[("n", &n.to_string())], n);
            commit.put("large", vec![b'x'; 64 << 10]);
            let result = backend.apply(&commit).and_then(|()| backend.flush());
            if result.is_ok() {
                *succeeded = n;
            }
            result
        };
        let mut succeeded = 8;
        while step(&mut succeeded).is_ok() {}
        fs::remove_file(disk.ballast()).unwrap();
        for _ in 0..20 {
            let _ = step(&mut succeeded);
            std::thread::sleep(Duration::from_millis(50));
        }
        let closed = backend.close();
        eprintln!("{durability:?}: succeeded {succeeded} of {n}, close {closed:?}");
        let backend = RocksDbBackend::open(&directory, &options).unwrap();
        let found = backend.committed_offset(&changelog()).unwrap().unwrap().get();
        assert!(found >= succeeded, "{durability:?}: {found} after {succeeded} was called done");
        if found > 8 {
            assert_eq!(backend.get(b"n").unwrap().unwrap(), found.to_string());
        }
    }
}

#[test]
fn a_full_disk_at_open_is_disk_full_and_harms_nothing() {
    let Some(disk) = SmallDisk::mount() else { return };
    let directory = disk.0.path().join("store");
    filled(&directory);
    disk.fill();
    assert_eq!(open_error(&directory).kind(), ErrorKind::DiskFull);
    fs::remove_file(disk.ballast()).unwrap();
    assert_eq!(all(&open(&directory, Durability::Process)), rows(&[("a", "1")]));
}

/// A disk that filled up in the middle of writing: the store of then opens on a larger one, and before that says what
/// is wrong. Nothing panics.
#[test]
fn ho_19_a_store_whose_disk_filled_up_opens_again() {
    for durability in LEVELS {
        let Some(disk) = SmallDisk::mount() else { return };
        let directory = disk.0.path().join("store");
        let options = options(durability).write_buffer_size(256 << 10);
        let backend = RocksDbBackend::open(&directory, &options).unwrap();
        let mut n = 8;
        backend.apply(&batch(&[("n", "8")], n)).unwrap();
        backend.flush().unwrap();
        disk.fill();
        let mut flushed = n;
        loop {
            let mut commit = batch(&[("n", &(n + 1).to_string())], n + 1);
            commit.put("large", vec![b'x'; 64 << 10]);
            if backend.apply(&commit).is_err() {
                break;
            }
            n += 1;
            if backend.flush().is_err() {
                break;
            }
            flushed = n;
        }
        drop(backend);
        let still_full = RocksDbBackend::open(&directory, &options).map(drop);
        assert!(still_full.is_ok() || still_full.unwrap_err().kind() == ErrorKind::DiskFull);

        fs::remove_file(disk.ballast()).unwrap();
        let backend = RocksDbBackend::open(&directory, &options).unwrap();
        let found = backend.committed_offset(&changelog()).unwrap().unwrap().get();
        // A write that failed may be there, whole.
        assert!((flushed..=n + 1).contains(&found), "{durability:?}: {found} after {flushed} and {n}");
        assert_eq!(backend.get(b"n").unwrap().unwrap(), found.to_string());
    }
}
