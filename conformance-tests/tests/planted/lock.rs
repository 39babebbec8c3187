//! The lock of a toy's directory.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
    sync::Mutex,
    thread,
    time::Duration,
};

use kstate_api::{Error, ErrorKind, Result};

use super::bug::Bug;

/// What keeps other owners out of the directory.
#[derive(Debug)]
pub(crate) struct Lock {
    file: Option<File>,
    path: PathBuf,
}

/// For the bugs that free what this process has locked.
static HELD: Mutex<Vec<(PathBuf, File)>> = Mutex::new(Vec::new());

/// For the bugs that lock within the process.
static OPEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

impl Lock {
    fn locked() -> Error {
        Error::new(ErrorKind::Locked, "the toy's directory has an owner")
    }

    pub(crate) fn take(directory: &Path, bug: Bug) -> Result<Self> {
        let mut path = directory.join("lock");
        match bug {
            Bug::LockIsOnThePath => path = directory.join(format!("lock-{}", directory.components().count())),
            Bug::LockIsOnTheName => path = PathBuf::from(directory.file_name().unwrap()),
            _ => {}
        }
        match bug {
            Bug::LockRaces => {
                if OPEN.lock().unwrap().contains(&path) {
                    return Err(Self::locked());
                }
                thread::sleep(Duration::from_millis(3));
                OPEN.lock().unwrap().push(path.clone());
                return Ok(Self { file: None, path });
            }
            Bug::NothingIsLocked => return Ok(Self { file: None, path }),
            Bug::OtherProcessesAreNotLockedOut | Bug::SecondCloseFreesTheSuccessor | Bug::LockIsOnTheName => {
                let mut open = OPEN.lock().unwrap();
                if open.contains(&path) {
                    return Err(Self::locked());
                }
                open.push(path.clone());
                return Ok(Self { file: None, path });
            }
            Bug::RefusedOpenFreesTheLock | Bug::ReadOffsetsFreesTheLock
                if HELD.lock().unwrap().iter().any(|(held, _)| *held == path) =>
            {
                if bug == Bug::RefusedOpenFreesTheLock {
                    Self::free_for_others(&path);
                }
                return Err(Self::locked());
            }
            Bug::LockOutlivesItsOwner => {
                File::create_new(&path).map_err(|_| Self::locked())?;
                return Ok(Self { file: None, path });
            }
            _ => {}
        }
        let options = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = options.map_err(|error| Error::io("cannot open the lock", error))?;
        let mut patience = if bug == Bug::LockIsWaitedFor { 500 } else { 0 };
        loop {
            match file.try_lock() {
                Ok(()) => {
                    if matches!(bug, Bug::RefusedOpenFreesTheLock | Bug::ReadOffsetsFreesTheLock) {
                        HELD.lock().unwrap().push((path.clone(), file.try_clone().unwrap()));
                    }
                    return Ok(Self { file: Some(file), path });
                }
                Err(TryLockError::WouldBlock) if patience > 0 => {
                    patience -= 1;
                    thread::sleep(Duration::from_millis(10));
                }
                Err(TryLockError::WouldBlock) => return Err(Self::locked()),
                Err(TryLockError::Error(error)) => return Err(Error::io("cannot lock", error)),
            }
        }
    }

    /// Lets other processes in, though this one goes on.
    pub(crate) fn free_for_others(path: &Path) {
        for (_, file) in HELD.lock().unwrap().iter().filter(|(held, _)| held == path) {
            file.unlock().unwrap();
        }
    }

    pub(crate) fn free(&mut self, bug: Bug) {
        match bug {
            Bug::OtherProcessesAreNotLockedOut
            | Bug::SecondCloseFreesTheSuccessor
            | Bug::LockIsOnTheName
            | Bug::LockRaces => {
                OPEN.lock().unwrap().retain(|open| *open != self.path);
            }
            Bug::LockOutlivesItsOwner => drop(fs::remove_file(&self.path)),
            _ => {
                if self.file.is_some() {
                    HELD.lock().unwrap().retain(|(held, _)| *held != self.path);
                }
                drop(self.file.take());
            }
        }
    }
}
