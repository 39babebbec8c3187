//! What the store logs, and what the log tells of it.
use std::path::Path;

use kstate_api::{Durability, StagedStore};

use crate::{common::open, events::events_during, inverted_bounds};

#[test]
fn ho_43_each_inverted_range_is_warned_of_once() {
    let directory = tempfile::tempdir().unwrap();
    let backend = open(directory.path(), Durability::Process);
    inverted_bounds::each_inverted_range_is_warned_of_once(&StagedStore::open("counts", backend, &[]).unwrap());
}

/// The directories that an open in `directory` synchronises by our own call.
#[cfg(unix)]
fn synchronised(directory: &Path) -> Vec<String> {
    let events = events_during(|| drop(open(directory, Durability::Process)));
    let directories = events.iter().filter_map(|event| event.split_once("synchronised a directory directory="));
    directories.map(|(_, directory)| directory.to_owned()).collect()
}

/// A power loss cannot be had here; which directories are synchronised can be seen.
#[test]
#[cfg(unix)]
fn a_new_store_synchronises_every_directory_above_it() {
    let above = |directory: &Path| -> Vec<String> {
        directory.ancestors().skip(1).map(|above| above.to_str().unwrap().to_owned()).collect()
    };
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path().canonicalize().unwrap();
    let directory = root.join("state/app/0_1/counts");
    assert_eq!(synchronised(&directory), above(&directory), "all of them are new");
    assert_eq!(synchronised(&directory), [""; 0], "there is a store");

    // A process that died after it had made them, before it synchronised anything.
    let directory = root.join("state/app/0_2/counts");
    std::fs::create_dir_all(&directory).unwrap();
    assert_eq!(synchronised(&directory), above(&directory), "none is known to be old");

    // The names are where a link leads to.
    let link = root.join("link");
    std::os::unix::fs::symlink(root.join("state"), &link).unwrap();
    assert_eq!(synchronised(&link.join("app/0_3/counts")), above(&root.join("state/app/0_3/counts")));
}
