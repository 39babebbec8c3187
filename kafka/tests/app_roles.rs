//! Outputs of which not every one has to be delivered, on a cluster that refuses some topics.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::{path::Path, time::Duration};

use kstate_api::{ErrorKind, Offset, TopicPartition};
use kstate_kafka::{
    Cluster, GroupOffsets,
    app::{App, AppState, Guarantee, OutputRecord, OwnedRecord, RunningApp, SourceRecord, TaskContext},
    rdkafka::{
        mocking::MockCluster,
        producer::DefaultProducerContext,
        types::{RDKafkaErrorCode, RDKafkaRespErr},
    },
};
use kstate_processing::{ExecutorSettings, ProcessorFn, Role, Work};

mod app_support;
use app_support::{PATIENCE, Recorder, World, count_in, count_next, wait_until};

/// Everything is sent to these.
const OUTPUTS: [&str; 3] = ["first", "second", "third"];

/// A cluster that takes no record of the `refused` topics.
fn cluster(refused: &[&str]) -> (MockCluster<'static, DefaultProducerContext>, World) {
    let mock = MockCluster::new(1).unwrap();
    let world = World::in_process(Cluster::embedded(mock.bootstrap_servers()), 1);
    for topic in world.all_topics().iter().map(String::as_str).chain(OUTPUTS) {
        mock.create_topic(topic, 1, 1).unwrap();
    }
    for topic in refused {
        mock.topic_error(topic, RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED).unwrap();
    }
    (mock, world)
}

/// An app with these roles, which ends soon if nothing works.
fn app(world: &World, state: &Path, roles: [Role; 3]) -> App {
    let app = world.app(state, &Recorder::default()).retry_timeout(Duration::from_secs(2));
    OUTPUTS.iter().zip(roles).fold(app, |app, (topic, role)| app.output_role(*topic, role))
}

/// Counts words, one after the other, and sends each to all outputs.
fn start(app: App) -> kstate_api::Result<RunningApp> {
    app.start(|record: &SourceRecord<'_>, context: &TaskContext<'_>| {
        let count = count_next(record, context)?.to_be_bytes();
        OUTPUTS.iter().try_for_each(|topic| Ok(context.send(topic, record.key(), Some(&count))?))
    })
}

/// The same, with several workers.
fn start_workers(app: App) -> kstate_api::Result<RunningApp> {
    let settings = ExecutorSettings { workers: 4, ..ExecutorSettings::default() };
    let process = ProcessorFn::new(|record: &OwnedRecord, work: &mut Work<'_, OutputRecord>| {
        let (key, count) = count_in(work, record)?;
        for topic in OUTPUTS {
            work.output(OutputRecord::by_key(topic, key.clone(), count.clone()));
        }
        Ok(())
    });
    app.start_workers(settings, process)
}

type Start = fn(App) -> kstate_api::Result<RunningApp>;

fn committed(world: &World) -> Option<i64> {
    let source = TopicPartition::new(world.source.as_str(), 0);
    let group = GroupOffsets::new(&world.cluster, &world.id).unwrap();
    let position = group.committed(std::slice::from_ref(&source)).unwrap().position;
    position.next(&source).map(Offset::get)
}

/// With topic `second` refused, everything else arrives, and the app goes on.
fn goes_on(roles: [Role; 3], start: Start) -> kstate_kafka::app::AppStats {
    let (_mock, mut world) = cluster(&["second"]);
    world.feed(200);
    let state = tempfile::tempdir().unwrap();
    let app = start(app(&world, state.path(), roles)).unwrap();
    world.wait_for_counts(&[&app]);
    app.stop_handle().stop();
    wait_until("it stops", || app.state().has_ended());
    let counted = app.stats();
    app.join().unwrap();
    assert_eq!(committed(&world), Some(200));
    for topic in ["first", "third"] {
        let mut records = 0;
        world.read_committed(topic, &mut |_| records += 1);
        assert_eq!(records, 200, "{topic}");
    }
    counted
}

/// With some topics refused that it needs, the app ends with the error, and nothing is committed.
fn ends(refused: &[&str], roles: [Role; 3], start: Start) {
    let (_mock, mut world) = cluster(refused);
    world.feed(20);
    let state = tempfile::tempdir().unwrap();
    let app = start(app(&world, state.path(), roles)).unwrap();
    assert_eq!(app.wait_for(AppState::Failed, PATIENCE), AppState::Failed);
    let error = app.join().unwrap_err().to_string();
    let code = RDKafkaErrorCode::TopicAuthorizationFailed.to_string();
    assert!(error.contains(&code), "{error}");
    assert_eq!(committed(&world), None);
}

#[test]
fn a2_an_ignored_output_that_fails_is_counted() {
    for start in [start, start_workers] {
        let stats = goes_on([Role::Required, Role::Ignored, Role::Required], start);
        assert_eq!((stats.ignored_failures, stats.late_acks), (200, 0));
    }
}

#[test]
fn a2_one_of_several_outputs_is_enough() {
    for start in [start, start_workers] {
        let stats = goes_on([Role::AnyOf; 3], start);
        // Three answers for each record, of which the first delivery decides.
        assert!((200..=400).contains(&stats.late_acks), "{stats:?}");
        assert_eq!(stats.ignored_failures, 0);
    }
}

#[test]
fn a2_without_any_of_several_outputs_nothing_is_committed() {
    for start in [start, start_workers] {
        ends(&["second", "third"], [Role::Required, Role::AnyOf, Role::AnyOf], start);
    }
}

#[test]
fn a2_without_a_required_output_nothing_is_committed() {
    for start in [start, start_workers] {
        ends(&["first"], [Role::Required, Role::AnyOf, Role::Ignored], start);
    }
}

#[test]
fn a2_exactly_once_every_output_is_required() {
    let (_mock, world) = cluster(&[]);
    for role in [Role::AnyOf, Role::Ignored] {
        let state = tempfile::tempdir().unwrap();
        let app = app(&world, state.path(), [Role::Required, role, Role::Required]);
        let error = start(app.guarantee(Guarantee::ExactlyOnce)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("second"), "{error}");
    }
}

#[test]
fn a2_dead_letters_are_required() {
    let (_mock, world) = cluster(&[]);
    let state = tempfile::tempdir().unwrap();
    let app = app(&world, state.path(), [Role::Required, Role::Ignored, Role::Required]).dead_letters("second");
    let error = start_workers(app).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("second"), "{error}");
}
