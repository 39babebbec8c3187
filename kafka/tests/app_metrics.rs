//! What apps tell the facade `metrics`, on the embedded cluster.

#![cfg(feature = "metrics")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]
#![allow(clippy::float_cmp, clippy::cast_precision_loss, reason = "whole numbers, told as floats")]

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use kstate_kafka::app::{App, OnError, OutputRecord, OwnedRecord, RunningApp, SourceRecord, TaskContext};
use kstate_processing::{ExecutorSettings, ProcessError, ProcessorFn, Work};
use metrics::with_local_recorder;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

mod app_support;
use app_support::{PATIENCE, Recorder, World, count, count_in, threads, wait_until};

/// What was told by one moment: by name, and by the threads that told it.
struct Told(BTreeMap<String, BTreeMap<String, DebugValue>>);

impl Told {
    /// Counters and gauges begin with zero again, and histograms with nothing: that is how the recorder is.
    fn take(snapshotter: &Snapshotter, app: &str) -> Self {
        let mut all: BTreeMap<String, BTreeMap<String, DebugValue>> = BTreeMap::new();
        for (key, unit, description, value) in snapshotter.snapshot().into_vec() {
            let key = key.key();
            assert!(unit.is_some() && description.is_some(), "{key} is not described");
            let labels: BTreeMap<_, _> = key.labels().map(|label| (label.key(), label.value())).collect();
            assert_eq!(labels["app"], app, "{key}");
            all.entry(key.name().to_owned()).or_default().insert(labels["thread"].to_owned(), value);
        }
        Self(all)
    }

    fn of(&self, name: &str) -> impl Iterator<Item = &DebugValue> {
        self.0.get(name).unwrap_or_else(|| panic!("{name} is not told")).values()
    }

    /// Of all threads.
    fn counter(&self, name: &str) -> u64 {
        let count = |value: &DebugValue| match value {
            DebugValue::Counter(count) => *count,
            other => panic!("{name} is {other:?}"),
        };
        self.of(name).map(count).sum()
    }

    fn gauge(&self, name: &str) -> f64 {
        let level = |value: &DebugValue| match value {
            DebugValue::Gauge(level) => level.into_inner(),
            other => panic!("{name} is {other:?}"),
        };
        self.of(name).map(level).sum()
    }

    fn samples(&self, name: &str) -> Vec<f64> {
        let samples = |value: &DebugValue| match value {
            DebugValue::Histogram(samples) => samples.iter().map(|sample| sample.into_inner()).collect::<Vec<_>>(),
            other => panic!("{name} is {other:?}"),
        };
        self.of(name).flat_map(samples).collect()
    }

    fn assert_gauges_are_zero(&self) {
        for (name, values) in &self.0 {
            for (thread, value) in values {
                if let DebugValue::Gauge(level) = value {
                    assert_eq!(level.into_inner(), 0.0, "{name} of {thread}");
                }
            }
        }
    }
}

fn stop(app: RunningApp) {
    app.stop_handle().stop();
    app.join().unwrap();
}

/// Waits until gauges that were read by a snapshot are told again.
fn tell_again() {
    thread::sleep(Duration::from_millis(500));
}

#[test]
fn what_an_app_does_is_told_through_restarts_and_a_lost_disk() {
    let mut world = World::embedded(4);
    let recorder = DebuggingRecorder::new();
    let (snapshotter, heard) = (recorder.snapshotter(), Recorder::default());
    let start = |world: &World, directory: &Path| {
        let app = world.app(directory, &heard).alone().threads(threads(2)).on_error(|_| OnError::Skip);
        let process = |record: &SourceRecord<'_>, context: &TaskContext<'_>| {
            if record.offset().get() == 7 { Err("not this one".into()) } else { count(record, context) }
        };
        with_local_recorder(&recorder, || app.start(process)).unwrap()
    };
    let processed = |app: &RunningApp, records| wait_until("all is processed", || app.stats().records == records);

    let first = tempfile::tempdir().unwrap();
    let app = start(&world, first.path());
    world.feed(1000);
    processed(&app, 1000);
    wait_until("all runs and is told", || app.stats().tasks == 4);
    assert_eq!(Told::take(&snapshotter, "app").gauge("kstate_tasks"), 4.0);
    tell_again();
    stop(app);
    // Counters were read by the snapshot: from here on they are of what comes now.
    Told::take(&snapshotter, "app").assert_gauges_are_zero();

    heard.take();
    let restarted = start(&world, first.path());
    world.feed(400);
    processed(&restarted, 400);
    tell_again();
    stop(restarted);
    let changelog = u64::try_from(world.changelog_records()).unwrap();
    let second = tempfile::tempdir().unwrap();
    let restored = start(&world, second.path());
    world.feed(300);
    processed(&restored, 300);
    tell_again();
    stop(restored);

    let told = Told::take(&snapshotter, "app");
    assert_eq!(told.counter("kstate_process_total"), 400 + 300, "of both, though the second began with zero");
    assert_eq!(told.counter("kstate_dropped_records_total"), 0, "they were before");
    assert_eq!(told.counter("kstate_restore_records_total"), changelog);
    assert_eq!(told.counter("kstate_restore_wiped_total"), 4);
    assert_eq!((told.counter("kstate_restart_total"), told.counter("kstate_commit_failed_total")), (0, 0));
    let checkpoints = heard.look(|heard| heard.checkpoints);
    assert!(checkpoints >= 2, "one of each at least");
    assert_eq!(told.counter("kstate_commit_total"), checkpoints);
    let latencies = told.samples("kstate_commit_latency_seconds");
    assert_eq!(latencies.len() as u64, checkpoints);
    assert!(latencies.iter().all(|seconds| *seconds > 0.0 && *seconds < 60.0), "{latencies:?}");
    told.assert_gauges_are_zero();
}

