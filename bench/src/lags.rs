//! What a rebalance asks of the offset cache, and what that costs whoever changes an entry meanwhile.

use std::{
    hint::black_box,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use clap::Parser;
use kstate_api::Offset;
use kstate_offset_cache::{AllLogEnds, Lag, LogEnds, OffsetSnapshot, TaskLags};

use crate::{Result, known_tasks::KnownTasks, sample::Sample, spread::Spread};

/// The longest that the lags of 10 000 tasks may take.
const AIM: Duration = Duration::from_millis(5);
/// The end of each changelog.
const END: i64 = 1_000;
/// How many changes of an entry are measured for each round of the others.
const CHANGES: u64 = 400;

/// Measures the lags of many tasks of two changelogs each, and what snapshots cost whoever changes an entry meanwhile.
#[derive(Clone, Debug, Parser)]
pub(crate) struct LagsArguments {
    /// How many tasks there are.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    tasks: u32,
    /// How often each is measured.
    #[arg(long, default_value_t = 51, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// What `cargo bench` adds.
    #[arg(long, hide = true)]
    bench: bool,
}

pub(crate) fn run(arguments: &LagsArguments) -> Result<()> {
    let LagsArguments { tasks, rounds, .. } = *arguments;
    let known = KnownTasks::make(tasks)?;
    println!("{tasks} tasks of two changelogs each, known from a start-up scan; {rounds} rounds\n");

    let ends = ends(&known)?;
    let snapshot = known.cache().snapshot();
    let lags = || Ok(TaskLags::of_snapshot(known.tasks(), &snapshot, &ends));
    check(&lags()?, tasks)?;
    let samples = (0..rounds).map(|_| Sample::of(lags).map(|(_, sample)| sample)).collect::<Result<Vec<_>>>()?;
    let wall = Spread::of(samples.iter().map(|sample| sample.wall));
    let verdict = if wall.median() <= AIM { "met" } else { "missed" };
    println!("- the lags of all tasks: {wall} (aim for 10 000 tasks: {AIM:?}, {verdict})");
    println!("- their processor time: {}", Spread::of(samples.iter().map(|sample| sample.cpu)));

    println!("- a snapshot: {}", Spread::of((0..rounds).map(|_| time(|| known.cache().snapshot()))));
    let copies = Spread::of((0..rounds).map(|_| time(|| read(&snapshot))));
    println!("- reading a snapshot whole, for which no writer waits: {copies}");
    drop(snapshot);
    println!("- a change of an entry: {}", changes(&known, rounds));
    println!(
        "- the same, beside a thread that reads one snapshot after the other: {}",
        beside_a_reader(&known, rounds)
    );
    Ok(())
}

fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    let done = work();
    let took = start.elapsed();
    drop(black_box(done));
    took
}

fn ends(known: &KnownTasks) -> Result<AllLogEnds> {
    let ends = LogEnds { start: Offset::ZERO, end: Offset::try_from(END)? };
    let changelogs = known.tasks().iter().flat_map(|(_, changelogs)| changelogs);
    Ok(changelogs.map(|changelog| (changelog.clone(), Ok(ends))).collect())
}

/// What is measured must be right.
fn check(lags: &TaskLags, tasks: u32) -> Result<()> {
    let expected = Lag::Behind(2 * (END - KnownTasks::OFFSET - 1).unsigned_abs());
    let right = lags.iter().filter(|(_, lag)| lag.total() == expected).count();
    let complete = right == usize::try_from(tasks)?;
    if complete { Ok(()) } else { Err(format!("only {right} of {tasks} tasks have a lag of {expected}").into()) }
}

fn read(snapshot: &OffsetSnapshot) -> usize {
    snapshot.iter().flat_map(|(_, offsets)| offsets.iter()).filter(|(_, offset)| offset.offset().is_some()).count()
}

fn changes(known: &KnownTasks, rounds: u64) -> Spread {
    Spread::of((0..rounds * CHANGES).map(|_| time(|| known.change())))
}

fn beside_a_reader(known: &KnownTasks, rounds: u64) -> Spread {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                black_box(read(&known.cache().snapshot()));
            }
        });
        let spread = changes(known, rounds);
        ended.store(true, Ordering::Relaxed);
        spread
    })
}
