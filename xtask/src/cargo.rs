//! How every step calls cargo, so that all of them compile the dependencies once and the same.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use kstate_test_broker::cache_directory;

/// Our own crates are tested with debug assertions and overflow checks; dependencies stay exactly as a plain
/// `cargo build --release` leaves them. `RocksDB`'s C++ takes 26 minutes on two cores for each profile it is built in.
const CHECKED_RELEASE: [&str; 4] = [
    "profile.release.debug-assertions=true",
    "profile.release.overflow-checks=true",
    "profile.release.package.\"*\".debug-assertions=false",
    "profile.release.package.\"*\".overflow-checks=false",
];

/// Which crates and features: always all, since another selection would give dependencies other features and so
/// compile them again.
const EVERYTHING: [&str; 2] = ["--workspace", "--all-features"];

/// The cargo that runs this program, with the build directory of the checks.
pub(crate) fn cargo(subcommand: &str) -> Command {
    let mut command = Command::new(program());
    command.arg(subcommand).env("CARGO_TARGET_DIR", target_directory());
    // Cargo tells the programs it runs about the package they belong to; to the builds below it would be a change.
    for (name, _) in env::vars_os() {
        let told = name.to_string_lossy();
        if told.starts_with("CARGO_PKG_") || told.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// A cargo command that compiles.
pub(crate) fn release(subcommand: &str) -> Command {
    let mut command = cargo(subcommand);
    command.arg("--release").args(EVERYTHING);
    for setting in CHECKED_RELEASE {
        command.args(["--config", setting]);
    }
    command
}

pub(crate) fn program() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Outside the checkout, so that a fresh clone finds the dependencies compiled.
fn target_directory() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR").filter(|value| !value.is_empty()) {
        Some(chosen) => PathBuf::from(chosen),
        None => cache_directory().join("target"),
    }
}
