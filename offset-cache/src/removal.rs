use std::{
    fs, io,
    path::{Path, PathBuf},
};

use kstate_api::{Result, TaskId};
use uuid::Uuid;

use crate::{
    StateLayout,
    layout::{TRASH, cannot, remove_file},
    permissions,
};

/// Deletes all stores of `task`, which the caller owns, and its directory unless something unfamiliar is in it. That is
/// returned.
///
/// Each store disappears in one step: it is moved away first, so that a crash cannot leave half of one in its place,
/// which an engine might take for a whole one. What says how far a store has come goes before the store.
pub(crate) fn remove_task(layout: &StateLayout, task: TaskId) -> Result<Vec<PathBuf>> {
    let contents = layout.contents(task)?;
    for file in contents.bookkeeping() {
        remove_file(file)?;
    }
    let directory = layout.task_directory(task);
    let trash = layout.application_directory().join(TRASH);
    let mut moved = Vec::new();
    for store in contents.stores().iter().chain(contents.empty_stores()) {
        permissions::make_directory(&trash).map_err(|error| cannot("make", &trash, error))?;
        let (from, to) = (directory.join(store), trash.join(Uuid::new_v4().to_string()));
        fs::rename(&from, &to).map_err(|error| cannot("delete", &from, error))?;
        moved.push(to);
    }
    if contents.unfamiliar().is_empty() {
        match fs::remove_dir(&directory) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // Something came into it just now. It is nothing of ours.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            Err(error) => return Err(cannot("delete", &directory, error)),
        }
    }
    for path in &moved {
        delete(path);
    }
    Ok(contents.unfamiliar().to_vec())
}

/// Deletes what an earlier process moved away and did not come to delete.
pub(crate) fn empty_trash(layout: &StateLayout) {
    delete(&layout.application_directory().join(TRASH));
}

/// Deletes what was moved away. What cannot be deleted takes room and does no other harm: the next start tries again.
fn delete(path: &Path) {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(directory = %path.display(), %error, "cannot delete what is left of a deleted store");
        }
        _ => {}
    }
}
