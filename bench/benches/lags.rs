//! Measures what a rebalance asks of the offset cache: the lags of many tasks, and what snapshots cost whoever changes an
//! entry meanwhile. See `docs/performance.md`.

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    // `cargo test --all-targets` runs this, too; `cargo bench` says so.
    if !env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    match kstate_bench::run_lags(env::args_os()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
