//! Logs that are not what the app left: truncated, or deleted and made again under the offsets that were kept.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::{
    path::Path,
    time::{Duration, Instant},
};

use futures_executor::block_on;
use kstate_api::{ErrorKind, Offset, TopicPartition};
use kstate_checkpoint::{ChangelogReader as _, Restored, SourceCommitter as _, WipeReason};
use kstate_kafka::{
    ChangelogConsumer, Cluster, SourceConsumer, TopicSpec, Topics,
    app::{AppState, Guarantee},
};
use rdkafka::{
    ClientConfig, Offset as ClientOffset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, AlterConfig, ResourceSpecifier},
    client::DefaultClientContext,
};

mod app_support;
mod broker_support;
use app_support::{PATIENCE, Recorder, World, count, wait_until};
use broker_support::{cluster, unique};

const PARTITIONS: i32 = 2;

fn world() -> World {
    World::at(cluster(), &unique("app-lost-logs"), PARTITIONS.unsigned_abs())
}

/// Counts what was fed with the state in `directory`, and stops. What was restored before.
fn count_all(world: &World, directory: &Path, guarantee: Guarantee) -> Vec<Restored> {
    let recorder = Recorder::default();
    let app = world.app(directory, &recorder).guarantee(guarantee).start(count).unwrap();
    world.wait_for_counts(&[&app]);
    app.stop_handle().stop();
    app.join().unwrap();
    recorder.take().restored.into_iter().map(|(_, restored)| restored).collect()
}

fn assert_wiped(restored: &[Restored], reason: WipeReason) {
    assert!(restored.len() >= 2 && restored.iter().all(|restored| restored.wiped == Some(reason)), "{restored:?}");
}

fn partitions(topic: &str) -> impl Iterator<Item = TopicPartition> {
    (0..PARTITIONS).map(move |partition| TopicPartition::new(topic, partition))
}

/// The end of each partition's log.
fn ends(cluster: &Cluster, topic: &str) -> Vec<(TopicPartition, Offset)> {
    let mut reader = ChangelogConsumer::new(cluster).unwrap();
    let deadline = Instant::now() + PATIENCE;
    let mut end = |partition: &TopicPartition| loop {
        match reader.bounds(partition) {
            // A topic that was just made has no leader yet.
            Err(error) if error.kind() == ErrorKind::Unavailable && Instant::now() < deadline => {}
            bounds => return bounds.unwrap().end,
        }
    };
    partitions(topic).map(|partition| (partition.clone(), end(&partition))).collect()
}

/// Deletes the records of a compacted log before `starts`, which a broker does for a log that is not only compacted.
fn truncate(cluster: &Cluster, starts: &[(TopicPartition, Offset)]) {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", cluster.brokers()).create().unwrap();
    let set_policy = |policy| {
        let topic = ResourceSpecifier::Topic(starts.first().unwrap().0.topic());
        let config = AlterConfig::new(topic).set("cleanup.policy", policy);
        block_on(admin.alter_configs([&config], &AdminOptions::new())).unwrap().pop().unwrap().unwrap();
    };
    set_policy("compact,delete");
    let mut list = TopicPartitionList::new();
    for (partition, start) in starts {
        let start = ClientOffset::Offset(start.get());
        list.add_partition_offset(partition.topic(), partition.partition(), start).unwrap();
    }
    let deleted = block_on(admin.delete_records(&list, &AdminOptions::new())).unwrap();
    assert!(deleted.elements().iter().all(|element| element.error().is_ok()), "{deleted:?}");
    set_policy("compact");
}

/// Deletes `topic` and makes it again, empty.
fn make_again(cluster: &Cluster, spec: &TopicSpec) {
    let topics = Topics::new(cluster).unwrap();
    topics.delete(&[spec.name()]).unwrap();
    wait_until("the topic is gone", || topics.partitions(spec.name()).unwrap().is_none());
    topics.ensure(spec).unwrap();
    let emptied = || ends(cluster, spec.name()).iter().all(|(_, end)| *end == Offset::ZERO);
    wait_until("the topic is there again", emptied);
}

