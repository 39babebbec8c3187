//! The adapters on the embedded cluster.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::{
    iter, slice,
    sync::Arc,
    time::{Duration, Instant},
};

use kstate_api::{
    ErrorKind, KeyValueStore, Offset, Position, ReadOnlyKeyValueStoreExt, StagedStore, StateStore, TaskId,
    TopicPartition,
};
use kstate_checkpoint::{
    ChangelogReader, ChangelogRecord, ChangelogWriter, LoggedStore, RestoreOptions, SourceCommitter, Task, checkpoint,
    encode_source_position, restore,
};
use kstate_kafka::{
    ChangelogConsumer, ChangelogProducer, Cluster, EmbeddedCluster, SourceConsumer, rdkafka::Message as _,
};
use kstate_store_memory::MemoryBackend;

const TIMEOUT: Duration = Duration::from_secs(30);

fn offset(value: i64) -> Offset {
    Offset::new(value).unwrap()
}

fn record<'r>(key: &'r [u8], value: Option<&'r [u8]>) -> ChangelogRecord<'r> {
    ChangelogRecord { key: Some(key), value, source_position: None }
}

fn store(changelog: &TopicPartition) -> Arc<dyn KeyValueStore> {
    Arc::new(StagedStore::open("counts", MemoryBackend::new(), slice::from_ref(changelog)).unwrap())
}

fn logged(store: &Arc<dyn KeyValueStore>, changelog: &TopicPartition) -> LoggedStore {
    LoggedStore::new(Arc::clone(store) as _, changelog.clone()).unwrap()
}

/// Writes `count` records to the partition, which any writer of records can.
fn feed(cluster: &Cluster, partition: &TopicPartition, count: usize) {
    let mut producer = ChangelogProducer::new(cluster, TIMEOUT).unwrap();
    for n in 0..count {
        producer.append(partition, record(n.to_string().as_bytes(), Some(b"line"))).unwrap();
    }
    producer.flush().unwrap();
}

fn poll_one(source: &SourceConsumer) -> i64 {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(message) = source.poll(Duration::from_millis(100)).unwrap() {
            return message.offset();
        }
        assert!(Instant::now() < deadline, "no record came");
    }
}

#[test]
fn a_flush_returns_the_last_offset_of_each_partition() {
    let embedded = EmbeddedCluster::start().unwrap();
    embedded.create_topic("cl", 2).unwrap();
    let (zero, one) = (TopicPartition::new("cl", 0), TopicPartition::new("cl", 1));
    let mut producer = ChangelogProducer::new(&embedded.cluster(), TIMEOUT).unwrap();
    for key in [b"a", b"b", b"c"] {
        producer.append(&zero, record(key, Some(b"1"))).unwrap();
    }
    producer.append(&one, record(b"d", None)).unwrap();
    let acknowledged = producer.flush().unwrap();
    assert_eq!((acknowledged.get(&zero), acknowledged.get(&one)), (Some(offset(2)), Some(offset(0))));
    assert!(producer.flush().unwrap().is_empty(), "each flush begins anew");
}

#[test]
fn what_was_appended_is_read_with_key_value_tombstone_and_header() {
    let embedded = EmbeddedCluster::start().unwrap();
    embedded.create_topic("cl", 1).unwrap();
    let partition = TopicPartition::new("cl", 0);
    let mut producer = ChangelogProducer::new(&embedded.cluster(), TIMEOUT).unwrap();
    let empty = ChangelogRecord { key: Some(b""), value: Some(b""), source_position: Some(b"header") };
    producer.append(&partition, empty).unwrap();
    producer.append(&partition, record(b"gone", None)).unwrap();
    producer.flush().unwrap();

    let mut reader = ChangelogConsumer::new(&embedded.cluster()).unwrap();
    let bounds = reader.bounds(&partition).unwrap();
    assert_eq!((bounds.start, bounds.end), (offset(0), offset(2)));
    reader.seek(&partition, bounds.start).unwrap();
    assert_eq!(reader.position().unwrap(), bounds.start);
    let mut read = Vec::new();
    let deadline = Instant::now() + TIMEOUT;
    while reader.position().unwrap() < bounds.end {
        assert!(Instant::now() < deadline, "the records do not come");
        let mut keep = |offset, record: ChangelogRecord<'_>| {
            let owned = |bytes: &[u8]| bytes.to_vec();
            read.push((offset, record.key.map(owned), record.value.map(owned), record.source_position.map(owned)));
        };
        reader.poll(Duration::from_millis(100), &mut keep).unwrap();
    }
    let first = (offset(0), Some(Vec::new()), Some(Vec::new()), Some(b"header".to_vec()));
    assert_eq!(read, [first, (offset(1), Some(b"gone".to_vec()), None, None)]);
}

