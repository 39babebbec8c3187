//! Format, lints and documentation.

use crate::cargo;
use crate::child;
use crate::failure::Result;
use crate::report;

pub(crate) fn format() -> Result<()> {
    report::step("format");
    if !has("fmt") {
        return Ok(());
    }
    let mut command = cargo::cargo("fmt");
    command.args(["--all", "--check"]);
    child::run(command, |_| {})
}

pub(crate) fn clippy() -> Result<()> {
    report::step("lints");
    if !has("clippy") {
        return Ok(());
    }
    let mut command = cargo::release("clippy");
    command.args(["--all-targets", "--", "-D", "warnings"]);
    child::run(command, |_| {})
}

pub(crate) fn documentation() -> Result<()> {
    report::step("documentation");
    let mut command = cargo::release("doc");
    command.arg("--no-deps").env("RUSTDOCFLAGS", "-D warnings");
    child::run(command, |_| {})
}

/// A toolchain may come without these components; the tests are worth running all the same.
fn has(component: &str) -> bool {
    let mut version = cargo::cargo(component);
    version.arg("--version");
    let there = child::succeeds(version);
    if !there {
        report::left_out(&format!("SKIPPED: this toolchain has no `cargo {component}`"));
    }
    there
}