/// The log begins beyond what one of two directories has; every word is in what is left of it.
fn truncated_under_a_store(guarantee: Guarantee) {
    let mut world = world();
    let (behind, ahead) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    world.feed(1000);
    count_all(&world, behind.path(), guarantee);
    world.feed(1000);
    count_all(&world, ahead.path(), guarantee);
    let starts = ends(&world.cluster, &world.changelog());
    world.feed(1000);
    count_all(&world, ahead.path(), guarantee);
    truncate(&world.cluster, &starts);

    assert_wiped(&count_all(&world, behind.path(), guarantee), WipeReason::LogStartBeyondStore);
    let kept = count_all(&world, ahead.path(), guarantee);
    assert!(kept.iter().all(|restored| restored.wiped.is_none() && restored.applied == 0), "{kept:?}");
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p4_a_store_before_the_start_of_its_log_begins_anew_at_least_once() {
    truncated_under_a_store(Guarantee::AtLeastOnce);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p4_a_store_before_the_start_of_its_log_begins_anew_exactly_once() {
    truncated_under_a_store(Guarantee::ExactlyOnce);
}

/// The changelog is another one, and shorter: what the store has is of a log that is gone.
#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p4_a_store_beyond_the_end_of_a_changelog_that_was_made_again_begins_anew() {
    let mut world = world();
    let state = tempfile::tempdir().unwrap();
    world.feed(1000);
    count_all(&world, state.path(), Guarantee::AtLeastOnce);
    make_again(&world.cluster, &TopicSpec::changelog(world.changelog(), world.partitions));

    world.forget_fed();
    world.feed(100);
    assert_wiped(&count_all(&world, state.path(), Guarantee::AtLeastOnce), WipeReason::StoreBeyondLogEnd);
    let empty = tempfile::tempdir().unwrap();
    count_all(&world, empty.path(), Guarantee::AtLeastOnce);
}

/// The changelog vanishes under the app that runs.
#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn a_changelog_that_is_deleted_under_a_running_app_ends_it_with_an_error() {
    let mut world = world();
    let state = tempfile::tempdir().unwrap();
    world.feed(1000);
    let app = world.app(state.path(), &Recorder::default()).retry_timeout(Duration::from_secs(5));
    let app = app.delivery_timeout(Duration::from_secs(5)).start(count).unwrap();
    world.wait_for_counts(&[&app]);
    Topics::new(&world.cluster).unwrap().delete(&[world.changelog().as_str()]).unwrap();
    world.feed(100);
    assert_eq!(app.wait_for(AppState::Failed, PATIENCE), AppState::Failed);
    let error = app.join().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Config | ErrorKind::Unavailable), "{error}");
}

/// With the source its committed offsets are gone, too: what was counted of it does not count any more.
#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn a_source_that_was_made_again_is_counted_from_its_start() {
    let mut world = world();
    let state = tempfile::tempdir().unwrap();
    world.feed(1000);
    count_all(&world, state.path(), Guarantee::AtLeastOnce);
    make_again(&world.cluster, &TopicSpec::new(world.source.as_str(), world.partitions));

    world.forget_fed();
    world.feed(100);
    assert_wiped(&count_all(&world, state.path(), Guarantee::AtLeastOnce), WipeReason::StoreBeyondSource);
    let empty = tempfile::tempdir().unwrap();
    count_all(&world, empty.path(), Guarantee::AtLeastOnce);
}

/// The group's offset is beyond the end of the source: which records count is nobody's to guess.
#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn a_source_that_ends_before_its_committed_offset_ends_the_app_with_an_error() {
    let mut world = world();
    let state = tempfile::tempdir().unwrap();
    world.feed(1000);
    let beyond: Vec<_> = partitions(&world.source).collect();
    let mut group = SourceConsumer::assign(&world.cluster, &world.id, &beyond).unwrap();
    let beyond = beyond.into_iter().map(|partition| (partition, Offset::new(5000).unwrap())).collect();
    group.commit(&beyond).unwrap();
    drop(group);

    let app = world.app(state.path(), &Recorder::default()).start(count).unwrap();
    assert_eq!(app.wait_for(AppState::Failed, PATIENCE), AppState::Failed);
    let error = app.join().unwrap_err();
    assert!(error.to_string().contains("cannot read the source"), "{error}");
}