#[test]
fn p1_checkpoint_and_p4_restore_through_the_cluster() {
    let embedded = EmbeddedCluster::start().unwrap();
    let cluster = embedded.cluster();
    embedded.create_topic("lines", 1).unwrap();
    embedded.create_topic("cl", 1).unwrap();
    let (lines, changelog) = (TopicPartition::new("lines", 0), TopicPartition::new("cl", 0));
    feed(&cluster, &lines, 5);

    let counts = store(&changelog);
    let task = Task::new(TaskId::new(0, 0), vec![lines.clone()], vec![logged(&counts, &changelog)]);
    let mut source = SourceConsumer::assign(&cluster, "group", slice::from_ref(&lines)).unwrap();
    assert!(source.committed().is_empty(), "nothing was ever committed");
    let mut producer = ChangelogProducer::new(&cluster, TIMEOUT).unwrap();
    for n in 0..3 {
        assert_eq!(poll_one(&source), n);
        counts.put(b"lines", n.to_string().as_bytes()).unwrap();
    }
    let position = source.position().unwrap();
    assert_eq!(position.next(&lines), Some(offset(3)));
    let committed = checkpoint(&[task], &position, &mut producer, &mut source).unwrap();
    assert_eq!(committed.changelog_records, 1);
    assert_eq!(counts.committed_offset(&changelog).unwrap(), Some(offset(0)));
    assert!(source.position().unwrap().is_empty(), "nothing has moved since");

    // A checkpoint that ended between changelog and source commit: its change is not applied.
    let header = encode_source_position(&[(lines.clone(), offset(4))].into_iter().collect()).unwrap();
    let change = ChangelogRecord { key: Some(b"lines"), value: Some(b"3"), source_position: Some(&header) };
    producer.append(&changelog, change).unwrap();
    producer.flush().unwrap();

    let again = SourceConsumer::assign(&cluster, "group", slice::from_ref(&lines)).unwrap();
    let rebuilt = store(&changelog);
    let mut reader = ChangelogConsumer::new(&cluster).unwrap();
    let options = RestoreOptions::new().retention(cluster.log_retention());
    let restored =
        restore(&logged(&rebuilt, &changelog), again.committed(), &mut reader, &options, &mut |_| {}).unwrap();
    assert_eq!((restored.applied, restored.uncommitted), (1, 1));
    assert_eq!(rebuilt.get(b"lines").unwrap().unwrap(), "2");
    assert_eq!(poll_one(&again), 3, "the source goes on where the group committed");
}

