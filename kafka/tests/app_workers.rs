//! The app with several workers for each task, on the embedded cluster.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use kstate_api::{ErrorKind, Offset, PartitionPosition, TopicPartition};
use kstate_checkpoint::SourceCommitter as _;
use kstate_kafka::{
    GroupOffsets, SourceConsumer,
    app::{AppState, OutputRecord, OwnedRecord},
    rdkafka::{
        ClientConfig, Offset as ClientOffset, TopicPartitionList,
        consumer::{BaseConsumer, CommitMode, Consumer as _},
    },
};
use kstate_processing::{
    Apply, CheckpointMode, ExecutorSettings, MetadataLimit, OnExhausted, PositionMetadata as _, ProcessError,
    ProcessorFn, RecordOrder, RetryPolicy, TrackerLimits, Work,
};

mod app_support;
use app_support::{PATIENCE, Recorder, World, count, count_in, threads, wait_until};

type Processed = Result<(), ProcessError>;
type WordWork<'w> = Work<'w, OutputRecord>;

fn settings(checkpoint: CheckpointMode) -> ExecutorSettings {
    let apply = if checkpoint == CheckpointMode::InOrder { Apply::InInputOrder } else { Apply::AsCompleted };
    ExecutorSettings {
        workers: 4,
        checkpoint,
        apply,
        retry: RetryPolicy::new(3).with_backoff(Duration::from_millis(1), Duration::from_millis(5)),
        ..ExecutorSettings::default()
    }
}

/// Counts the record's key and sends the count.
fn count_word(output: &str, record: &OwnedRecord, work: &mut WordWork<'_>) -> Processed {
    let (key, count) = count_in(work, record)?;
    work.output(OutputRecord::by_key(output, key, count));
    Ok(())
}

fn processor<F>(function: F) -> ProcessorFn<F, OwnedRecord, OutputRecord>
where
    F: Fn(&OwnedRecord, &mut WordWork<'_>) -> Processed + Send + Sync + 'static,
{
    ProcessorFn::new(function)
}

fn counts_are_exact(checkpoint: CheckpointMode) {
    let mut world = World::embedded(2);
    world.feed(2000);
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let output = world.output.clone();
    let start = || {
        let output = output.clone();
        let app = world.app(state.path(), &recorder).threads(threads(2));
        app.start_workers(settings(checkpoint), processor(move |record, work| count_word(&output, record, work)))
    };
    let app = start().unwrap();
    world.wait_for_counts(&[&app]);
    wait_until("the numbers are told", || app.stats().workers.done == 2000);
    app.stop_handle().stop();
    app.join().unwrap();
    // The records of a key are processed in their order.
    world.assert_sent_exactly_once();

    recorder.take();
    let app = start().unwrap();
    assert_eq!(app.wait_for(AppState::Running, PATIENCE), AppState::Running);
    world.wait_for_counts(&[&app]);
    assert_eq!(app.stats().records, 0, "records came again");
    assert!(recorder.take().restored.iter().all(|(_, restored)| restored.applied == 0 && restored.wiped.is_none()));
}

#[test]
fn counts_are_exact_when_checkpoints_drain() {
    counts_are_exact(CheckpointMode::Drain);
}

#[test]
fn counts_are_exact_when_effects_are_applied_in_order() {
    counts_are_exact(CheckpointMode::InOrder);
}

#[test]
fn counts_are_exact_when_positions_have_holes() {
    counts_are_exact(CheckpointMode::Holes);
}

/// The first record is looked up for ever. Those behind it are processed, committed, and never processed again.
#[test]
fn a5_a_slow_record_neither_holds_up_the_others_nor_makes_them_run_again() {
    let mut world = World::embedded(1);
    world.feed(300);
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let (hangs, processed) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU64::new(0)));
    let start = || {
        let (output, hangs, processed) = (world.output.clone(), Arc::clone(&hangs), Arc::clone(&processed));
        let app = world.app(state.path(), &recorder).stop_timeout(Duration::from_secs(2));
        let hang = move |record: &OwnedRecord, work: &mut WordWork<'_>| {
            while record.get().offset().get() == 0 && hangs.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(5));
            }
            processed.fetch_add(1, Ordering::Relaxed);
            count_word(&output, record, work)
        };
        let settings = ExecutorSettings { order: RecordOrder::Key, ..settings(CheckpointMode::Holes) };
        app.start_workers(settings, processor(hang)).unwrap()
    };
    let source = TopicPartition::new(world.source.as_str(), 0);
    let group = GroupOffsets::new(&world.cluster, &world.id).unwrap();
    let committed = || group.committed(std::slice::from_ref(&source)).unwrap().position.get(&source).cloned();

    let app = start();
    // Those of the first record's word wait for it: every hundredth.
    wait_until("all others are committed", || {
        committed().is_some_and(|position| {
            let finished: i64 = position.finished().iter().map(|range| range.end.get() - range.start.get()).sum();
            position.next().get() == 0 && finished == 297
        })
    });
    // The store comes after the group.
    wait_until("their effects are", || app_support::counts(&[&app]).unwrap().values().sum::<u64>() == 297);
    wait_until("the holes are told", || app.stats().finished_above == 297 && app.stats().in_flight == 3);
    let age = app.stats().oldest_in_flight;
    assert!(age > Duration::ZERO);
    wait_until("the slow record grows old", || app.stats().oldest_in_flight > age + Duration::from_millis(300));
    app.stop_handle().stop();
    app.join().unwrap();
    assert_eq!(processed.load(Ordering::Relaxed), 297);

    hangs.store(false, Ordering::Relaxed);
    thread::sleep(Duration::from_millis(50));
    processed.store(0, Ordering::Relaxed);
    let app = start();
    world.wait_for_counts(&[&app]);
    wait_until("the position has come to the end", || committed().is_some_and(|position| position.next().get() == 300));
    assert_eq!(processed.load(Ordering::Relaxed), 3, "what was finished ran again");
    wait_until("nothing is in flight", || app.stats().oldest_in_flight == Duration::ZERO);
    wait_until("the numbers are told", || app.stats().workers.skipped == 297);
}

