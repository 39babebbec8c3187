//! What the store logs, and what the log tells of it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/events.rs"]
mod events;
#[path = "common/inverted_bounds.rs"]
mod inverted_bounds;

use std::{fs, path::Path};

use events::events_during;
use kstate_api::StagedStore;
use kstate_store_redb::{RedbBackend, RedbOptions};

#[test]
fn ho_43_each_inverted_range_is_warned_of_once() {
    let temporary = tempfile::tempdir().unwrap();
    let backend = RedbBackend::open(temporary.path(), &RedbOptions::new()).unwrap();
    inverted_bounds::each_inverted_range_is_warned_of_once(&StagedStore::open("counts", backend, &[]).unwrap());
}

/// The directories that an open in `directory` synchronises.
fn synchronised(directory: &Path) -> Vec<String> {
    let events = events_during(|| {
        RedbBackend::open(directory, &RedbOptions::new()).unwrap();
    });
    let directories = events.iter().filter_map(|event| event.split_once("synchronised a directory directory="));
    directories.map(|(_, directory)| directory.to_owned()).collect()
}

fn names(directories: impl Iterator<Item = impl AsRef<Path>>) -> Vec<String> {
    directories.map(|directory| directory.as_ref().to_str().unwrap().to_owned()).collect()
}

/// A power loss cannot be had here; which directories are synchronised can be seen.
#[test]
#[cfg(unix)]
fn a_new_store_synchronises_every_directory_above_it() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path().canonicalize().unwrap();
    let directory = root.join("state/app/0_1/counts");
    assert_eq!(synchronised(&directory), names(directory.ancestors()), "all of them are new");
    assert_eq!(synchronised(&directory), names([""; 0].iter()), "there is a store");

    // A process that died after it had made them, before it synchronised anything.
    let directory = root.join("state/app/0_2/counts");
    fs::create_dir_all(&directory).unwrap();
    fs::File::create(directory.join("store.redb")).unwrap();
    assert_eq!(synchronised(&directory), names(directory.ancestors()), "none is known to be old");

    // The names are where a link leads to.
    let link = root.join("link");
    std::os::unix::fs::symlink(root.join("state"), &link).unwrap();
    let real = root.join("state/app/0_3/counts");
    assert_eq!(synchronised(&link.join("app/0_3/counts")), names(real.ancestors()));
}