#[test]
fn what_is_staged_skipped_and_written_is_told() {
    let mut world = World::embedded(1);
    world.feed(100);
    let recorder = DebuggingRecorder::new();
    let (state, snapshotter) = (tempfile::tempdir().unwrap(), recorder.snapshotter());
    let app: App = world.app(state.path(), &Recorder::default()).alone().on_error(|_| OnError::Skip);
    let app = app.commit_interval(Duration::from_secs(3600));
    let process = |record: &SourceRecord<'_>, context: &TaskContext<'_>| {
        if record.offset().get() < 10 { Err("not these".into()) } else { count(record, context) }
    };
    let app = with_local_recorder(&recorder, || app.start(process)).unwrap();
    wait_until("all is processed", || app.stats().records == 100 && app.stats().staged_bytes > 0);
    let staged = app.stats().staged_bytes;
    let told = Told::take(&snapshotter, "app");
    assert_eq!((told.counter("kstate_process_total"), told.counter("kstate_dropped_records_total")), (100, 10));
    assert_eq!(told.gauge("kstate_uncommitted_bytes"), staged as f64);
    assert_eq!(told.counter("kstate_commit_total"), 0);
    tell_again();
    stop(app);
    let told = Told::take(&snapshotter, "app");
    assert_eq!((told.counter("kstate_commit_total"), told.counter("kstate_changelog_records_total")), (1, 90));
    assert_eq!(told.samples("kstate_commit_latency_seconds").len(), 1);
    told.assert_gauges_are_zero();
}

#[test]
fn what_workers_have_is_told_and_nothing_is_in_flight_at_the_end() {
    let mut world = World::embedded(1);
    world.feed(100);
    let recorder = DebuggingRecorder::new();
    let (state, snapshotter) = (tempfile::tempdir().unwrap(), recorder.snapshotter());
    let hangs = Arc::new(AtomicBool::new(true));
    let hanging = Arc::clone(&hangs);
    let process = move |record: &OwnedRecord, work: &mut Work<'_, OutputRecord>| -> Result<(), ProcessError> {
        let begun = Instant::now();
        // Not for ever: an app that is dropped by a failed assertion waits for it.
        while record.get().offset().get() == 99 && hanging.load(Ordering::Relaxed) && begun.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(5));
        }
        count_in(work, record).map(drop)
    };
    let settings = ExecutorSettings { workers: 4, ..ExecutorSettings::default() };
    let processor = ProcessorFn::<_, OwnedRecord, OutputRecord>::new(process);
    let app = world.app(state.path(), &Recorder::default()).alone();
    let app = with_local_recorder(&recorder, || app.start_workers(settings, processor)).unwrap();
    wait_until("all but one are done", || app.stats().workers.done == 99 && app.stats().in_flight == 1);
    tell_again();
    let told = Told::take(&snapshotter, "app");
    assert_eq!((told.counter("kstate_worker_done_total"), told.gauge("kstate_in_flight_records")), (99, 1.0));
    assert!(told.gauge("kstate_oldest_in_flight_seconds") > 0.0);
    tell_again();
    hangs.store(false, Ordering::Relaxed);
    stop(app);
    let told = Told::take(&snapshotter, "app");
    assert_eq!(told.counter("kstate_worker_done_total"), 1);
    told.assert_gauges_are_zero();
}

#[test]
fn what_copies_get_is_told_and_every_name_is_in_the_list() {
    let mut world = World::embedded(4);
    world.feed(500);
    let (heard, states) = ([Recorder::default(), Recorder::default()], [(); 2].map(|()| tempfile::tempdir().unwrap()));
    let app = |member: usize| world.app(states[member].path(), &heard[member]).standbys(true);
    let first = app(0).start(count).unwrap();
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let second = with_local_recorder(&recorder, || app(1).start(count)).unwrap();
    world.feed_until_shared(&first, &second);
    world.wait_for_counts(&[&first, &second]);
    wait_until("the copies follow", || {
        second.stats().standby_tasks == 2 && heard[1].look(|heard| heard.standby_records) > 0
    });
    stop(first);
    wait_until("the copies are tasks now", || second.stats().tasks == 4);
    stop(second);
    let told = Told::take(&snapshotter, "app");
    assert_eq!(told.counter("kstate_standby_records_total"), heard[1].look(|heard| heard.standby_records));
    assert_eq!(told.0["kstate_standby_tasks"].keys().collect::<Vec<_>>(), ["standbys"]);
    assert_eq!(told.0["kstate_tasks"].keys().collect::<Vec<_>>(), ["0"]);
    assert_eq!(told.0["kstate_restore_wiped_total"].keys().collect::<Vec<_>>(), ["0", "standbys"]);

    let list = include_str!("../src/app/metrics.rs").lines().filter_map(|line| line.strip_prefix("//! | `"));
    let listed: BTreeMap<_, _> = list
        .map(|row| {
            let mut cells = row.split(" | ");
            (cells.next().unwrap().trim_end_matches('`').to_owned(), cells.next().unwrap())
        })
        .collect();
    let names = told.0.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(listed.keys().cloned().collect::<BTreeSet<_>>(), names);
    for (name, values) in &told.0 {
        let kind = match values.values().next().unwrap() {
            DebugValue::Counter(_) => "counter",
            DebugValue::Gauge(_) => "gauge",
            DebugValue::Histogram(_) => "histogram",
        };
        assert_eq!(listed[name], kind, "{name}");
    }
}
