//! Faults that other systems had with their clients, by the ids they are known by here, on the embedded cluster.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::{
    iter, slice,
    sync::mpsc::channel,
    thread,
    time::{Duration, Instant},
};

use kstate_api::{ErrorKind, Offset, Position, TopicPartition};
use kstate_checkpoint::{ChangelogRecord, ChangelogWriter as _, SourceCommitter as _};
use kstate_kafka::{
    ChangelogProducer, Cluster, EmbeddedCluster, GroupOffsets, SourceConsumer, app::AppState, rdkafka::Message as _,
};

mod app_support;
use app_support::{PATIENCE, Recorder, World, count};

const TIMEOUT: Duration = Duration::from_secs(30);

fn lines() -> TopicPartition {
    TopicPartition::new("lines", 0)
}

fn embedded() -> EmbeddedCluster {
    let embedded = EmbeddedCluster::start().unwrap();
    embedded.create_topic("lines", 1).unwrap();
    embedded
}

fn position(next: i64) -> Position {
    [(lines(), Offset::new(next).unwrap())].into_iter().collect()
}

/// Writes `count` records of `value` to the partition, each in a batch of its own.
fn feed(cluster: &Cluster, partition: &TopicPartition, count: usize, value: &[u8]) {
    let mut producer = ChangelogProducer::new(cluster, TIMEOUT).unwrap();
    for n in 0..count {
        producer.send(partition, Some(n.to_string().as_bytes()), Some(value)).unwrap();
        producer.flush().unwrap();
    }
}

/// More than a partition keeps, of what does not become less by compression: its oldest records are dropped.
fn overfill(cluster: &Cluster, partition: &TopicPartition) {
    let mut state = 1_u64;
    let noise = iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    feed(cluster, partition, 40, &noise.take(60_000).flatten().collect::<Vec<_>>());
}

fn assign(cluster: &Cluster) -> SourceConsumer {
    SourceConsumer::assign(cluster, "group", slice::from_ref(&lines())).unwrap()
}

/// The offsets of all records that come until none has for a while.
fn read(source: &SourceConsumer, expected: usize) -> Vec<i64> {
    let (mut offsets, deadline) = (Vec::new(), Instant::now() + TIMEOUT);
    loop {
        match source.poll(Duration::from_millis(300)).unwrap() {
            Some(message) => offsets.push(message.offset()),
            None if offsets.len() >= expected => return offsets,
            None => assert!(Instant::now() < deadline, "{} of {expected} records came", offsets.len()),
        }
    }
}

#[test]
fn ho_02_the_last_source_record_does_not_come_again() {
    let embedded = embedded();
    let cluster = embedded.cluster();
    feed(&cluster, &lines(), 42, b"line");
    let mut source = assign(&cluster);
    assert_eq!(read(&source, 42).last(), Some(&41));
    let position = source.position().unwrap();
    assert_eq!(position.next(&lines()), Offset::new(42));
    source.commit(&position).unwrap();
    drop(source);

    let again = assign(&cluster);
    assert_eq!(again.committed().next(&lines()), Offset::new(42));
    assert_eq!(read(&again, 0), [0_i64; 0]);
}

/// The app ends and says why: it neither waits for records that are gone nor leaves them out in silence.
#[test]
fn ho_27_a_source_that_has_dropped_what_the_group_needs_ends_the_app_with_an_error() {
    for alone in [false, true] {
        let mut world = World::embedded(1);
        let source = TopicPartition::new(world.source.as_str(), 0);
        world.feed(10);
        let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
        let start = || {
            let app = world.app(state.path(), &recorder);
            if alone { app.alone() } else { app }.start(count).unwrap()
        };
        let app = start();
        world.wait_for_counts(&[&app]);
        app.stop_handle().stop();
        app.join().unwrap();

        overfill(&world.cluster, &source);
        let started = Instant::now();
        let app = start();
        assert_eq!(app.wait_for(AppState::Failed, TIMEOUT), AppState::Failed, "alone: {alone}");
        let error = app.join().unwrap_err();
        assert!(started.elapsed() < TIMEOUT, "{:?}", started.elapsed());
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains("words-0") && error.to_string().contains("offset 10 of"), "{error}");
        let group = GroupOffsets::new(&world.cluster, &world.id).unwrap();
        let committed = group.committed(slice::from_ref(&source)).unwrap().position;
        assert_eq!(committed.next(&source), Offset::new(10), "it is somebody's to decide");
    }
}

