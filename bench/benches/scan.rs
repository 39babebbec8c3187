//! Measures the start-up scan beside opening each store read-write, one after the other, and prints a table. See
//! `docs/performance.md`.

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    // `cargo test --all-targets` runs this, too; `cargo bench` says so.
    if !env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    match kstate_bench::run_scan(env::args_os()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
