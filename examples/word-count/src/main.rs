//! Counts words on Kafka with a state store that survives kill -9.
//!
//! One process feeds text to a topic, chunk by chunk. An [app](kstate_kafka::app) counts it, `counter.rs`: each partition
//! is a task with one store, which holds how often each word came; every change of the store goes to a changelog topic.
//! With `--kill` the counting is done in another process, which is killed again and again: its stores are restored from
//! where their own commit left them, and the counts are exact all the same. With `--standby` there are two such
//! processes, and one takes over what the other one had.

mod broker;
mod child;
mod chunker;
mod cli;
mod counter;
mod counting;
mod counting_process;
mod decoder;
mod failure;
mod feeder;
mod input;
mod job;
mod kill_gate;
mod kill_pacer;
mod merge;
mod orders;
mod outcome;
mod plain_count;
mod progress;
mod protocol;
mod random;
mod report;
mod run;
mod state_dir;
mod stop;
mod stores;
mod supervised;
mod supervisor;
mod tally;
mod task_counts;
mod teller;
mod top_words;
mod window;
mod words;

use std::{env, io, process::ExitCode};

use clap::Parser as _;
use tracing_subscriber::EnvFilter;

use crate::{cli::Cli, failure::Failure};

/// What a shell reports of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    init_logging();
    if env::args_os().nth(1).is_some_and(|argument| argument == counting_process::ARGUMENT) {
        return counting_process::run();
    }
    match run::run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            if matches!(failure, Failure::Stopped) { ExitCode::from(INTERRUPTED) } else { ExitCode::FAILURE }
        }
    }
}

/// Nothing is logged unless `RUST_LOG` asks for it: a failure is one sentence.
fn init_logging() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("off"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).init();
}