#[test]
fn ho_27_a_consumer_tells_where_the_log_begins_if_that_is_beyond_its_place() {
    let embedded = embedded();
    let cluster = embedded.cluster();
    feed(&cluster, &lines(), 10, b"line");
    let mut source = assign(&cluster);
    source.commit(&position(3)).unwrap();
    drop(source);
    overfill(&cluster, &lines());
    let (source, deadline) = (assign(&cluster), Instant::now() + TIMEOUT);
    let error = loop {
        match source.poll(Duration::from_millis(100)) {
            Ok(message) => assert!(message.is_none(), "a record came out of order"),
            Err(error) => break error,
        }
        assert!(Instant::now() < deadline, "it waits for what is gone");
    };
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("lines-0") && error.to_string().contains("offset 3 of"), "{error}");
}

/// The queue is empty then, too.
#[test]
fn ho_55_a_record_that_is_refused_for_good_fails_the_flush_though_others_arrive() {
    let embedded = embedded();
    let cluster = embedded.cluster();
    let record = ChangelogRecord { key: Some(b"k"), value: Some(b"v"), source_position: None };
    let mut producer = ChangelogProducer::new(&cluster, TIMEOUT).unwrap();
    let missing = TopicPartition::new("lines", 7);
    let appended = producer.append(&missing, record);
    producer.append(&lines(), record).unwrap();
    let failed = appended.and_then(|()| producer.flush().map(drop)).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Config, "{failed}");

    producer.append(&lines(), record).unwrap();
    let acknowledged = producer.flush().unwrap();
    assert!(acknowledged.get(&lines()).is_some() && acknowledged.get(&missing).is_none(), "{acknowledged:?}");
}

/// Whatever was read meanwhile: a consumer commits what it is told to, and nothing more when it ends.
#[test]
fn ho_58_a_consumer_ends_in_bounded_time_with_what_was_committed() {
    let embedded = embedded();
    let cluster = embedded.cluster();
    feed(&cluster, &lines(), 10, b"line");
    let mut source = assign(&cluster);
    assert_eq!(read(&source, 10).len(), 10);
    source.commit(&position(4)).unwrap();
    let (ended, end) = channel();
    let dropped = thread::spawn(move || {
        drop(source);
        ended.send(()).unwrap();
    });
    assert!(end.recv_timeout(Duration::from_secs(10)).is_ok(), "the consumer does not end");
    dropped.join().unwrap();

    let group = GroupOffsets::new(&cluster, "group").unwrap();
    assert_eq!(group.committed(slice::from_ref(&lines())).unwrap().position, position(4));
    assert_eq!(read(&assign(&cluster), 6), [4, 5, 6, 7, 8, 9]);
}

/// The same for a member of a group, which is dropped in the middle of its work and not stopped.
#[test]
fn ho_58_an_app_that_is_dropped_ends_in_bounded_time() {
    let mut world = World::embedded(2);
    world.feed(500);
    let (state, recorder) = (tempfile::tempdir().unwrap(), Recorder::default());
    let app = world.app(state.path(), &recorder).start(count).unwrap();
    assert_eq!(app.wait_for(AppState::Running, PATIENCE), AppState::Running);
    let (ended, end) = channel();
    let dropped = thread::spawn(move || {
        drop(app);
        ended.send(()).unwrap();
    });
    assert!(end.recv_timeout(Duration::from_secs(10)).is_ok(), "the app does not end");
    dropped.join().unwrap();
    let app = world.app(state.path(), &recorder).start(count).unwrap();
    world.wait_for_counts(&[&app]);
}