#[test]
fn a3_a_poison_record_goes_to_the_dead_letters_and_the_others_go_on() {
    for checkpoint in [CheckpointMode::Drain, CheckpointMode::Holes] {
        let mut world = World::embedded(1);
        world.feed(200);
        world.create_topic("poisoned", 1);
        let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
        let (output, attempts) = (world.output.clone(), Arc::new(AtomicU64::new(0)));
        let counter = Arc::clone(&attempts);
        let poisoned = move |record: &OwnedRecord, work: &mut WordWork<'_>| {
            count_word(&output, record, work)?;
            if record.get().offset().get() == 50 {
                counter.fetch_add(1, Ordering::Relaxed);
                return Err(ProcessError::retry("poison"));
            }
            Ok(())
        };
        let app = world.app(state.path(), &recorder).dead_letters("poisoned");
        let app = app.start_workers(settings(checkpoint), processor(poisoned)).unwrap();
        wait_until("all others are counted", || app_support::counts(&[&app]).unwrap().values().sum::<u64>() == 199);
        wait_until("the letter is told", || app.stats().workers.dead_letters == 1);
        app.stop_handle().stop();
        app.join().unwrap();
        assert_eq!(attempts.load(Ordering::Relaxed), 3);
        let mut letters = 0;
        world.read_committed("poisoned", &mut |_| letters += 1);
        assert_eq!(letters, 1);
        assert_eq!(recorder.take().dead_letters, ["50: failed 3 times, at last since poison"]);
        // It counts as done.
        world.forget_fed();
        let app = world.app(state.path(), &recorder).start(count).unwrap();
        assert_eq!(app.wait_for(AppState::Running, PATIENCE), AppState::Running);
        thread::sleep(Duration::from_millis(300));
        assert_eq!(app.stats().records, 0);
    }
}

#[test]
fn a3_an_app_that_halts_at_a_poison_record_goes_on_there() {
    for checkpoint in [CheckpointMode::Drain, CheckpointMode::InOrder, CheckpointMode::Holes] {
        let mut world = World::embedded(1);
        world.feed(200);
        let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
        let output = world.output.clone();
        let poisoned = processor(move |record: &OwnedRecord, work: &mut WordWork<'_>| {
            if record.get().offset().get() == 50 {
                Err(ProcessError::retry("poison"))
            } else {
                count_word(&output, record, work)
            }
        });
        let settings = ExecutorSettings { on_exhausted: OnExhausted::Halt, ..settings(checkpoint) };
        let error = world.app(state.path(), &recorder).start_workers(settings, poisoned).unwrap().join().unwrap_err();
        assert!(error.to_string().contains("poison") && error.to_string().contains("50"), "{error}");
        let output = world.output.clone();
        let good = processor(move |record: &OwnedRecord, work: &mut WordWork<'_>| count_word(&output, record, work));
        let app = world.app(state.path(), &recorder).start_workers(settings, good).unwrap();
        world.wait_for_counts(&[&app]);
    }
}

/// There is room for few: the source is paused again and again, and nothing is lost or overtaken.
#[test]
fn a3_the_source_waits_for_the_workers() {
    let mut world = World::embedded(2);
    world.feed(600);
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let output = world.output.clone();
    let slow = processor(move |record: &OwnedRecord, work: &mut WordWork<'_>| {
        thread::sleep(Duration::from_micros(300));
        count_word(&output, record, work)
    });
    let settings = ExecutorSettings { max_in_flight: 8, ..settings(CheckpointMode::Holes) };
    let app = world.app(state.path(), &recorder).start_workers(settings, slow).unwrap();
    world.wait_for_counts(&[&app]);
    wait_until("it was full", || app.stats().workers.full > 0 && app.stats().in_flight == 0);
}

