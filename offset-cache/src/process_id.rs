use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};

use kstate_api::{Error, ErrorKind, Result, sync_path};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{layout::cannot, permissions};

/// The file's contents in Kafka Streams' format. A newer version may have more fields, and keeps this one.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    process_id: String,
}

/// The process id in the file `path`, which a new one is written to if there is none that can be read.
///
/// A file of a newer format is read and left as it is. One that makes no sense is kept beside the new one, under another
/// name: with another id, the group only takes this process for a new one.
pub(crate) fn load_or_make(path: &Path) -> Result<Uuid> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return make(path),
        Err(error) => return Err(cannot("read", path, error)),
    };
    let read = serde_json::from_slice::<Metadata>(&text).map_err(|error| error.to_string());
    match read.and_then(|metadata| metadata.process_id.parse::<Uuid>().map_err(|error| error.to_string())) {
        Ok(id) => Ok(id),
        Err(error) => {
            let aside = beside(path, "unreadable");
            tracing::warn!(
                file = %path.display(), kept_as = %aside.display(), error,
                "the file with the process id makes no sense; this process gets a new id"
            );
            fs::rename(path, &aside).map_err(|error| cannot("move away", path, error))?;
            make(path)
        }
    }
}

fn make(path: &Path) -> Result<Uuid> {
    let id = Uuid::new_v4();
    let metadata = Metadata { process_id: id.to_string() };
    let text = serde_json::to_vec(&metadata)
        .map_err(|error| Error::new(ErrorKind::Io, "cannot encode the process id").with_source(error))?;
    // Whole or not at all, after a crash too.
    let temporary = beside(path, "tmp");
    let mut options = permissions::file_options();
    let written = options.write(true).create(true).truncate(true).open(&temporary).and_then(|mut file| {
        file.write_all(&text)?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&temporary, path)).map_err(|error| cannot("write", path, error))?;
    sync_path(path)?;
    Ok(id)
}

/// `path` with `.suffix` added to its name.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}
