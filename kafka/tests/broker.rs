//! The adapters on a real broker.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod broker_support;

use std::{
    slice,
    sync::Arc,
    time::{Duration, Instant},
};

use broker_support::{TIMEOUT, cluster, unique};
use futures_executor::block_on;
use kstate_api::{
    ErrorKind, KeyValueStore, Offset, ReadOnlyKeyValueStoreExt, StagedStore, StateStore, TaskId, TopicPartition,
};
use kstate_checkpoint::{ChangelogRecord, ChangelogWriter, LoggedStore, RestoreOptions, Task, checkpoint, restore};
use kstate_kafka::{
    ChangelogConsumer, ChangelogProducer, SourceConsumer, TopicSpec, Topics,
    rdkafka::{
        ClientConfig,
        admin::{AdminClient, AdminOptions, ResourceSpecifier},
        client::DefaultClientContext,
    },
};
use kstate_store_memory::MemoryBackend;

fn topic_config(topic: &str, key: &str) -> Option<String> {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", cluster().brokers()).create().unwrap();
    let resource = ResourceSpecifier::Topic(topic);
    let described = block_on(admin.describe_configs([&resource], &AdminOptions::new())).unwrap();
    described.first().unwrap().as_ref().unwrap().get(key).and_then(|entry| entry.value.clone())
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn a_changelog_is_created_compacted_and_only_once() {
    let topics = Topics::new(&cluster()).unwrap();
    let spec = TopicSpec::changelog(unique("cl"), 5);
    assert_eq!(topics.partitions(spec.name()).unwrap(), None);
    topics.ensure(&spec).unwrap();
    topics.ensure(&spec).unwrap();
    assert_eq!(topics.partitions(spec.name()).unwrap(), Some(5));
    assert_eq!(topic_config(spec.name(), "cleanup.policy").as_deref(), Some("compact"));
    assert_eq!(topic_config(spec.name(), "min.compaction.lag.ms").as_deref(), Some("86400000"));
    topics.delete(&[spec.name()]).unwrap();
}

/// The other number of partitions is refused with both counts named, and the topic stays as it is.
#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn ho_59_a_changelog_with_another_number_of_partitions_is_refused() {
    let topics = Topics::new(&cluster()).unwrap();
    let name = unique("cl");
    topics.ensure(&TopicSpec::changelog(&name, 8)).unwrap();
    let error = topics.ensure(&TopicSpec::changelog(&name, 5)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains('8') && error.to_string().contains('5'), "{error}");
    assert_eq!(topics.partitions(&name).unwrap(), Some(8));
    topics.delete(&[&name]).unwrap();
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn a_changelog_that_would_drop_its_oldest_records_is_refused() {
    let topics = Topics::new(&cluster()).unwrap();
    let name = unique("cl");
    topics.ensure(&TopicSpec::new(&name, 1).with("cleanup.policy", "delete")).unwrap();
    let error = topics.ensure(&TopicSpec::changelog(&name, 1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("cleanup.policy=delete"), "{error}");
    topics.delete(&[&name]).unwrap();
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn deleting_what_is_not_there_is_fine() {
    Topics::new(&cluster()).unwrap().delete(&[&unique("never")]).unwrap();
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p1_p4_a_store_is_rebuilt_from_its_changelog() {
    let cluster = cluster();
    let topics = Topics::new(&cluster).unwrap();
    let (lines, changelog) = (TopicSpec::new(unique("lines"), 1), TopicSpec::changelog(unique("cl"), 1));
    topics.ensure(&lines).unwrap();
    topics.ensure(&changelog).unwrap();
    let (source, log) = (TopicPartition::new(lines.name(), 0), TopicPartition::new(changelog.name(), 0));

    let mut producer = ChangelogProducer::new(&cluster, TIMEOUT).unwrap();
    for _ in 0..100 {
        let line = ChangelogRecord { key: None, value: Some(b"line"), source_position: None };
        producer.append(&source, line).unwrap();
    }
    producer.flush().unwrap();

    let open = || -> Arc<dyn KeyValueStore> {
        Arc::new(StagedStore::open("counts", MemoryBackend::new(), slice::from_ref(&log)).unwrap())
    };
    let logged = |store: &Arc<dyn KeyValueStore>| LoggedStore::new(Arc::clone(store) as _, log.clone()).unwrap();
    let counts = open();
    let task = Task::new(TaskId::new(0, 0), vec![source.clone()], vec![logged(&counts)]);
    let group = unique("group");
    let mut consumer = SourceConsumer::assign(&cluster, &group, slice::from_ref(&source)).unwrap();
    let deadline = Instant::now() + TIMEOUT;
    let mut seen = 0_u64;
    while seen < 100 {
        assert!(Instant::now() < deadline, "only {seen} lines came");
        if consumer.poll(Duration::from_millis(100)).unwrap().is_some() {
            seen += 1;
            counts.put(b"lines", &seen.to_be_bytes()).unwrap();
            counts.put(&seen.to_be_bytes(), b"").unwrap();
        }
    }
    let position = consumer.position().unwrap();
    let committed = checkpoint(&[task], &position, &mut producer, &mut consumer).unwrap();
    assert_eq!(committed.changelog_records, 101);
    assert_eq!(counts.committed_offset(&log).unwrap(), Offset::new(100));

    let again = SourceConsumer::assign(&cluster, &group, slice::from_ref(&source)).unwrap();
    assert_eq!(again.committed().next(&source), Offset::new(100));
    let rebuilt = open();
    let mut reader = ChangelogConsumer::new(&cluster).unwrap();
    let restored =
        restore(&logged(&rebuilt), again.committed(), &mut reader, &RestoreOptions::new(), &mut |_| {}).unwrap();
    assert_eq!((restored.applied, restored.uncommitted), (101, 0));
    assert_eq!(rebuilt.get(b"lines").unwrap().unwrap(), 100_u64.to_be_bytes().as_slice());
    topics.delete(&[lines.name(), changelog.name()]).unwrap();
}
