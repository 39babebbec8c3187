//! The app on a real broker: exactly once, kills, and members that come and go.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use kstate_api::TopicPartition;
use kstate_checkpoint::WipeReason;
use kstate_kafka::{
    Cluster,
    app::{
        App, AppState, Guarantee, ProcessingResult, RebalanceProtocol, RunningApp, SourceRecord, TaskContext, TaskState,
    },
};

mod app_support;
mod broker_support;
use app_support::{PATIENCE, Recorder, World, count, count_next, threads, wait_until};
use broker_support::{cluster, process::Process, unique};

/// An app of its own on the broker.
fn world(name: &str, partitions: u32) -> World {
    World::at(cluster(), &unique(name), partitions)
}

/// Counts the record's key and sends each count.
fn count_and_send(output: &str) -> impl Fn(&SourceRecord<'_>, &TaskContext<'_>) -> ProcessingResult + use<> {
    let output = output.to_owned();
    move |record, context| {
        let count = count_next(record, context)?;
        context.send(&output, record.key(), Some(&count.to_be_bytes()))?;
        Ok(())
    }
}

fn counts_are_exact_and_a_restart_restores_nothing(guarantee: Guarantee) {
    let mut world = world("app-restart", 4);
    world.feed(2000);
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let start = || {
        let app = world.app(state.path(), &recorder).guarantee(guarantee).threads(threads(2));
        app.start(count_and_send(&world.output)).unwrap()
    };
    let app = start();
    world.wait_for_counts(&[&app]);
    app.stop_handle().stop();
    app.join().unwrap();
    world.assert_sent_exactly_once();

    recorder.take();
    let app = start();
    assert_eq!(app.wait_for(AppState::Running, PATIENCE), AppState::Running);
    world.wait_for_counts(&[&app]);
    let restored = recorder.take().restored;
    let tasks = restored.iter().map(|(task, _)| *task).collect::<BTreeSet<_>>();
    assert_eq!(tasks.len(), 4, "a task may have moved between the threads, and be restored twice");
    for (task, restored) in restored {
        assert!(restored.wiped.is_none() && restored.applied == 0, "{task}: {restored:?}");
    }
    drop(app);
    // The same from nothing: the changelog has it all.
    let empty = tempfile::tempdir().unwrap();
    let app = world.app(empty.path(), &recorder).guarantee(guarantee).start(count).unwrap();
    world.wait_for_counts(&[&app]);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn counts_are_exact_at_least_once() {
    counts_are_exact_and_a_restart_restores_nothing(Guarantee::AtLeastOnce);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn counts_and_outputs_are_exact_exactly_once() {
    counts_are_exact_and_a_restart_restores_nothing(Guarantee::ExactlyOnce);
}

fn members_come_and_go(protocol: RebalanceProtocol, guarantee: Guarantee) {
    let mut world = world("app-members", 4);
    world.feed(1000);
    let (first_state, second_state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (first_heard, second_heard) = (Recorder::default(), Recorder::default());
    let start = |world: &World, state: &Path, heard: &Recorder| {
        let app = world.app(state, heard).guarantee(guarantee).rebalance_protocol(protocol);
        app.start(count_and_send(&world.output)).unwrap()
    };
    let tasks = |app: &RunningApp| app.queries().tasks().len();
    let first = start(&world, first_state.path(), &first_heard);
    world.wait_for_counts(&[&first]);
    let second = start(&world, second_state.path(), &second_heard);
    world.feed_until_shared(&first, &second);
    world.wait_for_counts(&[&first, &second]);
    second.stop_handle().stop();
    second.join().unwrap();
    wait_until("the first member gets all tasks back", || {
        world.feed(20);
        tasks(&first) == 4
    });
    world.wait_for_counts(&[&first]);
    first.stop_handle().stop();
    first.join().unwrap();
    if guarantee == Guarantee::ExactlyOnce {
        world.assert_sent_exactly_once();
    }
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p5_members_come_and_go_cooperatively_at_least_once() {
    members_come_and_go(RebalanceProtocol::Cooperative, Guarantee::AtLeastOnce);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p5_members_come_and_go_eagerly_at_least_once() {
    members_come_and_go(RebalanceProtocol::Eager, Guarantee::AtLeastOnce);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p5_members_come_and_go_cooperatively_exactly_once() {
    members_come_and_go(RebalanceProtocol::Cooperative, Guarantee::ExactlyOnce);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p5_members_come_and_go_eagerly_exactly_once() {
    members_come_and_go(RebalanceProtocol::Eager, Guarantee::ExactlyOnce);
}

/// Nothing but the revocation and the stop themselves can have committed anything here.
fn what_is_given_up_is_committed_first(protocol: RebalanceProtocol) {
    let mut world = world("app-revoke", 2);
    world.feed(200);
    let (first_state, second_state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let recorder = Recorder::default();
    let processed = Arc::new(AtomicU64::new(0));
    let start = |state: &Path| {
        let counter = Arc::clone(&processed);
        let app = world.app(state, &recorder).commit_interval(Duration::from_secs(3600)).rebalance_protocol(protocol);
        app.start(move |record: &SourceRecord<'_>, context: &TaskContext<'_>| {
            count(record, context)?;
            counter.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
        .unwrap()
    };
    let first = start(first_state.path());
    wait_until("all is processed", || processed.load(Ordering::Relaxed) == 200);
    assert_eq!(recorder.look(|heard| heard.checkpoints), 0);
    let second = start(second_state.path());
    world.wait_for_counts(&[&first, &second]);
    wait_until("each has a task", || first.queries().tasks().len() == 1 && second.queries().tasks().len() == 1);
    second.stop_handle().stop();
    second.join().unwrap();
    first.stop_handle().stop();
    first.join().unwrap();
    let again = start(first_state.path());
    world.wait_for_counts(&[&again]);
    assert_eq!(processed.load(Ordering::Relaxed), 200, "some records came again");
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p5_what_is_given_up_is_committed_first_cooperatively() {
    what_is_given_up_is_committed_first(RebalanceProtocol::Cooperative);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p5_what_is_given_up_is_committed_first_eagerly() {
    what_is_given_up_is_committed_first(RebalanceProtocol::Eager);
}

/// What a process of its own runs, until it is killed.
const CHILD: &str = "KSTATE_TEST_APP";

/// The app in a process of its own: started by other tests, which kill it. Run by itself it does nothing.
#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn child_process() {
    let Ok(told) = env::var(CHILD) else { return };
    let [brokers, id, partitions, guarantee, instance, state] = told.split('|').collect::<Vec<_>>()[..] else {
        panic!("{told}");
    };
    let world = World::at(Cluster::new(brokers), id, partitions.parse().unwrap());
    let guarantee = if guarantee == "ExactlyOnce" { Guarantee::ExactlyOnce } else { Guarantee::AtLeastOnce };
    let process = count_and_send(&world.output);
    let mut app = world.app(Path::new(state), &Recorder::default()).guarantee(guarantee);
    if !instance.is_empty() {
        app = app.instance_id(instance);
    }
    let app = app.start(move |record: &SourceRecord<'_>, context: &TaskContext<'_>| {
        // Slow enough to be killed in the middle.
        thread::sleep(Duration::from_micros(500));
        process(record, context)
    });
    app.unwrap().join().unwrap();
}

/// Starts the app in a process of its own.
fn start_process(world: &World, guarantee: Guarantee, instance: &str, state: &Path) -> Process {
    let (brokers, id, partitions) = (world.cluster.brokers(), &world.id, world.partitions);
    Process::start(CHILD, &format!("{brokers}|{id}|{partitions}|{guarantee:?}|{instance}|{}", state.display()))
}

fn killed_again_and_again(guarantee: Guarantee) {
    let mut world = world("app-kill", 2);
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    for kill in 0..3_u64 {
        world.feed(1500);
        let before = world.changelog_records();
        let process = start_process(&world, guarantee, "one", state.path());
        wait_until("it takes checkpoints", || world.changelog_records() > before);
        thread::sleep(Duration::from_millis(130 + 70 * kill));
        process.kill();
    }
    let app = world.app(state.path(), &recorder).guarantee(guarantee).instance_id("one");
    let app = app.start(count_and_send(&world.output)).unwrap();
    world.wait_for_counts(&[&app]);
    app.stop_handle().stop();
    app.join().unwrap();
    let heard = recorder.take();
    for (task, restored) in heard.restored {
        // A task that had not come to its first checkpoint has nothing to keep.
        let kept = restored.wiped.is_none() || (restored.wiped == Some(WipeReason::NoOffset) && restored.applied == 0);
        assert!(kept, "{task}: {restored:?}");
    }
    if guarantee == Guarantee::ExactlyOnce {
        world.assert_sent_exactly_once();
    }
    let empty = tempfile::tempdir().unwrap();
    let app = world.app(empty.path(), &recorder).guarantee(guarantee).instance_id("one").start(count).unwrap();
    world.wait_for_counts(&[&app]);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn killed_again_and_again_it_counts_exactly_at_least_once() {
    killed_again_and_again(Guarantee::AtLeastOnce);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn killed_again_and_again_it_counts_and_sends_exactly_once() {
    killed_again_and_again(Guarantee::ExactlyOnce);
}

/// A member is stopped for longer than its session. Another takes over; then the zombie goes on where it was.
fn a_zombie_comes_back(guarantee: Guarantee) {
    let mut world = world("app-zombie", 2);
    let (zombie_state, heir_state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let recorder = Recorder::default();
    world.feed(4000);
    let zombie = start_process(&world, guarantee, "", zombie_state.path());
    wait_until("it takes checkpoints", || world.changelog_records() > 0);
    zombie.signal("-STOP");
    let heir = world.app(heir_state.path(), &recorder).guarantee(guarantee);
    let heir = heir.start(count_and_send(&world.output)).unwrap();
    world.wait_for_counts(&[&heir]);
    zombie.signal("-CONT");
    wait_until("the zombie gets a task, as a new member", || {
        world.feed(20);
        thread::sleep(Duration::from_millis(200));
        heir.queries().tasks().len() == 1
    });
    thread::sleep(Duration::from_secs(1));
    zombie.kill();
    world.feed(200);
    world.wait_for_counts(&[&heir]);
    heir.stop_handle().stop();
    heir.join().unwrap();
    if guarantee == Guarantee::ExactlyOnce {
        world.assert_sent_exactly_once();
    }
    let empty = tempfile::tempdir().unwrap();
    let app = world.app(empty.path(), &recorder).guarantee(guarantee).start(count).unwrap();
    world.wait_for_counts(&[&app]);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p5_ho_34_a_zombie_commits_nothing_at_least_once() {
    a_zombie_comes_back(Guarantee::AtLeastOnce);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p5_ho_34_a_zombie_commits_nothing_exactly_once() {
    a_zombie_comes_back(Guarantee::ExactlyOnce);
}

/// A processor that fails in the middle, exactly once: what it had sent is not seen.
#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn nothing_of_an_app_that_failed_is_seen_exactly_once() {
    let mut world = world("app-fail", 1);
    world.feed(100);
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let processed = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&processed);
    let process = count_and_send(&world.output);
    let app = world.app(state.path(), &recorder).guarantee(Guarantee::ExactlyOnce);
    let app = app.commit_interval(Duration::from_secs(5)).max_records_per_checkpoint(40);
    let app = app.start(move |record: &SourceRecord<'_>, context: &TaskContext<'_>| {
        process(record, context)?;
        if counter.fetch_add(1, Ordering::Relaxed) == 60 { Err("no more".into()) } else { Ok(()) }
    });
    let error = app.unwrap().join().unwrap_err();
    assert!(error.to_string().contains("no more"), "{error}");
    assert_eq!(world.sent().values().map(Vec::len).sum::<usize>(), 40);
    assert!(recorder.take().tasks.iter().any(|(_, state)| *state == TaskState::Closed));

    let app = world.app(state.path(), &recorder).guarantee(Guarantee::ExactlyOnce);
    let app = app.start(count_and_send(&world.output)).unwrap();
    world.wait_for_counts(&[&app]);
    app.stop_handle().stop();
    app.join().unwrap();
    world.assert_sent_exactly_once();
}

/// An app without stores: nothing but its outputs says that its records are done.
fn forwards(guarantee: Guarantee) {
    let mut world = world("app-forward", 2);
    world.feed(500);
    let (state, output) = (tempfile::tempdir().unwrap(), world.output.clone());
    let app = App::new(&world.cluster, world.id.as_str(), state.path()).source(world.source.as_str());
    let app = app.guarantee(guarantee).commit_interval(Duration::from_millis(100));
    let app = app.start(move |record: &SourceRecord<'_>, context: &TaskContext<'_>| {
        context.send(&output, record.key(), Some(&1_u64.to_be_bytes()))?;
        Ok(())
    });
    let app = app.unwrap();
    wait_until("everything is forwarded", || world.sent().values().map(Vec::len).sum::<usize>() == 500);
    app.stop_handle().stop();
    app.join().unwrap();
    let forwarded: BTreeMap<_, _> =
        world.sent().into_iter().map(|(word, sent)| (word, u64::try_from(sent.len()).unwrap())).collect();
    assert_eq!(&forwarded, world.fed());
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn an_app_without_stores_forwards_at_least_once() {
    forwards(Guarantee::AtLeastOnce);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn an_app_without_stores_forwards_exactly_once() {
    forwards(Guarantee::ExactlyOnce);
}

/// An output that is not delivered is not lost: the app may not commit its record.
#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn ho_55_a_record_is_not_done_before_its_output_is_delivered() {
    let mut world = world("app-undelivered", 1);
    world.feed(10);
    let (state, output) = (tempfile::tempdir().unwrap(), world.output.clone());
    let lost = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&lost);
    let app = world.app(state.path(), &Recorder::default()).retry_timeout(Duration::from_secs(3));
    let app = app.start(move |record: &SourceRecord<'_>, context: &TaskContext<'_>| {
        // There is no such partition. The client finds out later, or at once; the processor does not care.
        drop(context.send_to(&TopicPartition::new(output.as_str(), 7), record.key(), Some(b"1")));
        counter.fetch_add(1, Ordering::Relaxed);
        count(record, context)
    });
    let app = app.unwrap();
    wait_until("all were processed, and again", || lost.load(Ordering::Relaxed) >= 20 || app.state().has_ended());
    assert_eq!(app_support::counts(&[&app]).map(|counts| counts.len()), Some(0), "something was committed");
    drop(app);
    let recorder = Recorder::default();
    let app = world.app(state.path(), &recorder).start(count).unwrap();
    world.wait_for_counts(&[&app]);
}