/// Members come and go while records are in flight.
#[test]
fn p5_tasks_with_workers_move() {
    let mut world = World::embedded(4);
    world.feed(1000);
    let (states, recorder) = ([tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()], Recorder::default());
    let start = |world: &World, member: usize| {
        let output = world.output.clone();
        let slow = processor(move |record: &OwnedRecord, work: &mut WordWork<'_>| {
            thread::sleep(Duration::from_micros(500));
            count_word(&output, record, work)
        });
        let app = world.app(states[member].path(), &recorder);
        app.start_workers(settings(CheckpointMode::Holes), slow).unwrap()
    };
    let first = start(&world, 0);
    wait_until("it has begun", || app_support::counts(&[&first]).is_some_and(|counts| !counts.is_empty()));
    let second = start(&world, 1);
    world.feed_until_shared(&first, &second);
    world.feed(400);
    second.stop_handle().stop();
    second.join().unwrap();
    world.wait_for_counts(&[&first]);
}

#[test]
fn a4_what_cannot_be_had_is_refused_before_any_store_is_opened() {
    let world = World::embedded(1);
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let nothing = processor(|_: &OwnedRecord, _: &mut WordWork<'_>| Ok(()));
    let settings = ExecutorSettings { checkpoint: CheckpointMode::InOrder, ..ExecutorSettings::default() };
    let error = world.app(state.path(), &recorder).start_workers(settings, nothing).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("InInputOrder"), "{error}");

    let limits = TrackerLimits::default().with_metadata(MetadataLimit::new(5000));
    let settings = ExecutorSettings { limits, checkpoint: CheckpointMode::Holes, ..ExecutorSettings::default() };
    let nothing = processor(|_: &OwnedRecord, _: &mut WordWork<'_>| Ok(()));
    let error = world.app(state.path(), &recorder).start_workers(settings, nothing).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("4096"), "{error}");
    assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0);
}

/// What is finished above the group's next record stays finished in an app of another kind.
#[test]
fn a5_finished_ranges_outlive_the_mode_that_made_them() {
    let mut world = World::embedded(1);
    world.feed(300);
    let source = TopicPartition::new(world.source.as_str(), 0);
    let at = |offset| Offset::new(offset).unwrap();
    let position = PartitionPosition::new(at(0), [at(100)..at(200)]).unwrap();
    let consumer = SourceConsumer::assign(&world.cluster, &world.id, std::slice::from_ref(&source)).unwrap();
    consumer.with_ranges().commit(&[(source.clone(), position)].into_iter().collect()).unwrap();

    // Without workers nobody could tell what is finished.
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let app = world.app(state.path(), &recorder).start(count).unwrap();
    assert_eq!(app.wait_for(AppState::Failed, PATIENCE), AppState::Failed);
    let error = app.join().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");

    let output = world.output.clone();
    let app = world.app(state.path(), &recorder).start_workers(
        settings(CheckpointMode::Drain),
        processor(move |record, work| count_word(&output, record, work)),
    );
    let app = app.unwrap();
    wait_until("all is done", || app.stats().workers.done + app.stats().workers.skipped == 300);
    app.stop_handle().stop();
    app.join().unwrap();
    let mut sent = 0;
    world.read_committed(&world.output, &mut |_| sent += 1);
    assert_eq!(sent, 200);
    // Nothing is above any more.
    let app = world.app(state.path(), &recorder).start(count).unwrap();
    assert_eq!(app.wait_for(AppState::Running, PATIENCE), AppState::Running);
}

#[test]
fn a5_finished_ranges_that_cannot_be_used_are_ignored_and_counted() {
    let mut world = World::embedded(1);
    world.feed(20);
    let source = TopicPartition::new(world.source.as_str(), 0);
    let at = |offset| Offset::new(offset).unwrap();
    // Ranges above another offset than the one they are committed with.
    let position = PartitionPosition::new(at(3), [at(5)..at(9)]).unwrap();
    let metadata = position.to_metadata(MetadataLimit::default()).unwrap();
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", world.cluster.brokers())
        .set("group.id", &world.id)
        .create()
        .unwrap();
    let mut list = TopicPartitionList::new();
    let mut element = list.add_partition(source.topic(), 0);
    element.set_offset(ClientOffset::Offset(0)).unwrap();
    element.set_metadata(metadata);
    consumer.commit(&list, CommitMode::Sync).unwrap();

    let (state, recorder, output) = (tempfile::tempdir().unwrap(), Recorder::default(), world.output.clone());
    let app = world.app(state.path(), &recorder).start_workers(
        settings(CheckpointMode::Holes),
        processor(move |record, work| count_word(&output, record, work)),
    );
    let app = app.unwrap();
    world.wait_for_counts(&[&app]);
    wait_until("it is told", || app.stats().workers.ranges_ignored == 1);
    app.stop_handle().stop();
    wait_until("it stops", || app.state().has_ended());
    assert_eq!(app.stats().workers.ranges_ignored, 1);
}
