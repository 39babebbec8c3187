//! The app while its broker is restarted, down, or does not answer. Each test has a broker of its own to do that to.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::{
    path::Path,
    process::Command,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use kstate_api::{ErrorKind, TopicPartition};
use kstate_kafka::{
    Cluster, GroupOffsets,
    app::{
        App, AppState, Guarantee, OutputRecord, OwnedRecord, ProcessingResult, RunningApp, SourceRecord, TaskContext,
    },
};
use kstate_processing::{CheckpointMode, ExecutorSettings, ProcessorFn, Work};
use kstate_test_broker::Broker;

mod app_support;
mod broker_support;
use app_support::{PATIENCE, Recorder, World, count, count_in, count_next, threads, wait_until};
use broker_support::unique;

/// A broker of the test's own. One test at a time has one: a machine that starts several is slow.
fn own_broker() -> (MutexGuard<'static, ()>, Broker) {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    (turn, Broker::start().unwrap())
}

/// The app of a broker that belongs to one test.
fn world(broker: &Broker, partitions: u32) -> World {
    World::at(Cluster::new(broker.bootstrap_servers()), &unique("app-faults"), partitions)
}

/// Counts the record's key, sends the count, and adds one to `processed`.
fn count_and_send(
    output: &str,
    processed: &Arc<AtomicU64>,
) -> impl Fn(&SourceRecord<'_>, &TaskContext<'_>) -> ProcessingResult + use<> {
    let (output, processed) = (output.to_owned(), Arc::clone(processed));
    move |record, context| {
        let count = count_next(record, context)?;
        context.send(&output, record.key(), Some(&count.to_be_bytes()))?;
        processed.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Nothing is lost and nothing is double, in the stores, in what a restore from nothing finds, and exactly once in the
/// output.
fn assert_exact(world: &World, guarantee: Guarantee) {
    let empty = tempfile::tempdir().unwrap();
    let app = world.app(empty.path(), &Recorder::default()).guarantee(guarantee).start(count).unwrap();
    world.wait_for_counts(&[&app]);
    drop(app);
    if guarantee == Guarantee::ExactlyOnce {
        world.assert_sent_exactly_once();
    }
}

/// The broker goes, by `end`, and comes back while the app is in the middle of its work.
fn restarted(guarantee: Guarantee, end: impl Fn(&mut Broker) -> kstate_test_broker::Result<()>) {
    let (_turn, mut broker) = own_broker();
    let mut world = world(&broker, 2);
    world.feed(2500);
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let process = count_and_send(&world.output, &Arc::default());
    let app = world.app(state.path(), &recorder).guarantee(guarantee).threads(threads(2));
    let app = app.start(move |record: &SourceRecord<'_>, context: &TaskContext<'_>| {
        // Slow enough for the broker to go in the middle.
        thread::sleep(Duration::from_millis(1));
        process(record, context)
    });
    let app = app.unwrap();
    wait_until("it takes checkpoints", || app.stats().checkpoints > 0);
    end(&mut broker).unwrap();
    thread::sleep(Duration::from_millis(500));
    broker.restart().unwrap();
    world.feed(100);
    world.wait_for_counts(&[&app]);
    app.stop_handle().stop();
    app.join().unwrap();
    assert_exact(&world, guarantee);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn a_broker_that_is_killed_and_comes_back_changes_nothing_at_least_once() {
    restarted(Guarantee::AtLeastOnce, Broker::kill);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn a_broker_that_is_killed_and_comes_back_changes_nothing_exactly_once() {
    restarted(Guarantee::ExactlyOnce, Broker::kill);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn a_broker_that_is_restarted_by_its_operator_changes_nothing_exactly_once() {
    restarted(Guarantee::ExactlyOnce, Broker::stop);
}

/// Starts an app that counts and sends.
type Start = fn(App, &World, &Arc<AtomicU64>) -> RunningApp;

fn one_after_the_other(app: App, world: &World, processed: &Arc<AtomicU64>) -> RunningApp {
    app.start(count_and_send(&world.output, processed)).unwrap()
}

fn with_workers(app: App, world: &World, processed: &Arc<AtomicU64>) -> RunningApp {
    let (output, processed) = (world.output.clone(), Arc::clone(processed));
    let settings = ExecutorSettings { workers: 4, checkpoint: CheckpointMode::Holes, ..ExecutorSettings::default() };
    let process = ProcessorFn::new(move |record: &OwnedRecord, work: &mut Work<'_, OutputRecord>| {
        let (key, count) = count_in(work, record)?;
        work.output(OutputRecord::by_key(output.as_str(), key, count));
        processed.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    app.start_workers(settings, process).unwrap()
}

/// A checkpoint falls into the time in which the broker is down. It is taken again, or its records come again.
fn down_at_a_checkpoint(guarantee: Guarantee, start: Start) {
    let (_turn, mut broker) = own_broker();
    let mut world = world(&broker, 2);
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let processed = Arc::default();
    let app = world.app(state.path(), &recorder).guarantee(guarantee);
    // No checkpoint but those that are asked for; what is not delivered within a second has failed.
    let app = app.commit_interval(Duration::from_secs(9)).delivery_timeout(Duration::from_secs(1));
    let app = start(app, &world, &processed);
    assert_eq!(app.wait_for(AppState::Running, PATIENCE), AppState::Running);
    world.feed(300);
    wait_until("all is processed", || processed.load(Ordering::Relaxed) >= 300);
    broker.kill().unwrap();
    app.request_checkpoint();
    wait_until("the checkpoint fails", || app.stats().failed_checkpoints > 0);
    broker.restart().unwrap();
    wait_until("another checkpoint succeeds", || {
        app.request_checkpoint();
        thread::sleep(Duration::from_millis(100));
        app_support::counts(&[&app]).as_ref() == Some(world.fed())
    });
    app.stop_handle().stop();
    app.join().unwrap();
    assert_exact(&world, guarantee);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p1_a_checkpoint_without_a_broker_is_taken_again_at_least_once() {
    down_at_a_checkpoint(Guarantee::AtLeastOnce, one_after_the_other);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p1_a_checkpoint_without_a_broker_is_taken_again_exactly_once() {
    down_at_a_checkpoint(Guarantee::ExactlyOnce, one_after_the_other);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p1_a_checkpoint_with_workers_and_without_a_broker_is_taken_again_at_least_once() {
    down_at_a_checkpoint(Guarantee::AtLeastOnce, with_workers);
}

/// What the workers did since the last checkpoint is taken back with the transaction, and they do it again.
#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p1_a_checkpoint_with_workers_and_without_a_broker_is_taken_again_exactly_once() {
    down_at_a_checkpoint(Guarantee::ExactlyOnce, with_workers);
}

/// A broker that does not answer, and keeps its connections, for as long as this lives.
struct Pause<'b>(&'b Broker);

impl<'b> Pause<'b> {
    fn of(broker: &'b Broker) -> Self {
        signal(broker, "-STOP");
        Self(broker)
    }
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        signal(self.0, "-CONT");
    }
}

fn signal(broker: &Broker, signal: &str) {
    let broker = broker.process_id().unwrap().to_string();
    assert!(Command::new("kill").args([signal, &broker]).status().unwrap().success());
}

/// The words are counted and committed, and the app has stopped.
fn count_all(world: &mut World, state: &Path) {
    world.feed(1000);
    let app = world.app(state, &Recorder::default()).start(count).unwrap();
    world.wait_for_counts(&[&app]);
    app.stop_handle().stop();
    app.join().unwrap();
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p3_a_look_up_of_offsets_that_is_not_answered_is_an_error_and_not_nothing() {
    let (_turn, broker) = own_broker();
    let mut world = world(&broker, 2);
    count_all(&mut world, tempfile::tempdir().unwrap().path());
    let partitions = [0, 1].map(|partition| TopicPartition::new(world.source.as_str(), partition));
    let group = GroupOffsets::new(&world.cluster, &world.id).unwrap();
    let before = group.committed(&partitions).unwrap().position;
    assert_eq!(before.iter().len(), 2);

    let pause = Pause::of(&broker);
    let asked = Instant::now();
    let error = group.committed(&partitions).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(asked.elapsed() < PATIENCE);
    drop(pause);
    assert_eq!(group.committed(&partitions).unwrap().position, before);
}

/// The broker falls silent at several moments of a start: at the look-up of offsets, at that of the changelogs' ends,
/// or in a restore. The app goes on where it was once the broker answers again.
fn silent_for_a_while(alone: bool) {
    let (_turn, broker) = own_broker();
    let mut world = world(&broker, 2);
    let state = tempfile::tempdir().unwrap();
    count_all(&mut world, state.path());
    for delay in [0, 30, 100, 300, 1000] {
        world.feed(100);
        let recorder = Recorder::default();
        let app = world.app(state.path(), &recorder);
        let app = if alone { app.alone() } else { app }.start(count).unwrap();
        thread::sleep(Duration::from_millis(delay));
        let pause = Pause::of(&broker);
        thread::sleep(Duration::from_secs(3));
        drop(pause);
        world.wait_for_counts(&[&app]);
        app.stop_handle().stop();
        app.join().unwrap();
        let heard = recorder.take();
        // A state that is wiped or replayed counts what the group has committed as if it were not.
        assert!(heard.restored.len() >= 2 && heard.restored.iter().all(|(_, restored)| restored.wiped.is_none()));
    }
    assert_exact(&world, Guarantee::AtLeastOnce);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p4_a_broker_that_is_silent_while_the_app_starts_is_waited_for() {
    silent_for_a_while(false);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p4_a_broker_that_is_silent_while_an_app_alone_starts_is_waited_for() {
    silent_for_a_while(true);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn a_broker_that_stays_silent_ends_the_app_as_unavailable() {
    let (_turn, broker) = own_broker();
    let mut world = world(&broker, 2);
    let state = tempfile::tempdir().unwrap();
    count_all(&mut world, state.path());
    world.feed(100);
    let recorder = Recorder::default();
    let app = world.app(state.path(), &recorder).alone().retry_timeout(Duration::from_secs(2)).start(count).unwrap();
    let pause = Pause::of(&broker);
    assert_eq!(app.wait_for(AppState::Failed, PATIENCE), AppState::Failed);
    let error = app.join().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    drop(pause);

    // What it had is still there.
    recorder.take();
    let app = world.app(state.path(), &recorder).alone().start(count).unwrap();
    world.wait_for_counts(&[&app]);
    assert!(recorder.take().restored.iter().all(|(_, restored)| restored.wiped.is_none()));
}
