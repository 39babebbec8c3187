//! Measures restores and checkpoints on a real broker, named by `--brokers` or `KSTATE_TEST_BROKERS`. See
//! `docs/performance.md`.

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    // `cargo test --all-targets` runs this, too; `cargo bench` says so.
    if !env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    match kstate_bench::run_changelog(env::args_os()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
