//! The app on the embedded cluster.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use kstate_api::{ErrorKind, ReadOnlyKeyValueStoreExt as _, StagedSupplier, TaskId};
use kstate_kafka::app::{
    App, AppState, Guarantee, OnError, ProcessingResult, Processor, RebalanceProtocol, SourceRecord, TaskContext,
    TaskState,
};
use kstate_store_memory::MemoryBackends;

mod app_support;
use app_support::{PATIENCE, Recorder, World, count, threads, wait_until};

#[test]
fn counts_are_exact_with_two_threads_and_a_restart_restores_nothing() {
    let mut world = World::embedded(4);
    world.feed(2000);
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let app = world.app(state.path(), &recorder).threads(threads(2)).start(count).unwrap();
    assert_eq!(app.wait_for(AppState::Running, PATIENCE), AppState::Running);
    world.wait_for_counts(&[&app]);
    world.feed(1000);
    world.wait_for_counts(&[&app]);
    app.stop_handle().stop();
    app.join().unwrap();

    let heard = recorder.take();
    assert_eq!(heard.states.last(), Some(&AppState::Stopped), "{:?}", heard.states);
    assert!(heard.states.contains(&AppState::Running), "{:?}", heard.states);
    let of_first = heard.tasks.iter().filter(|(task, _)| *task == TaskId::new(0, 0)).map(|(_, state)| *state);
    let life = [TaskState::Assigned, TaskState::Restoring, TaskState::Running, TaskState::Closed];
    assert_eq!(of_first.collect::<Vec<_>>(), life);

    let app = world.app(state.path(), &recorder).threads(threads(2)).start(count).unwrap();
    app.wait_for(AppState::Running, PATIENCE);
    world.wait_for_counts(&[&app]);
    let restored = recorder.take().restored;
    let tasks = restored.iter().map(|(task, _)| *task).collect::<BTreeSet<_>>();
    assert_eq!(tasks.len(), 4, "a task may have moved between the threads, and be restored twice");
    for (task, restored) in restored {
        assert!(restored.from.is_some() && restored.wiped.is_none(), "{task}: {restored:?}");
        assert_eq!(restored.applied, 0, "{task}: {restored:?}");
    }
}

