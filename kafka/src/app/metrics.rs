//! What apps do and are at, told to the facade [`metrics`](https://docs.rs/metrics). With the feature `metrics`.
//!
//! Install a recorder before [`start`](super::App::start): that is when an app registers what it tells, once. It tells it
//! as it tells [`RunningApp::stats`](super::RunningApp::stats), at most ten times a second for each thread: nothing is
//! done for each record or each `get`.
//!
//! | name | kind | unit | what |
//! | --- | --- | --- | --- |
//! | `kstate_process_total` | counter | records | source records that were taken in |
//! | `kstate_dropped_records_total` | counter | records | those whose processor failed and that were skipped |
//! | `kstate_commit_total` | counter | checkpoints | those that committed something |
//! | `kstate_commit_failed_total` | counter | checkpoints | those that failed; most of them were taken again |
//! | `kstate_commit_latency_seconds` | histogram | seconds | how long each took that committed something |
//! | `kstate_changelog_records_total` | counter | records | those that were written to changelogs |
//! | `kstate_restore_records_total` | counter | records | those that restores have applied |
//! | `kstate_restore_wiped_total` | counter | stores | those that were wiped and restored from the start, new ones too |
//! | `kstate_standby_records_total` | counter | records | those that the updates of copies have applied |
//! | `kstate_restart_total` | counter | restarts | how often the thread closed its tasks and joined its group again |
//! | `kstate_worker_done_total` | counter | records | those that workers have done |
//! | `kstate_worker_retries_total` | counter | attempts | those that failed and were followed by another |
//! | `kstate_dead_letters_total` | counter | records | those that went to the dead letters |
//! | `kstate_ignored_failures_total` | counter | outputs | those that were not delivered and did not have to be |
//! | `kstate_late_acks_total` | counter | outputs | answers that came after another output of the record had decided |
//! | `kstate_worker_late_total` | counter | records | results of workers that came after their partition was given up |
//! | `kstate_tasks` | gauge | tasks | those that run |
//! | `kstate_standby_tasks` | gauge | tasks | those that run elsewhere and have a copy here |
//! | `kstate_uncommitted_bytes` | gauge | bytes | what is staged for the next checkpoint |
//! | `kstate_in_flight_records` | gauge | records | those that workers have or that wait for them |
//! | `kstate_oldest_in_flight_seconds` | gauge | seconds | for how long the oldest of them is in flight |
//! | `kstate_waiting_for_retry_records` | gauge | records | those of them that wait for another attempt |
//! | `kstate_finished_above_records` | gauge | records | those that are finished above one that is not |
//!
//! The names are those of Kafka Streams where it has the same: `process-total`, `commit-total`, `commit-latency`,
//! `dropped-records-total`, `uncommitted-bytes`. Rates, averages and maxima are the exporter's to make.
//!
//! Each has two labels: `app`, the app's id, and `thread`, the thread's number, or `standbys` for what is done for copies.
//!
//! When a thread ends, or begins anew, its gauges are zero. Counters go on where they were if an app of the same id is
//! started later in the same process. Two that run in one process at a time have the same gauges, and the last one to
//! tell is heard.

use std::time::Duration;

use metrics::{
    Counter, Gauge, Histogram, Label, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};

use super::AppStats;

/// How long each checkpoint took.
const COMMIT_LATENCY: &str = "kstate_commit_latency_seconds";

/// Reads a number of the stats.
type Of<T> = fn(&AppStats) -> T;

/// One number of the stats.
struct Told<T> {
    name: &'static str,
    unit: Unit,
    what: &'static str,
    of: Of<T>,
}

impl<T> Told<T> {
    const fn new(name: &'static str, unit: Unit, what: &'static str, of: Of<T>) -> Self {
        Self { name, unit, what, of }
    }

    const fn count(name: &'static str, what: &'static str, of: Of<T>) -> Self {
        Self::new(name, Unit::Count, what, of)
    }
}

const WIPED: Told<u64> = Told::count(
    "kstate_restore_wiped_total",
    "Stores that were wiped and restored from the start, new ones too",
    |stats| stats.wiped_stores,
);

/// What a thread has done.
const COUNTERS: [Told<u64>; 14] = [
    Told::count("kstate_process_total", "Source records that were taken in", |stats| stats.records),
    Told::count("kstate_dropped_records_total", "Records whose processor failed and that were skipped", |stats| {
        stats.skipped_records
    }),
    Told::count("kstate_commit_total", "Checkpoints that committed something", |stats| stats.checkpoints),
    Told::count("kstate_commit_failed_total", "Checkpoints that failed", |stats| stats.failed_checkpoints),
    Told::count("kstate_changelog_records_total", "Records that were written to changelogs", |stats| {
        stats.changelog_records
    }),
    Told::count("kstate_restore_records_total", "Records that restores have applied", |stats| stats.restored_records),
    WIPED,
    Told::count("kstate_restart_total", "How often the thread closed its tasks and joined its group again", |stats| {
        stats.restarts
    }),
    Told::count("kstate_worker_done_total", "Records that workers have done", |stats| stats.workers.done),
    Told::count("kstate_worker_retries_total", "Attempts that failed and were followed by another", |stats| {
        stats.workers.retries
    }),
    Told::count("kstate_dead_letters_total", "Records that went to the dead letters", |stats| {
        stats.workers.dead_letters
    }),
    Told::count("kstate_ignored_failures_total", "Outputs that were not delivered and did not have to be", |stats| {
        stats.ignored_failures
    }),
    Told::count("kstate_late_acks_total", "Answers that came after another output had decided", |stats| {
        stats.late_acks
    }),
    Told::count(
        "kstate_worker_late_total",
        "Results of workers that came after their partition was given up",
        |stats| stats.workers.late,
    ),
];

