//! kstate's stores beside the raw engines, doing the same work in the same run.
//!
//! For each engine and workload, the raw engine and the kstate store take turns, so that a machine that becomes slower
//! does so for both. What counts is the ratio of the two, not how fast either is on this machine. Each turn tells what
//! it found, and a comparison fails if the two did not do the same work.

mod arguments;
mod changelog;
mod comparison;
mod data;
mod digest;
mod engine;
mod known_tasks;
mod kstate;
mod lags;
mod plan;
mod processing;
mod raw_memory;
mod raw_redb;
#[cfg(feature = "rocksdb")]
mod raw_rocksdb;
mod reads;
mod redb_engine;
#[cfg(feature = "rocksdb")]
mod rocksdb_engine;
mod sample;
mod scan;
mod scan_stores;
mod spread;
mod store;
mod table;
mod writes;

use std::{error::Error, ffi::OsString, fs};

use clap::Parser;

use crate::{
    arguments::Arguments, changelog::ChangelogArguments, lags::LagsArguments, plan::Plan, scan::ScanArguments,
    table::Table,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Runs what the command line `arguments` (with the program's name first) ask for, and prints the table of the results.
///
/// # Errors
/// Whatever an engine met; a workload of which the two sides did not do the same.
///
/// ```
/// let arguments = ["stores", "--only", "memory", "--records", "1000", "--rounds", "1"];
/// kstate_bench::run(arguments.map(Into::into)).unwrap();
/// ```
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Result<()> {
    let arguments = Arguments::parse_from(arguments);
    let mut table = Table::new(&arguments);
    tell_load();
    for engine in engine::all(&arguments) {
        Plan::new(&arguments, &*engine).run(&mut table)?;
    }
    print!("{table}");
    Ok(())
}

/// Runs the start-up scan as the command line `arguments` (with the program's name first) ask for, beside opening one
/// store after the other, and prints the table of the results.
///
/// # Errors
/// Whatever an engine met; two sides that did not find the same.
///
/// ```
/// let arguments = ["scan", "--only", "redb", "--stores", "3", "--records", "100", "--rounds", "1"];
/// kstate_bench::run_scan(arguments.map(Into::into)).unwrap();
/// ```
pub fn run_scan(arguments: impl IntoIterator<Item = OsString>) -> Result<()> {
    tell_load();
    scan::run(&ScanArguments::parse_from(arguments))
}

/// Measures the lags of many tasks, and what snapshots of the offset cache cost whoever changes it, as the command line
/// `arguments` (with the program's name first) ask for, and prints them.
///
/// # Errors
/// What a store or the directory met; a lag that is wrong.
///
/// ```
/// let arguments = ["lags", "--tasks", "20", "--rounds", "2"];
/// kstate_bench::run_lags(arguments.map(Into::into)).unwrap();
/// ```
pub fn run_lags(arguments: impl IntoIterator<Item = OsString>) -> Result<()> {
    tell_load();
    lags::run(&LagsArguments::parse_from(arguments))
}

/// Measures restores and checkpoints on a real broker as the command line `arguments` (with the program's name first) ask
/// for, beside a bare consumer, stores that only apply, and a bare producer, and prints what they took.
///
/// # Errors
/// What the broker or a store met; two sides that did not do the same.
///
/// ```no_run
/// let arguments = ["changelog", "--brokers", "localhost:9092", "--records", "1000", "--rounds", "1"];
/// kstate_bench::run_changelog(arguments.map(Into::into)).unwrap();
/// ```
pub fn run_changelog(arguments: impl IntoIterator<Item = OsString>) -> Result<()> {
    tell_load();
    changelog::run(&ChangelogArguments::parse_from(arguments))
}

/// Prints what else the machine is doing.
fn tell_load() {
    if let Ok(load) = fs::read_to_string("/proc/loadavg") {
        println!("Load average before the run: {}\n", load.trim());
    }
}

/// Runs the offset tracker, the ack table and the executor as the command line `arguments` (with the program's name
/// first) ask for, beside the plainest code that does the same, and prints the table of the results.
///
/// # Errors
/// Whatever one of them met; two sides that did not come to the same.
///
/// ```
/// let arguments = ["processing", "--records", "20000", "--rounds", "1"];
/// kstate_bench::run_processing(arguments.map(Into::into)).unwrap();
/// ```
pub fn run_processing(arguments: impl IntoIterator<Item = OsString>) -> Result<()> {
    processing::run(&processing::ProcessingArguments::parse_from(arguments))
}

#[cfg(test)]
mod tests;
