//! The broker's jars and a formatted storage directory, fetched and made once, then kept in the cache.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::cache::cache_directory;
use crate::error::{Error, Result};
use crate::java;
use crate::ports::Ports;
use crate::process::Process;
use crate::readiness::log_tail;
use crate::settings::{CLUSTER_ID, server_properties};
use crate::tools::Tools;

const POM: &str = include_str!("../pom.xml");
/// Pinned, as everything that decides what is fetched.
const COPY_JARS: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";
const PATIENCE_WITH_MAVEN: Duration = Duration::from_secs(15 * 60);
const PATIENCE_WITH_FORMAT: Duration = Duration::from_secs(2 * 60);

/// What a broker starts from.
#[derive(Debug, Clone)]
pub(crate) struct Distribution {
    folder: PathBuf,
}

impl Distribution {
    /// Takes it from the cache, or makes it there. Several processes may do so at once: the first to finish wins.
    pub(crate) fn obtain(tools: &Tools) -> Result<Self> {
        let folder = cached_folder();
        if !folder.is_dir() {
            make(tools, &folder)?;
        }
        Ok(Self { folder })
    }

    pub(crate) fn jars(&self) -> PathBuf {
        self.folder.join("jars")
    }

    /// Lays a fresh storage directory at `data`: a copy, because formatting costs a whole Java start.
    pub(crate) fn lay_storage(&self, data: &Path) -> Result<()> {
        let copy = || -> std::io::Result<()> {
            fs::create_dir_all(data)?;
            for entry in fs::read_dir(self.folder.join("storage"))? {
                let entry = entry?;
                fs::copy(entry.path(), data.join(entry.file_name()))?;
            }
            Ok(())
        };
        copy().map_err(|error| Error::io("cannot lay the broker's storage directory", error))
    }
}

/// Whether a broker can be started without Maven.
pub(crate) fn is_cached() -> bool {
    cached_folder().is_dir()
}

/// Named after what it is made from, so that a new version gets a new folder.
fn cached_folder() -> PathBuf {
    let mut hasher = DefaultHasher::new();
    (POM, COPY_JARS, CLUSTER_ID).hash(&mut hasher);
    server_properties(Ports { broker: 1, controller: 2 }, Path::new("")).hash(&mut hasher);
    cache_directory().join(format!("kafka-{:016x}", hasher.finish()))
}

fn make(tools: &Tools, folder: &Path) -> Result<()> {
    let maven = tools.maven.as_ref().ok_or_else(|| Error::new("Maven is needed to fetch the broker's jars"))?;
    let io = |error| Error::io(format!("cannot make {}", folder.display()), error);
    fs::create_dir_all(cache_directory()).map_err(io)?;
    // Beside its final place, so that one rename makes it whole or not at all.
    let scratch = tempfile::Builder::new().prefix("kafka-fetch-").tempdir_in(cache_directory()).map_err(io)?;
    let made = scratch.path().join("distribution");
    let pom = scratch.path().join("pom.xml");
    fs::create_dir(&made).map_err(io)?;
    fs::write(&pom, POM).map_err(io)?;

    let mut fetch = Command::new(maven);
    fetch.args(["--batch-mode", "--quiet", "--file"]).arg(&pom).arg(COPY_JARS).arg("-DincludeScope=runtime");
    fetch.arg(format!("-DoutputDirectory={}", made.join("jars").display()));
    run(fetch, &scratch, "Maven could not fetch the Kafka broker", PATIENCE_WITH_MAVEN)?;

    let properties = scratch.path().join("server.properties");
    let storage = made.join("storage");
    fs::write(&properties, server_properties(Ports { broker: 1, controller: 2 }, &storage)).map_err(io)?;
    let mut format = java::storage_tool(tools, &made.join("jars"));
    format.args(["format", "--cluster-id", CLUSTER_ID, "--config"]).arg(&properties);
    run(format, &scratch, "Kafka could not format its storage", PATIENCE_WITH_FORMAT)?;

    match fs::rename(&made, folder) {
        Err(_) if folder.is_dir() => Ok(()),
        outcome => outcome.map_err(io),
    }
}

/// Runs a program to its end; when it fails, the error ends with what it said last.
fn run(mut command: Command, scratch: &TempDir, failure: &str, patience: Duration) -> Result<()> {
    let log = scratch.path().join("output.log");
    let io = |error| Error::io(failure, error);
    let output = File::create(&log).map_err(io)?;
    command.current_dir(scratch.path()).stdin(Stdio::null()).stderr(output.try_clone().map_err(io)?).stdout(output);
    let mut process = Process::spawn(command).map_err(io)?;
    match process.wait(patience).transpose().map_err(io)? {
        Some(status) if status.success() => Ok(()),
        Some(_) => Err(Error::new(format!("{failure}; its last lines:\n{}", log_tail(&log)))),
        None => {
            Err(Error::new(format!("{failure} within {} s; its last lines:\n{}", patience.as_secs(), log_tail(&log))))
        }
    }
}
