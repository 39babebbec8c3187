//! The app with several workers for each task, on a real broker: kills, members that come and go, poison.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::{env, ops::Range, path::Path, slice, thread, time::Duration};

use kstate_api::{Offset, Position, Result, TopicPartition};
use kstate_checkpoint::SourceCommitter as _;
use kstate_kafka::{
    Cluster, GroupOffsets, SourceConsumer, TopicSpec, Topics, TransactionalProducer,
    app::{App, AppState, Guarantee, OutputRecord, OwnedRecord, RunningApp},
};
use kstate_processing::{CheckpointMode, ExecutorSettings, OnExhausted, ProcessError, ProcessorFn, RetryPolicy, Work};

mod app_support;
mod broker_support;
use app_support::{PATIENCE, Recorder, World, count, count_in, wait_until};
use broker_support::{cluster, process::Process, unique};

fn world(name: &str, partitions: u32) -> World {
    World::at(cluster(), &unique(name), partitions)
}

fn settings() -> ExecutorSettings {
    ExecutorSettings {
        workers: 4,
        checkpoint: CheckpointMode::Holes,
        retry: RetryPolicy::new(3).with_backoff(Duration::from_millis(20), Duration::from_millis(50)),
        ..ExecutorSettings::default()
    }
}

/// Starts `app`, which counts the records' keys and sends each count. Each takes a while, some a long one, and those at
/// `poison` fail.
fn start(app: App, settings: ExecutorSettings, output: &str, poison: Option<i64>) -> Result<RunningApp> {
    let output = output.to_owned();
    let slowly = ProcessorFn::new(move |record: &OwnedRecord, work: &mut Work<'_, OutputRecord>| {
        let source = record.get();
        thread::sleep(Duration::from_millis(if source.offset().get() % 97 == 13 { 150 } else { 1 }));
        let (key, count) = count_in(work, record)?;
        work.output(OutputRecord::by_key(output.as_str(), key, count));
        if poison == Some(source.offset().get()) { Err(ProcessError::retry("poison")) } else { Ok(()) }
    });
    app.start_workers(settings, slowly)
}

/// What a process of its own runs, until it is killed.
const CHILD: &str = "KSTATE_TEST_WORKERS";

/// The app in a process of its own: started by other tests, which kill it. Run by itself it does nothing.
#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn child_process() {
    let Ok(told) = env::var(CHILD) else { return };
    let [brokers, id, partitions, guarantee, state] = told.split('|').collect::<Vec<_>>()[..] else {
        panic!("{told}");
    };
    let world = World::at(Cluster::new(brokers), id, partitions.parse().unwrap());
    let guarantee = if guarantee == "ExactlyOnce" { Guarantee::ExactlyOnce } else { Guarantee::AtLeastOnce };
    let app = world.app(Path::new(state), &Recorder::default()).guarantee(guarantee).instance_id("one");
    start(app, settings(), &world.output, None).unwrap().join().unwrap();
}

fn start_process(world: &World, guarantee: Guarantee, state: &Path) -> Process {
    let (brokers, id, partitions) = (world.cluster.brokers(), &world.id, world.partitions);
    Process::start(CHILD, &format!("{brokers}|{id}|{partitions}|{guarantee:?}|{}", state.display()))
}

