//! The ends of changelogs, asked from the embedded cluster.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::{
    slice,
    time::{Duration, Instant},
};

use kstate_api::{ErrorKind, Offset, TopicPartition};
use kstate_checkpoint::{ChangelogReader, ChangelogRecord, ChangelogWriter};
use kstate_kafka::{
    ChangelogConsumer, ChangelogProducer, Cluster, EmbeddedCluster, LogEndsConsumer, SourceConsumer,
    rdkafka::mocking::MockCluster,
};
use kstate_offset_cache::{LogEnds, LogEndsReader};

fn ends(start: i64, end: i64) -> LogEnds {
    LogEnds { start: Offset::new(start).unwrap(), end: Offset::new(end).unwrap() }
}

/// Writes `count` records of `bytes` each, which compression cannot make smaller.
fn feed(producer: &mut ChangelogProducer, partition: &TopicPartition, count: usize, bytes: usize) {
    let mut state = 1_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    for _ in 0..count {
        let value: Vec<_> = (0..bytes).map(|_| noise()).collect();
        let record = ChangelogRecord { key: Some(b"k"), value: Some(&value), source_position: None };
        producer.append(partition, record).unwrap();
    }
    producer.flush().unwrap();
}

#[test]
fn both_ends_of_many_partitions_come_at_once() {
    let embedded = EmbeddedCluster::start().unwrap();
    embedded.create_topic("a", 3).unwrap();
    embedded.create_topic("b", 2).unwrap();
    let at = |topic, partition| TopicPartition::new(topic, partition);
    let mut producer = ChangelogProducer::new(&embedded.cluster(), Duration::from_secs(30)).unwrap();
    feed(&mut producer, &at("a", 1), 5, 1);
    feed(&mut producer, &at("b", 0), 2, 1);

    let asked = [at("b", 1), at("a", 0), at("a", 1), at("a", 2), at("b", 0), at("a", 1)];
    let all = LogEndsConsumer::new(&embedded.cluster()).unwrap().log_ends(&asked).unwrap();
    assert_eq!(all.len(), 5);
    assert_eq!(all.errors().count(), 0);
    assert_eq!(all.get(&at("a", 0)), Some(ends(0, 0)));
    assert_eq!(all.get(&at("a", 1)), Some(ends(0, 5)));
    assert_eq!(all.get(&at("a", 2)), Some(ends(0, 0)));
    assert_eq!(all.get(&at("b", 0)), Some(ends(0, 2)));
    assert_eq!(all.get(&at("b", 1)), Some(ends(0, 0)));
}

/// The mock drops its oldest records beyond 5 MiB, as a log with retention does.
#[test]
fn a_log_that_lost_its_front_begins_later() {
    let embedded = EmbeddedCluster::start().unwrap();
    embedded.create_topic("cl", 1).unwrap();
    let partition = TopicPartition::new("cl", 0);
    let mut producer = ChangelogProducer::new(&embedded.cluster(), Duration::from_secs(30)).unwrap();
    for _ in 0..20 {
        feed(&mut producer, &partition, 1, 500_000);
    }
    let all = LogEndsConsumer::new(&embedded.cluster()).unwrap().log_ends(slice::from_ref(&partition)).unwrap();
    let found = all.get(&partition).unwrap();
    assert_eq!(found.end.get(), 20);
    assert!(found.start.get() > 0, "{found:?}");
    let bounds = ChangelogConsumer::new(&embedded.cluster()).unwrap().bounds(&partition).unwrap();
    assert_eq!((found.start, found.end), (bounds.start, bounds.end));
}

#[test]
fn what_is_not_there_is_an_error_of_its_own_and_is_not_created() {
    let embedded = EmbeddedCluster::start().unwrap();
    embedded.create_topic("cl", 1).unwrap();
    let (there, no_topic, no_partition) =
        (TopicPartition::new("cl", 0), TopicPartition::new("vanished", 0), TopicPartition::new("cl", 7));
    let mut reader = LogEndsConsumer::new(&embedded.cluster()).unwrap();
    for _ in 0..2 {
        let all = reader.log_ends(&[no_topic.clone(), there.clone(), no_partition.clone()]).unwrap();
        assert_eq!(all.get(&there), Some(ends(0, 0)));
        let mut errors: Vec<_> = all.errors().map(|(partition, error)| (partition.clone(), error.kind())).collect();
        errors.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(errors, [(no_partition.clone(), ErrorKind::Config), (no_topic.clone(), ErrorKind::Config)]);
    }
    assert!(reader.log_ends(&[]).unwrap().is_empty());
}

/// A partition is without a leader for a moment while brokers come and go. The client calls it unknown, as it does one
/// that does not exist.
#[test]
fn a_partition_without_a_leader_is_unavailable_and_not_unknown() {
    let mock = MockCluster::new(1).unwrap();
    mock.create_topic("cl", 2, 1).unwrap();
    mock.partition_leader("cl", 0, None).unwrap();
    let cluster = Cluster::embedded(mock.bootstrap_servers());
    let (leaderless, no_partition) = (TopicPartition::new("cl", 0), TopicPartition::new("cl", 7));

    let mut changelog = ChangelogConsumer::new(&cluster).unwrap();
    assert_eq!(changelog.bounds(&leaderless).unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(changelog.bounds(&no_partition).unwrap_err().kind(), ErrorKind::Config);
    let source = |partition| SourceConsumer::assign(&cluster, "group", slice::from_ref(partition));
    assert_eq!(source(&leaderless).unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(source(&no_partition).unwrap_err().kind(), ErrorKind::Config);
    let all = LogEndsConsumer::new(&cluster).unwrap().log_ends(slice::from_ref(&leaderless)).unwrap();
    let errors: Vec<_> = all.errors().map(|(_, error)| error.kind()).collect();
    assert_eq!(errors, [ErrorKind::Unavailable]);

    mock.partition_leader("cl", 0, Some(1)).unwrap();
    assert_eq!(changelog.bounds(&leaderless).unwrap().end.get(), 0);
}

#[test]
fn without_a_broker_nothing_is_known() {
    // A port on which nothing listens.
    let mut reader = LogEndsConsumer::new(&Cluster::new("127.0.0.1:1")).unwrap();
    let error = reader.log_ends(&[TopicPartition::new("cl", 0)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

/// HO-67: one batched look-up instead of one for each store. Each request takes 20 ms, so asking for 2 500 partitions one
/// by one would take 50 s at least; more of them than fit in one request take a few.
#[test]
fn ho_67_thousands_of_partitions_take_a_few_requests() {
    let mock = MockCluster::new(1).unwrap();
    mock.create_topic("cl", 2_500, 1).unwrap();
    mock.broker_round_trip_time(1, Duration::from_millis(20)).unwrap();
    let partitions: Vec<_> = (0..2_500).map(|number| TopicPartition::new("cl", number)).collect();

    let mut reader = LogEndsConsumer::new(&Cluster::embedded(mock.bootstrap_servers())).unwrap();
    let started = Instant::now();
    let all = reader.log_ends(&partitions).unwrap();
    let elapsed = started.elapsed();
    println!("the ends of 2 500 partitions, 20 ms from the broker: {elapsed:?}");
    assert_eq!((all.len(), all.errors().count()), (2_500, 0));
    assert!(elapsed < Duration::from_secs(15), "{elapsed:?}");
}
