//! Finds the address of each order's customer, which takes long, with several workers.
//!
//! Orders come by customer, and those of a customer are processed in their order; others overtake them. One order is
//! poison: after its last attempt it goes to the dead letters. None of them holds up the others, nor what is committed:
//! checkpoints are taken with holes. `enricher.rs` is what an application writes; the rest feeds it and checks it.

mod cli;
mod enricher;
mod orders;
mod state;
mod topics;

use std::{
    error::Error,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use clap::Parser as _;
use kstate_api::StagedSupplier;
use kstate_kafka::app::{App, AppState, RunningApp};
use kstate_processing::{CheckpointMode, ExecutorSettings, RecordOrder, RetryPolicy};
use kstate_store_redb::{RedbBackends, RedbOptions};

use crate::{cli::Cli, enricher::enricher, orders::Orders, state::State, topics::Topics};

/// How long it may take to begin, and to read the dead letters.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it may take to commit the last orders.
const COMMIT_PATIENCE: Duration = Duration::from_secs(20);
const TICK: Duration = Duration::from_millis(5);

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<(), Box<dyn Error>> {
    let orders = Orders::new(cli.orders, Duration::from_millis(cli.lookup_ms.into()));
    let topics = Topics::create(cli.brokers.as_deref())?;
    let directory = tempfile::tempdir()?;
    let settings = ExecutorSettings {
        workers: cli.workers,
        order: RecordOrder::Key,
        checkpoint: CheckpointMode::Holes,
        retry: RetryPolicy::new(3).with_backoff(Duration::from_millis(200), Duration::from_secs(1)),
        ..ExecutorSettings::default()
    };
    let store = |name| StagedSupplier::new(name, RedbBackends::new(RedbOptions::new()));
    let app = App::new(topics.cluster(), &topics.id, directory.path())
        .source(&topics.orders)
        .store(store(state::ENRICHED)?)
        .store(store(state::COUNTS)?)
        .dead_letters(&topics.dead_letters)
        .guarantee(cli.guarantee.into())
        .commit_interval(Duration::from_millis(100))
        .start_workers(settings, enricher(orders))?;
    if app.wait_for(AppState::Running, PATIENCE) != AppState::Running {
        return Err(app.join().err().map_or_else(|| "the app does not come to run".into(), Into::into));
    }

    let started = Instant::now();
    topics.feed(orders)?;
    let most_holes = wait_until_done(&app, orders);
    let elapsed = started.elapsed();
    let expected = State::expected(orders);
    let found = expected.await_in(&app.queries(), COMMIT_PATIENCE)?;
    app.stop_handle().stop();
    let stats = app.stats();
    app.join()?;

    let dead_letters = topics.dead_letters(PATIENCE)?;
    println!("{} orders in {elapsed:.2?} with {} workers", stats.records, cli.workers);
    println!("one worker would need {:.2?} for its look-ups alone", orders.look_up_time());
    println!("{} dead letter after {} retries", dead_letters.len(), stats.workers.retries);
    println!("{} checkpoints; at most {most_holes} orders were done above one that was not", stats.checkpoints);
    expected.compare(&found)?;
    if dead_letters != [orders.poison()] {
        return Err(format!("the dead letters are {dead_letters:?}").into());
    }
    println!("every order, every count and the dead letter are as they should be");
    Ok(())
}

/// Waits until every order is done or a dead letter, or the app has failed, and tells how many holes there were at most.
fn wait_until_done(app: &RunningApp, orders: Orders) -> usize {
    let mut most_holes = 0;
    loop {
        let stats = app.stats();
        most_holes = most_holes.max(stats.finished_above);
        if stats.workers.done + stats.workers.dead_letters >= u64::from(orders.count()) || app.state().has_ended() {
            return most_holes;
        }
        thread::sleep(TICK);
    }
}
