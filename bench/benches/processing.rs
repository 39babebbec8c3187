//! Measures the offset tracker, the ack table and the executor beside the plainest code that does the same, and prints a
//! table. See `docs/performance.md`.

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    // `cargo test --all-targets` runs this, too; `cargo bench` says so.
    if !env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    match kstate_bench::run_processing(env::args_os()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