#[test]
fn ho_48_an_oversized_record_is_refused_when_it_is_appended() {
    let embedded = EmbeddedCluster::start().unwrap();
    embedded.create_topic("cl", 1).unwrap();
    let partition = TopicPartition::new("cl", 0);
    let mut producer = ChangelogProducer::new(&embedded.cluster(), TIMEOUT).unwrap();
    let large = vec![0; 2 << 20];
    for error in [
        producer.check(record(b"k", Some(&large))).unwrap_err(),
        producer.append(&partition, record(b"k", Some(&large))).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    assert!(producer.flush().unwrap().is_empty());
}

/// What the check lets through the client takes, up to the last byte.
#[test]
fn ho_48_the_check_agrees_with_the_client() {
    let embedded = EmbeddedCluster::start().unwrap();
    embedded.create_topic("cl", 1).unwrap();
    let partition = TopicPartition::new("cl", 0);
    let mut producer = ChangelogProducer::new(&embedded.cluster(), TIMEOUT).unwrap();
    let mut largest = 990_000;
    while producer.check(record(b"k", Some(&vec![0; largest + 1]))).is_ok() {
        largest += 1;
    }
    assert!(largest > 999_000, "{largest}");
    producer.append(&partition, record(b"k", Some(&vec![0; largest]))).unwrap();
    producer.flush().unwrap();
}

#[test]
fn a_delivery_that_fails_fails_the_flush_in_bounded_time() {
    let cluster = Cluster::new("127.0.0.1:1");
    let mut producer = ChangelogProducer::new(&cluster, Duration::from_millis(500)).unwrap();
    producer.append(&TopicPartition::new("cl", 0), record(b"k", Some(b"v"))).unwrap();
    let started = Instant::now();
    let error = producer.flush().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(started.elapsed() < Duration::from_secs(10));
}

/// The client rests for half a second if it has to ask where a log starts and does not know whom.
#[test]
fn a_new_group_reads_at_once() {
    let fastest = (0..5).map(|_| {
        let embedded = EmbeddedCluster::start().unwrap();
        embedded.create_topic("lines", 1).unwrap();
        let partition = TopicPartition::new("lines", 0);
        feed(&embedded.cluster(), &partition, 1);
        let started = Instant::now();
        let source = SourceConsumer::assign(&embedded.cluster(), "group", slice::from_ref(&partition)).unwrap();
        assert_eq!(poll_one(&source), 0);
        started.elapsed()
    });
    let fastest = fastest.min().unwrap();
    assert!(fastest < Duration::from_millis(400), "{fastest:?}");
}

/// The embedded cluster keeps a fetch for its longest wait, whatever comes meanwhile.
#[test]
fn what_comes_later_is_read_soon() {
    let embedded = EmbeddedCluster::start().unwrap();
    embedded.create_topic("lines", 1).unwrap();
    let cluster = embedded.cluster();
    let partition = TopicPartition::new("lines", 0);
    let source = SourceConsumer::assign(&cluster, "group", slice::from_ref(&partition)).unwrap();
    feed(&cluster, &partition, 1);
    assert_eq!(poll_one(&source), 0);
    let mut producer = ChangelogProducer::new(&cluster, TIMEOUT).unwrap();
    let mut waits: Vec<_> = (1..10)
        .map(|n| {
            producer.append(&partition, record(b"k", Some(b"line"))).unwrap();
            producer.flush().unwrap();
            let delivered = Instant::now();
            assert_eq!(poll_one(&source), n);
            delivered.elapsed()
        })
        .collect();
    waits.sort();
    assert!(waits[4] < Duration::from_millis(200), "{waits:?}");
}

#[test]
fn a_look_up_that_fails_is_an_error_and_not_nothing_committed() {
    let partitions = [TopicPartition::new("lines", 0)];
    assert!(SourceConsumer::assign(&Cluster::new("127.0.0.1:1"), "group", &partitions).is_err());
}

#[test]
fn a_commit_of_an_empty_position_does_nothing() {
    let embedded = EmbeddedCluster::start().unwrap();
    embedded.create_topic("lines", 1).unwrap();
    let partitions = [TopicPartition::new("lines", 0)];
    let mut source = SourceConsumer::assign(&embedded.cluster(), "group", &partitions).unwrap();
    source.commit(&Position::new()).unwrap();
    assert!(source.committed().is_empty());
}

/// A group without an offset is told where its source begins, and what it is told keeps a restore from passing all over.
#[test]
fn p3_a_group_without_an_offset_knows_where_its_source_begins() {
    let embedded = EmbeddedCluster::start().unwrap();
    embedded.create_topic("lines", 2).unwrap();
    embedded.create_topic("cl", 1).unwrap();
    let (cluster, changelog) = (embedded.cluster(), TopicPartition::new("cl", 0));
    let (whole, cut) = (TopicPartition::new("lines", 0), TopicPartition::new("lines", 1));
    feed(&cluster, &whole, 3);
    let mut producer = ChangelogProducer::new(&cluster, TIMEOUT).unwrap();
    // More than a partition keeps, of what does not become less by compression.
    let mut state = 1_u64;
    let noise: Vec<u8> = iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    })
    .take(60_000)
    .flatten()
    .collect();
    for _ in 0..40 {
        producer.append(&cut, record(b"line", Some(&noise))).unwrap();
        producer.flush().unwrap();
    }

    let sources = [whole.clone(), cut.clone()];
    let mut lines = SourceConsumer::assign(&cluster, "new", &sources).unwrap();
    let starts = lines.uncommitted_starts();
    assert_eq!(starts.next(&whole), Some(Offset::ZERO));
    let start = starts.next(&cut).unwrap();
    assert!(start > Offset::ZERO, "nothing was dropped");
    assert!(poll_one(&lines) >= 0);

    let header = encode_source_position(&[(cut.clone(), offset(40))].into_iter().collect()).unwrap();
    let change = ChangelogRecord { source_position: Some(&header), ..record(b"count", Some(b"40")) };
    producer.append(&changelog, change).unwrap();
    producer.flush().unwrap();
    let counts = store(&changelog);
    let restored = |lines: &SourceConsumer| {
        let options = RestoreOptions::new().source_starts(lines.uncommitted_starts().clone());
        let mut reader = ChangelogConsumer::new(&cluster).unwrap();
        restore(&logged(&counts, &changelog), lines.committed(), &mut reader, &options, &mut |_| {})
    };
    assert_eq!(restored(&lines).unwrap_err().kind(), ErrorKind::Unsupported);

    // The way out that the error names.
    lines.commit(&[(cut.clone(), offset(40))].into_iter().collect()).unwrap();
    let lines = SourceConsumer::assign(&cluster, "new", &sources).unwrap();
    assert_eq!(lines.uncommitted_starts().next(&cut), None);
    assert_eq!(restored(&lines).unwrap().applied, 1);
}
