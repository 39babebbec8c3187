use std::{
    fs,
    path::{Path, PathBuf},
};

use kstate_api::{Error, ErrorKind, Result, sync_path};

/// Makes `directory` if it is not there and returns its one true name.
///
/// The engine knows a directory that is open in this process by its name only: by another name, through a link, say, it
/// would open it a second time.
pub(crate) fn prepare(directory: &Path) -> Result<PathBuf> {
    let made = fs::create_dir_all(directory).and_then(|()| fs::canonicalize(directory));
    let directory =
        made.map_err(|error| Error::io(format_args!("cannot make the directory {}", directory.display()), error))?;
    // Before there is a store in it: one that is there has its path on the disk. The engine sees to what is in it.
    if !holds_store(&directory)? {
        sync_path(&directory)?;
    }
    Ok(directory)
}

/// Whether there is a store in `directory`.
///
/// # Errors
/// `Corrupted` if there are tables or logs but not the file that leads to them: the engine would begin anew and delete
/// them.
pub(crate) fn holds_store(directory: &Path) -> Result<bool> {
    let failed = |error| Error::io(format_args!("cannot read the directory {}", directory.display()), error);
    let leads_to_files = || directory.join("CURRENT").try_exists().map_err(failed);
    if leads_to_files()? {
        return Ok(true);
    }
    if !directory.try_exists().map_err(failed)? {
        return Ok(false);
    }
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = PathBuf::from(entry.map_err(failed)?.file_name());
        if name.extension().is_some_and(|extension| extension == "sst" || extension == "log") {
            // Another open may have made the store meanwhile; it makes this file first.
            if leads_to_files()? {
                return Ok(true);
            }
            let message = format!("{} has files of a store but no CURRENT that leads to them", directory.display());
            return Err(Error::new(ErrorKind::Corrupted, message));
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::{cell::Cell, sync::Barrier, thread};

    use super::*;

    #[test]
    fn a_store_that_is_being_made_is_not_damaged() {
        let root = tempfile::tempdir().unwrap();
        let (start, damaged) = (Barrier::new(2), Cell::new(None));
        let directories: Vec<_> = (0..3000).map(|round| root.path().join(round.to_string())).collect();
        for directory in &directories {
            fs::create_dir(directory).unwrap();
        }
        let in_turns = |work: &dyn Fn(&Path)| {
            for directory in &directories {
                start.wait();
                work(directory);
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                in_turns(&|directory| {
                    fs::write(directory.join("CURRENT"), "MANIFEST-000001\n").unwrap();
                    fs::write(directory.join("000004.log"), "").unwrap();
                });
            });
            // It sees the store at one time or another.
            in_turns(&|directory| {
                while !holds_store(directory).unwrap_or_else(|error| {
                    damaged.set(Some(error));
                    true
                }) {}
            });
        });
        assert!(damaged.take().is_none());
        fs::write(root.path().join("000004.log"), "").unwrap();
        assert_eq!(holds_store(root.path()).unwrap_err().kind(), ErrorKind::Corrupted);
    }
}
