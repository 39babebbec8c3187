//! A task whose start goes wrong once: it is closed or goes on, and is nobody's only for a moment.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use kstate_api::{
    BackendSupplier, ChangelogOffsets, Error, ErrorKind, ReadOnlyKeyValueStoreExt as _, Result, StagedSupplier, TaskId,
    TopicPartition,
};
use kstate_checkpoint::Restored;
use kstate_conformance_tests::{Faults, FaultyBackend, StepFault};
use kstate_kafka::{
    ChangelogProducer, Cluster,
    app::{App, AppState, Listener, ProcessingResult, RunningApp, SourceRecord, TaskContext, TaskState},
};
use kstate_store_redb::{RedbBackend, RedbBackends, RedbOptions};
use rdkafka::{
    mocking::MockCluster,
    producer::DefaultProducerContext,
    types::{RDKafkaApiKey, RDKafkaRespErr},
};

mod app_support;
use app_support::{PATIENCE, count, wait_until};

/// How many records there are, each of a key of its own.
const RECORDS: u64 = 300;
/// The task's stores, in the order in which they are opened. The second is the one that fails.
const STORES: [&str; 2] = ["counts", "faulty"];

#[derive(Clone, Copy, Debug)]
enum Trouble {
    /// The brokers do not tell what is committed, and time out.
    OffsetsLate,
    /// They refuse to tell.
    OffsetsRefused,
    /// The first store is open then.
    Open,
    /// The other store is damaged, and the first is open then: both begin anew.
    Damaged,
    /// The other store is restored then.
    Restore(StepFault),
}

/// Stores that fail once each when they are told to.
#[derive(Clone, Debug)]
struct FaultyBackends {
    below: RedbBackends,
    faults: Faults,
    /// What the next open meets.
    open_fails: Arc<Mutex<Option<ErrorKind>>>,
}

impl FaultyBackends {
    fn new() -> Self {
        let below = RedbBackends::new(RedbOptions::new().cache_size(1 << 20));
        Self { below, faults: Faults::new(), open_fails: Arc::default() }
    }
}

impl BackendSupplier for FaultyBackends {
    type Backend = FaultyBackend<RedbBackend>;

    fn persistent(&self) -> bool {
        true
    }

    fn open(&self, directory: &Path) -> Result<Self::Backend> {
        if let Some(kind) = self.open_fails.lock().unwrap().take() {
            return Err(Error::new(kind, "the disk is away, or worse"));
        }
        Ok(FaultyBackend::new(self.below.open(directory)?, self.faults.clone()))
    }

    fn read_offsets(&self, directory: &Path, partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
        self.below.read_offsets(directory, partitions)
    }
}

/// What became of the only task.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<(Vec<TaskState>, Vec<Restored>)>>);

impl Listener for Heard {
    fn task_changed(&self, _: TaskId, state: TaskState) {
        self.0.lock().unwrap().0.push(state);
    }

    fn restored(&self, _: TaskId, _: &str, restored: &Restored) {
        self.0.lock().unwrap().1.push(*restored);
    }
}

fn app(cluster: &Cluster, directory: &Path, faulty: &FaultyBackends, heard: &Heard) -> App {
    let [counts, other] = STORES;
    App::new(cluster, "app", directory)
        .source("words")
        .store(StagedSupplier::new(counts, faulty.below.clone()).unwrap())
        .store(StagedSupplier::new(other, faulty.clone()).unwrap())
        .commit_interval(Duration::from_millis(100))
        .retry_timeout(Duration::from_secs(20))
        .listener(heard.clone())
}

fn process(record: &SourceRecord<'_>, context: &TaskContext<'_>) -> ProcessingResult {
    context.store("faulty")?.put(record.key().unwrap(), b"seen")?;
    count(record, context)
}

/// Waits until each record has counted once, in both stores.
fn wait_for_all(app: &RunningApp, case: &str) {
    let task = TaskId::new(0, 0);
    wait_until(case, || {
        assert!(!app.state().has_ended(), "{case}: the app has ended");
        let Ok(counts) = app.queries().snapshot("counts", task) else { return false };
        let Ok(other) = app.queries().snapshot("faulty", task) else { return false };
        (0..RECORDS).all(|key| {
            let key = key.to_string();
            let counted = counts.get(key.as_bytes()).unwrap();
            counted.is_some_and(|count| count == 1_u64.to_be_bytes().as_slice())
                && other.get(key.as_bytes()).unwrap().is_some()
        })
    });
}