/// What a thread is at.
const GAUGES: [Told<f64>; 6] = [
    Told::count("kstate_tasks", "Tasks that run", |stats| level(stats.tasks as u64)),
    Told::new("kstate_uncommitted_bytes", Unit::Bytes, "What is staged for the next checkpoint", |stats| {
        level(stats.staged_bytes)
    }),
    Told::count("kstate_in_flight_records", "Records that workers have or that wait for them", |stats| {
        level(stats.in_flight as u64)
    }),
    Told::new(
        "kstate_oldest_in_flight_seconds",
        Unit::Seconds,
        "For how long the oldest record of the workers is in flight",
        |stats| stats.oldest_in_flight.as_secs_f64(),
    ),
    Told::count("kstate_waiting_for_retry_records", "Records that wait for another attempt", |stats| {
        level(stats.waiting_for_retry as u64)
    }),
    Told::count("kstate_finished_above_records", "Records that are finished above one that is not", |stats| {
        level(stats.finished_above as u64)
    }),
];

/// What was done for the copies.
const STANDBY_COUNTERS: [Told<u64>; 2] = [
    Told::count("kstate_standby_records_total", "Records that the updates of copies have applied", |stats| {
        stats.standby_records
    }),
    WIPED,
];

/// What the copies are at.
const STANDBY_GAUGES: [Told<f64>; 1] =
    [Told::count("kstate_standby_tasks", "Tasks that run elsewhere and have a copy here", |stats| {
        level(stats.standby_tasks as u64)
    })];

#[allow(clippy::cast_precision_loss, reason = "a gauge is a float, whatever it shows")]
fn level(count: u64) -> f64 {
    count as f64
}

/// What the threads of one app tell.
#[derive(Default)]
pub(crate) struct Metrics {
    threads: Vec<Published>,
}

impl Metrics {
    /// Describes and registers everything that the `threads` of `app`, and its standbys if it has any, will tell.
    pub(crate) fn register(app: &str, threads: usize, standbys: bool) -> Self {
        describe();
        let mut all: Vec<_> = (0..threads)
            .map(|thread| Published::register(&labels(app, thread.to_string()), &COUNTERS, &GAUGES, true))
            .collect();
        if standbys {
            all.push(Published::register(&labels(app, "standbys".into()), &STANDBY_COUNTERS, &STANDBY_GAUGES, false));
        }
        Self { threads: all }
    }

    /// `thread` had told `before`, and tells `now`.
    pub(crate) fn tell(&self, thread: usize, before: &AppStats, now: &AppStats) {
        let Some(published) = self.threads.get(thread) else { return };
        for (counter, of) in &published.counters {
            // What was added, not the number itself: an app that is started again begins with zero.
            counter.increment(of(now).saturating_sub(of(before)));
        }
        for (gauge, of) in &published.gauges {
            gauge.set(of(now));
        }
    }

    /// A checkpoint of `thread` took so long.
    pub(crate) fn checkpointed(&self, thread: usize, elapsed: Duration) {
        if let Some(latency) = self.threads.get(thread).and_then(|published| published.commit_latency.as_ref()) {
            latency.record(elapsed);
        }
    }
}

/// What one thread tells.
struct Published {
    counters: Vec<(Counter, Of<u64>)>,
    gauges: Vec<(Gauge, Of<f64>)>,
    commit_latency: Option<Histogram>,
}

impl Published {
    fn register(labels: &[Label], counters: &[Told<u64>], gauges: &[Told<f64>], commits: bool) -> Self {
        Self {
            counters: counters.iter().map(|told| (counter!(told.name, labels.iter()), told.of)).collect(),
            gauges: gauges.iter().map(|told| (gauge!(told.name, labels.iter()), told.of)).collect(),
            commit_latency: commits.then(|| histogram!(COMMIT_LATENCY, labels.iter())),
        }
    }
}

fn labels(app: &str, thread: String) -> [Label; 2] {
    [Label::new("app", app.to_owned()), Label::new("thread", thread)]
}

fn describe() {
    for told in COUNTERS.iter().chain(&STANDBY_COUNTERS) {
        describe_counter!(told.name, told.unit, told.what);
    }
    for told in GAUGES.iter().chain(&STANDBY_GAUGES) {
        describe_gauge!(told.name, told.unit, told.what);
    }
    describe_histogram!(COMMIT_LATENCY, Unit::Seconds, "How long each checkpoint took that committed something");
}
