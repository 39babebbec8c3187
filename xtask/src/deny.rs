//! Licences, sources and banned crates; known vulnerabilities where the list of them can be had.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use kstate_test_broker::cache_directory;

use crate::cargo;
use crate::child;
use crate::failure::Result;
use crate::report;

/// Pinned, so that a new release changes nothing by itself.
const VERSION: &str = "0.20.2";
/// The list of vulnerabilities is on a host that many build machines cannot reach, and then tries for long.
const PATIENCE_SECONDS: &str = "30";

pub(crate) fn check() -> Result<()> {
    report::step("licences, sources and banned crates (cargo-deny)");
    let program = program()?;
    let mut command = deny(&program);
    command.args(["check", "bans", "licenses", "sources"]);
    child::run(command, |_| {})?;

    report::step("known vulnerabilities (cargo-deny)");
    let mut fetch = Command::new("timeout");
    fetch.arg(PATIENCE_SECONDS).arg(&program).args(["--all-features", "fetch", "db"]);
    if !child::succeeds(fetch) {
        report::left_out("SKIPPED: the list of known vulnerabilities could not be fetched, so none were looked for");
        return Ok(());
    }
    let mut command = deny(&program);
    command.args(["check", "--disable-fetch", "advisories"]);
    child::run(command, |_| {})
}

fn deny(program: &PathBuf) -> Command {
    let mut command = Command::new(program);
    command.arg("--all-features");
    command
}

/// The one on the PATH, or else ours in the cache, installed there the first time.
fn program() -> Result<PathBuf> {
    let mut on_path = Command::new("cargo-deny");
    on_path.arg("--version");
    if child::succeeds(on_path) {
        return Ok(PathBuf::from("cargo-deny"));
    }
    let tools = cache_directory().join(format!("tools-deny-{VERSION}"));
    let program = tools.join("bin").join(format!("cargo-deny{}", env::consts::EXE_SUFFIX));
    if !program.is_file() {
        report::note(&format!("installing cargo-deny {VERSION} into the cache, once; that takes some minutes"));
        let mut install = cargo::cargo("install");
        install.args(["--locked", "--version", VERSION, "--root"]).arg(&tools).arg("cargo-deny");
        // Cargo's own temporary build directory: what it compiles is of no use to anything here.
        install.env_remove("CARGO_TARGET_DIR");
        child::run(install, |_| {})?;
    }
    Ok(program)
}