fn stop(app: RunningApp) {
    app.stop_handle().stop();
    app.join().unwrap();
}

#[test]
fn ho_39_a_task_whose_start_fails_is_closed_and_can_be_opened_again() {
    let mock: MockCluster<'static, DefaultProducerContext> = MockCluster::new(1).unwrap();
    for topic in ["words", "app-counts-changelog", "app-faulty-changelog"] {
        mock.create_topic(topic, 1, 1).unwrap();
    }
    let cluster = Cluster::embedded(mock.bootstrap_servers());
    let mut producer = ChangelogProducer::new(&cluster, PATIENCE).unwrap();
    for key in 0..RECORDS {
        producer.send(&TopicPartition::new("words", 0), Some(key.to_string().as_bytes()), None).unwrap();
    }
    kstate_checkpoint::ChangelogWriter::flush(&mut producer).unwrap();
    let (first, faulty) = (tempfile::tempdir().unwrap(), FaultyBackends::new());
    let running = app(&cluster, first.path(), &faulty, &Heard::default()).alone().start(process).unwrap();
    wait_for_all(&running, "before any trouble");
    stop(running);

    let broken = [StepFault::Refused, StepFault::LostBefore, StepFault::LostAfter].map(Trouble::Restore);
    let troubles = [Trouble::OffsetsLate, Trouble::OffsetsRefused, Trouble::Open, Trouble::Damaged];
    for trouble in troubles.into_iter().chain(broken) {
        let case = format!("{trouble:?}");
        let (directory, heard) = (tempfile::tempdir().unwrap(), Heard::default());
        let late = [RDKafkaRespErr::RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT; 5];
        match trouble {
            Trouble::OffsetsLate => mock.request_errors(RDKafkaApiKey::OffsetFetch, &late),
            Trouble::OffsetsRefused => {
                let refused = [RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN];
                mock.request_errors(RDKafkaApiKey::OffsetFetch, &refused);
            }
            Trouble::Open => *faulty.open_fails.lock().unwrap() = Some(ErrorKind::Io),
            Trouble::Damaged => *faulty.open_fails.lock().unwrap() = Some(ErrorKind::Corrupted),
            // The first step is the wipe of a store without an offset.
            Trouble::Restore(fault) => faulty.faults.plan_steps([None, Some(fault)]),
        }
        let running = app(&cluster, directory.path(), &faulty, &heard).start(process).unwrap();
        assert_eq!(running.wait_for(AppState::Running, PATIENCE), AppState::Running, "{case}");
        wait_for_all(&running, &case);
        let restarts = running.stats().restarts;
        stop(running);

        let (states, _) = std::mem::take(&mut *heard.0.lock().unwrap());
        let lives: Vec<_> = states.split_inclusive(|state| *state == TaskState::Closed).collect();
        for life in &lives {
            assert_eq!(life.first(), Some(&TaskState::Assigned), "{case}: {states:?}");
            assert_eq!(life.last(), Some(&TaskState::Closed), "{case}: {states:?}");
            assert_eq!(life.iter().filter(|state| **state == TaskState::Assigned).count(), 1, "{case}: {states:?}");
        }
        if !matches!(trouble, Trouble::OffsetsLate | Trouble::OffsetsRefused | Trouble::Damaged) {
            assert!(lives.len() > 1, "{case}: nothing went wrong, {states:?}");
            assert_eq!(restarts, 1, "{case}");
        }

        // Nobody has its directory any more, and there is nothing to do again.
        let running = app(&cluster, directory.path(), &faulty, &heard).alone().start(process).unwrap();
        wait_for_all(&running, &case);
        stop(running);
        let (_, restored) = std::mem::take(&mut *heard.0.lock().unwrap());
        assert_eq!(restored.len(), STORES.len(), "{case}");
        for found in restored {
            assert!(found.wiped.is_none() && found.applied == 0, "{case}: {found:?}");
        }
    }
}