fn killed_again_and_again(guarantee: Guarantee) {
    let mut world = world("workers-kill", 2);
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let group = GroupOffsets::new(&world.cluster, &world.id).unwrap();
    let sources: Vec<_> = (0..2).map(|partition| TopicPartition::new(world.source.as_str(), partition)).collect();
    let mut holes = 0;
    for kill in 0..4_u64 {
        world.feed(1000);
        let before = world.changelog_records();
        let process = start_process(&world, guarantee, state.path());
        wait_until("it takes checkpoints", || world.changelog_records() > before);
        thread::sleep(Duration::from_millis(130 + 70 * kill));
        process.kill();
        let committed = group.committed(&sources).unwrap();
        assert!(committed.bare.is_empty(), "{committed:?}");
        holes += committed.position.iter().map(|(_, position)| position.finished().len()).sum::<usize>();
    }
    assert!(holes > 0, "no kill found a record that held up others: this tests nothing");
    let app = world.app(state.path(), &recorder).guarantee(guarantee).instance_id("one");
    let app = start(app, settings(), &world.output, None).unwrap();
    world.wait_for_counts(&[&app]);
    app.stop_handle().stop();
    app.join().unwrap();
    if guarantee == Guarantee::ExactlyOnce {
        world.assert_sent_exactly_once();
    }
    // The same from nothing: the changelog has it all.
    let empty = tempfile::tempdir().unwrap();
    let app = world.app(empty.path(), &recorder).guarantee(guarantee).instance_id("one").start(count).unwrap();
    world.wait_for_counts(&[&app]);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn a5_killed_again_and_again_it_counts_exactly_at_least_once() {
    killed_again_and_again(Guarantee::AtLeastOnce);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn a5_killed_again_and_again_it_counts_and_sends_exactly_once() {
    killed_again_and_again(Guarantee::ExactlyOnce);
}

/// Tasks move while their records are in flight.
fn members_come_and_go(guarantee: Guarantee) {
    let mut world = world("workers-members", 4);
    world.feed(1000);
    let (states, recorder) = ([tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()], Recorder::default());
    let member = |world: &World, member: usize| {
        let app = world.app(states[member].path(), &recorder).guarantee(guarantee);
        start(app, settings(), &world.output, None).unwrap()
    };
    let first = member(&world, 0);
    wait_until("it has begun", || app_support::counts(&[&first]).is_some_and(|counts| !counts.is_empty()));
    let second = member(&world, 1);
    world.feed_until_shared(&first, &second);
    world.feed(400);
    second.stop_handle().stop();
    second.join().unwrap();
    world.wait_for_counts(&[&first]);
    first.stop_handle().stop();
    first.join().unwrap();
    if guarantee == Guarantee::ExactlyOnce {
        world.assert_sent_exactly_once();
    }
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p5_tasks_move_with_records_in_flight_at_least_once() {
    members_come_and_go(Guarantee::AtLeastOnce);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p5_tasks_move_with_records_in_flight_exactly_once() {
    members_come_and_go(Guarantee::ExactlyOnce);
}

/// With dead letters the position passes a poison record, and without them it stays there; the others go on either way.
fn a_poison_record(guarantee: Guarantee) {
    let mut world = world("workers-poison", 1);
    world.feed(200);
    let letters = format!("{}-letters", world.id);
    Topics::new(&world.cluster).unwrap().ensure(&TopicSpec::new(&letters, 1)).unwrap();
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let source = TopicPartition::new(world.source.as_str(), 0);
    let group = GroupOffsets::new(&world.cluster, &world.id).unwrap();
    let committed = || group.committed(slice::from_ref(&source)).unwrap().position.get(&source).cloned().unwrap();
    let app = || world.app(state.path(), &recorder).guarantee(guarantee).dead_letters(letters.as_str());

    let halts = ExecutorSettings { on_exhausted: OnExhausted::Halt, ..settings() };
    let error = start(app(), halts, &world.output, Some(50)).unwrap().join().unwrap_err();
    assert!(error.to_string().contains("poison") && error.to_string().contains("50"), "{error}");
    // What else was done is committed before the end, and nothing else.
    let halted = committed();
    let is_poison = |range: &Range<Offset>| range.contains(&Offset::new(50).unwrap());
    assert!(halted.next().get() <= 50 && !halted.finished().iter().any(is_poison), "{halted}");
    let above: i64 = halted.finished().iter().map(|range| range.end.get() - range.start.get()).sum();
    let sent = world.sent().values().map(Vec::len).sum::<usize>();
    assert_eq!(i64::try_from(sent).unwrap(), halted.next().get() + above, "{halted}");

    let running = start(app(), settings(), &world.output, Some(50)).unwrap();
    wait_until("all others are counted", || app_support::counts(&[&running]).unwrap().values().sum::<u64>() == 199);
    running.stop_handle().stop();
    running.join().unwrap();
    assert_eq!((committed().next().get(), committed().finished().len()), (200, 0));
    let mut found = 0;
    world.read_committed(&letters, &mut |_| found += 1);
    assert_eq!(found, 1);
    assert_eq!(world.sent().values().map(Vec::len).sum::<usize>(), 199);

    let again = start(app(), settings(), &world.output, Some(50)).unwrap();
    assert_eq!(again.wait_for(AppState::Running, PATIENCE), AppState::Running);
    thread::sleep(Duration::from_millis(500));
    assert_eq!(again.stats().records, 0);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn a3_a_poison_record_at_least_once() {
    a_poison_record(Guarantee::AtLeastOnce);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn a3_a_poison_record_exactly_once() {
    a_poison_record(Guarantee::ExactlyOnce);
}

/// The source's last record is a marker, which no processor ever sees.
fn a_transactional_source_is_committed_to_its_end(workers: bool) {
    let world = world("workers-marker", 1);
    let source = TopicPartition::new(world.source.as_str(), 0);
    let producer = TransactionalProducer::new(&world.cluster, &unique("marker"), PATIENCE).unwrap();
    for _ in 0..3 {
        producer.send(&source, Some(b"word"), Some(b"1")).unwrap();
    }
    let mut nobody = SourceConsumer::assign(&world.cluster, &unique("nobody"), slice::from_ref(&source)).unwrap();
    producer.committer(&mut nobody).commit(&Position::new()).unwrap();

    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let app = world.app(state.path(), &recorder);
    let app = if workers { start(app, settings(), &world.output, None) } else { app.start(count) };
    let app = app.unwrap();
    let group = GroupOffsets::new(&world.cluster, &world.id).unwrap();
    let next = || group.committed(slice::from_ref(&source)).unwrap().position.next(&source).map(i64::from);
    wait_until("the group has committed the marker's slot too", || next() == Some(4));
    assert_eq!(app.stats().failed_checkpoints, 0);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn ho_01_a_transactional_source_is_committed_to_its_end() {
    a_transactional_source_is_committed_to_its_end(false);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn ho_01_a_transactional_source_is_committed_to_its_end_by_workers() {
    a_transactional_source_is_committed_to_its_end(true);
}

/// One of two partitions moves while a record of it takes longer than the last checkpoint may. What the transaction has
/// of it does not outlive the move: the next owner does it all again.
#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p5_what_cannot_be_drained_in_time_is_taken_back_exactly_once() {
    let mut world = world("app-undrained", 2);
    world.feed(200);
    let settings = ExecutorSettings { checkpoint: CheckpointMode::Drain, ..settings() };
    let (first_state, second_state, recorder) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Recorder::default());
    let start = |state: &Path, longest: Duration| {
        let output = world.output.clone();
        let process = ProcessorFn::new(move |record: &OwnedRecord, work: &mut Work<'_, OutputRecord>| {
            if record.get().offset().get() == 40 {
                thread::sleep(longest);
            }
            let (key, count) = count_in(work, record)?;
            work.output(OutputRecord::by_key(output.as_str(), key, count));
            Ok(())
        });
        let app = world.app(state, &recorder).guarantee(Guarantee::ExactlyOnce).stop_timeout(Duration::from_secs(1));
        app.start_workers(settings, process).unwrap()
    };
    let first = start(first_state.path(), Duration::from_secs(7));
    wait_until("a record takes long", || first.stats().oldest_in_flight > Duration::from_millis(300));
    let second = start(second_state.path(), Duration::ZERO);
    world.wait_for_counts(&[&first, &second]);
    for app in [first, second] {
        app.stop_handle().stop();
        app.join().unwrap();
    }
    world.assert_sent_exactly_once();
}