fn a_second_member_comes_and_goes(protocol: RebalanceProtocol) {
    let mut world = World::embedded(4);
    world.feed(1000);
    let (first_state, second_state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (first_heard, second_heard) = (Recorder::default(), Recorder::default());
    let first = world.app(first_state.path(), &first_heard).rebalance_protocol(protocol).start(count).unwrap();
    world.wait_for_counts(&[&first]);

    let second = world.app(second_state.path(), &second_heard).rebalance_protocol(protocol).start(count).unwrap();
    let tasks = |app: &kstate_kafka::app::RunningApp| app.queries().tasks().len();
    world.feed_until_shared(&first, &second);
    world.wait_for_counts(&[&first, &second]);
    // Somebody who has nothing restores everything that was committed.
    assert!(second_heard.look(|heard| heard.restored.iter().map(|(_, restored)| restored.applied).sum::<u64>()) > 0);

    second.stop_handle().stop();
    second.join().unwrap();
    wait_until("the first member gets all tasks back", || {
        world.feed(20);
        tasks(&first) == 4
    });
    world.wait_for_counts(&[&first]);
    let closed = first_heard.look(|heard| heard.tasks.iter().filter(|(_, state)| *state == TaskState::Closed).count());
    match protocol {
        RebalanceProtocol::Cooperative => assert_eq!(closed, 2, "only what moves is closed"),
        RebalanceProtocol::Eager => assert!(closed >= 4, "everything is closed, {closed}"),
    }
}

#[test]
fn a_stop_commits_what_was_processed() {
    let mut world = World::embedded(2);
    world.feed(200);
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let processed = Arc::new(AtomicU64::new(0));
    let start = || {
        let counter = Arc::clone(&processed);
        let app = world.app(state.path(), &recorder).commit_interval(Duration::from_secs(3600));
        app.start(move |record: &SourceRecord<'_>, context: &TaskContext<'_>| {
            count(record, context)?;
            counter.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
        .unwrap()
    };
    let app = start();
    wait_until("all is processed", || processed.load(Ordering::Relaxed) == 200);
    app.stop_handle().stop();
    app.join().unwrap();
    let app = start();
    world.wait_for_counts(&[&app]);
    assert_eq!(processed.load(Ordering::Relaxed), 200, "some records came again");
}

/// What a processor gathers goes to the store before each checkpoint, and is forgotten with its task.
#[test]
fn a_processor_is_asked_before_each_checkpoint() {
    struct Gathering(BTreeMap<Vec<u8>, u64>);
    impl Processor for Gathering {
        fn process(&mut self, record: &SourceRecord<'_>, _: &TaskContext<'_>) -> ProcessingResult {
            *self.0.entry(record.key().unwrap().to_vec()).or_default() += 1;
            Ok(())
        }

        fn before_checkpoint(&mut self, context: &TaskContext<'_>) -> ProcessingResult {
            let counts = context.store("counts")?;
            for (word, times) in std::mem::take(&mut self.0) {
                let before =
                    counts.get(&word)?.map_or(0, |count| u64::from_be_bytes(count.as_ref().try_into().unwrap()));
                counts.put(&word, &(before + times).to_be_bytes())?;
            }
            Ok(())
        }
    }
    let mut world = World::embedded(2);
    world.feed(1000);
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let supplier = |_: TaskId| -> Box<dyn Processor> { Box::new(Gathering(BTreeMap::new())) };
    let app = world.app(state.path(), &recorder).start_with(supplier).unwrap();
    world.wait_for_counts(&[&app]);
}

#[test]
fn p5_a_second_member_comes_and_goes_cooperatively() {
    a_second_member_comes_and_goes(RebalanceProtocol::Cooperative);
}

#[test]
fn p5_a_second_member_comes_and_goes_eagerly() {
    a_second_member_comes_and_goes(RebalanceProtocol::Eager);
}

#[test]
fn a_processing_error_ends_the_app_and_its_record_comes_again() {
    let mut world = World::embedded(1);
    world.feed(100);
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let app = world.app(state.path(), &recorder).commit_interval(Duration::from_secs(3600));
    let failed = app
        .start(|record: &SourceRecord<'_>, context: &TaskContext<'_>| {
            count(record, context)?;
            if record.offset().get() == 50 { Err("no more".into()) } else { Ok(()) }
        })
        .unwrap()
        .join()
        .unwrap_err();
    assert!(failed.to_string().contains("no more") && failed.to_string().contains("50"), "{failed}");
    assert_eq!(recorder.take().states.last(), Some(&AppState::Failed));

    let app = world.app(state.path(), &recorder).start(count).unwrap();
    world.wait_for_counts(&[&app]);
}

#[test]
fn ho_57_skipped_records_count_as_done() {
    let mut world = World::embedded(1);
    world.feed(100);
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let skipped = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&skipped);
    let fail = |_: &SourceRecord<'_>, _: &TaskContext<'_>| Err("cannot decode it".into());
    let app = world.app(state.path(), &recorder).on_error(move |failure| {
        assert_eq!(failure.error().to_string(), "cannot decode it");
        counter.fetch_add(1, Ordering::Relaxed);
        OnError::Skip
    });
    let app = app.start(fail).unwrap();
    wait_until("all are skipped", || skipped.load(Ordering::Relaxed) == 100);
    wait_until("the numbers are told", || app.stats().records == 100);
    assert_eq!(app.stats().skipped_records, 100);
    app.stop_handle().stop();
    app.join().unwrap();

    // Nothing comes again: what is counted now is what is fed now.
    world.forget_fed();
    world.feed(30);
    let app = world.app(state.path(), &recorder).start(count).unwrap();
    world.wait_for_counts(&[&app]);
}

#[test]
fn a_panic_of_a_processor_ends_the_app_and_gives_its_directories_free() {
    let mut world = World::embedded(2);
    world.feed(100);
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let process = |record: &SourceRecord<'_>, context: &TaskContext<'_>| {
        assert!(record.offset().get() < 20, "what a processor should not do");
        count(record, context)
    };
    let app = world.app(state.path(), &recorder).threads(threads(2)).start(process).unwrap();
    let error = app.join().unwrap_err();
    assert!(error.to_string().contains("what a processor should not do"), "{error}");
    let app = world.app(state.path(), &recorder).start(count).unwrap();
    world.wait_for_counts(&[&app]);
}

#[test]
fn r2_queries_see_what_is_committed_and_nothing_else() {
    let mut world = World::embedded(1);
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let processed = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&processed);
    let app = world.app(state.path(), &recorder).commit_interval(Duration::from_secs(3600));
    let app = app
        .max_records_per_checkpoint(10)
        .start(move |record: &SourceRecord<'_>, context: &TaskContext<'_>| {
            count(record, context)?;
            counter.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
        .unwrap();
    world.feed(9);
    wait_until("nine are processed", || processed.load(Ordering::Relaxed) == 9);
    let queries = app.queries();
    let task = TaskId::new(0, 0);
    let before = queries.snapshot("counts", task).unwrap();
    assert_eq!(before.get(b"word-0").unwrap(), None);
    world.feed(1);
    world.wait_for_counts(&[&app]);
    let elsewhere = queries.clone();
    let count = thread::spawn(move || elsewhere.snapshot("counts", task).unwrap().get(b"word-0").unwrap());
    assert_eq!(count.join().unwrap().unwrap(), 2_u64.to_be_bytes().as_slice());
    assert_eq!(before.get(b"word-0").unwrap(), None, "a snapshot is a stable view");

    assert_eq!(queries.snapshot("other", task).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(queries.snapshot("counts", TaskId::new(0, 1)).unwrap_err().kind(), ErrorKind::Unavailable);
    app.stop_handle().stop();
    app.join().unwrap();
    assert_eq!(queries.snapshot("counts", task).unwrap_err().kind(), ErrorKind::Unavailable);
}

#[test]
fn a_paused_app_takes_in_nothing_and_stays_in_its_group() {
    let mut world = World::embedded(2);
    world.feed(100);
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let app = world.app(state.path(), &recorder).start(count).unwrap();
    world.wait_for_counts(&[&app]);
    app.pause();
    // What was on its way when it was paused.
    thread::sleep(Duration::from_millis(200));
    world.feed(100);
    thread::sleep(Duration::from_secs(1));
    assert_eq!(app_support::counts(&[&app]).unwrap().values().sum::<u64>(), 100);
    assert_eq!(app.state(), AppState::Running);
    app.resume();
    world.wait_for_counts(&[&app]);
    assert!(recorder.take().tasks.iter().all(|(_, state)| *state != TaskState::Closed));
}

/// A processor that is slow is not overrun: nothing is lost and the app stops in good time in the middle.
#[test]
fn an_app_that_is_behind_stops_at_once_and_goes_on_where_it_was() {
    let mut world = World::embedded(2);
    world.feed(4000);
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let slow = Arc::new(AtomicBool::new(true));
    let is_slow = Arc::clone(&slow);
    let process = move |record: &SourceRecord<'_>, context: &TaskContext<'_>| {
        if is_slow.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        count(record, context)
    };
    let app = world.app(state.path(), &recorder).start(process).unwrap();
    wait_until("it has begun", || app_support::counts(&[&app]).is_some_and(|counts| !counts.is_empty()));
    let stopping = std::time::Instant::now();
    app.stop_handle().stop();
    app.join().unwrap();
    assert!(stopping.elapsed() < Duration::from_secs(3), "it took {:?}", stopping.elapsed());
    assert_eq!(recorder.take().states.last(), Some(&AppState::Stopped));
    let app = world.app(state.path(), &recorder).start(count).unwrap();
    world.wait_for_counts(&[&app]);
    assert!(recorder.take().restored.iter().all(|(_, restored)| restored.applied == 0));
}

#[test]
fn ho_59_what_does_not_fit_together_is_refused_before_any_store_is_opened() {
    let mut world = World::embedded(2);
    world.feed(1);
    let state = tempfile::tempdir().unwrap();
    let recorder = Recorder::default();
    let refused = |app: App, what: &[&str]| {
        let error = app.start(count).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        for what in what {
            assert!(error.to_string().contains(what), "{error}");
        }
        assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0, "a directory was made");
    };
    world.create_topic("five", 5);
    let app = || world.app(state.path(), &recorder);
    let memory = |name| StagedSupplier::new(name, MemoryBackends::new()).unwrap();
    refused(app().source("missing").rebalance_protocol(RebalanceProtocol::Eager), &["missing"]);
    refused(app().source("five").rebalance_protocol(RebalanceProtocol::Eager), &["five", "5", "2"]);
    refused(app().source("five"), &["Eager"]);
    refused(app().source(world.source.as_str()), &["twice"]);
    refused(app().store(memory("counts")), &["app-counts-changelog"]);
    refused(App::new(&world.cluster, "app", state.path()).store(memory("counts")), &["no source"]);
    world.create_topic("app-other-changelog", 5);
    refused(app().store(memory("other")), &["app-other-changelog", "5", "2"]);
    let exactly_once = app().guarantee(Guarantee::ExactlyOnce);
    refused(exactly_once.commit_interval(Duration::from_secs(10)), &["10s"]);
    assert_eq!(
        App::new(&world.cluster, "no/name", state.path()).source("five").start(count).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
}

#[test]
fn a_state_directory_has_one_app() {
    let mut world = World::embedded(1);
    world.feed(1);
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let app = world.app(state.path(), &recorder).start(count).unwrap();
    let second = world.app(state.path(), &recorder).start(count);
    assert_eq!(second.unwrap_err().kind(), ErrorKind::Locked);
    drop(app);
    let app = world.app(state.path(), &recorder).start(count).unwrap();
    world.wait_for_counts(&[&app]);
}

/// Nobody deals anything out: it begins at once, where its predecessor was.
#[test]
fn an_app_alone_has_all_tasks_at_once_and_after_each_start() {
    let mut world = World::embedded(4);
    world.feed(1000);
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    // More threads than tasks, then fewer.
    for (count_of_threads, wiped_stores) in [(5, 4), (3, 0)] {
        let started = Instant::now();
        let app = world.app(state.path(), &recorder).alone().directory_name("mine").threads(threads(count_of_threads));
        let app = app.start(count).unwrap();
        assert_eq!(app.wait_for(AppState::Running, PATIENCE), AppState::Running);
        assert_eq!(app.queries().tasks().len(), 4);
        // A group of the embedded cluster takes 3 s.
        assert!(started.elapsed() < Duration::from_millis(2500), "{:?}", started.elapsed());
        world.wait_for_counts(&[&app]);
        wait_until("the numbers are told", || app.stats().tasks == 4 && app.stats().checkpoints > 0);
        assert_eq!(app.stats().wiped_stores, wiped_stores, "new stores are, others are not");
        app.stop_handle().stop();
        app.join().unwrap();
        world.feed(100);
    }
    let app = world.app(state.path(), &recorder).alone().directory_name("mine").start(count).unwrap();
    world.wait_for_counts(&[&app]);
    assert!(recorder.take().restored.iter().all(|(_, restored)| restored.applied == 0));
    assert!(state.path().join("mine/0_3/counts").is_dir() && !state.path().join("app").exists());
}

#[test]
fn a_checkpoint_is_taken_when_it_is_asked_for() {
    let mut world = World::embedded(2);
    world.feed(200);
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let processed = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&processed);
    let app = world.app(state.path(), &recorder).alone().commit_interval(Duration::from_secs(3600));
    let app = app.start(move |record: &SourceRecord<'_>, context: &TaskContext<'_>| {
        count(record, context)?;
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    let app = app.unwrap();
    for (processed_by_then, checkpoints) in [(200, 1), (250, 2)] {
        wait_until("all is processed", || processed.load(Ordering::Relaxed) == processed_by_then);
        thread::sleep(Duration::from_millis(200));
        assert_eq!(recorder.look(|heard| heard.checkpoints), checkpoints - 1);
        wait_until("it is told that something is staged", || app.stats().staged_bytes > 0);
        app.request_checkpoint();
        world.wait_for_counts(&[&app]);
        assert_eq!(recorder.look(|heard| heard.checkpoints), checkpoints);
        wait_until("it is told that nothing is staged", || app.stats().staged_bytes == 0);
        world.feed(50);
    }
}
