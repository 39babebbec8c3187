//! What must be installed on the machine before cargo can build everything here.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kstate_test_broker::Tools;

use crate::child;
use crate::failure::{Failure, Result};
use crate::report;

/// Tells that what a package brings is there already.
type IsThere = fn() -> bool;

/// The Debian packages.
const NEEDED: [(&str, IsThere); 6] = [
    ("gcc", || on_path("cc") || on_path("gcc")),
    ("g++", || on_path("c++") || on_path("g++")),
    ("make", || on_path("make")),
    ("pkg-config", || on_path("pkg-config")),
    ("zlib1g-dev", || Path::new("/usr/include/zlib.h").exists()),
    ("libclang-dev", has_libclang),
];

/// Installs what is missing when this is root on a Debian or Ubuntu machine, and says what to install elsewhere.
pub(crate) fn ensure() -> Result<()> {
    report::step("system packages");
    let mut missing: Vec<&str> = NEEDED.iter().filter(|(_, there)| !there()).map(|(package, _)| *package).collect();
    // Where nothing may be skipped, the broker's tests are needed like any other.
    if report::everything_is_required() && Tools::find().is_err() {
        missing.extend(["default-jre-headless", "maven"]);
    }
    if missing.is_empty() {
        report::note("all there");
        return Ok(());
    }
    let missing = missing.join(" ");
    if !on_path("apt-get") {
        return Err(Failure::new(format!("install what these Debian packages bring, then try again: {missing}")));
    }
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::new(format!("run this, then try again: sudo apt-get install {missing}")));
    }
    report::note(&format!("installing {missing}"));
    apt_get(&["update"])?;
    let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
    arguments.extend(missing.split(' '));
    apt_get(&arguments)
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command.arg("--quiet").args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    child::run(command, |_| {})
}

fn on_path(program: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

/// The library alone is not enough: without the compiler's own headers beside it no C header can be parsed.
fn has_libclang() -> bool {
    env::var_os("LIBCLANG_PATH").is_some()
        || library_folders().iter().any(|folder| has_library(folder) && has_headers(folder))
}

fn library_folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = ["/usr/lib64", "/usr/lib", "/usr/local/lib"].iter().map(PathBuf::from).collect();
    folders.extend(entries(Path::new("/usr/lib"), "llvm").into_iter().map(|folder| folder.join("lib")));
    folders
}

fn has_library(folder: &Path) -> bool {
    entries(folder, "libclang").iter().any(|path| path.to_string_lossy().contains(".so"))
}

fn has_headers(folder: &Path) -> bool {
    entries(&folder.join("clang"), "").iter().any(|version| version.join("include").join("stddef.h").is_file())
}

fn entries(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let begins =
        |path: &PathBuf| path.file_name().is_some_and(|name: &OsStr| name.to_string_lossy().starts_with(prefix));
    listed.filter(begins).collect()
}
