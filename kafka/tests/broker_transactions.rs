//! Exactly once on a real broker: the embedded cluster neither hides aborted records nor keeps transactional offsets.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod broker_support;

use std::{
    slice,
    sync::Arc,
    time::{Duration, Instant},
};

use broker_support::{TIMEOUT, cluster, read_all, unique};
use kstate_api::{
    CommitOutcome, ErrorKind, KeyValueStore, Offset, Position, ReadOnlyKeyValueStoreExt, StagedStore, StateStore,
    TaskId, TopicPartition,
};
use kstate_checkpoint::{
    ChangelogRecord, ChangelogWriter, LoggedStore, RestoreOptions, Restored, SourceCommitter as _, Task, checkpoint,
    restore,
};
use kstate_kafka::{
    ChangelogConsumer, ChangelogProducer, Cluster, SourceConsumer, TopicSpec, Topics, TransactionalProducer,
    rdkafka::Message as _,
};
use kstate_store_memory::MemoryBackend;

/// One task on topics of its own: it copies each line to the output, and counts lines in its store.
struct Fixture {
    cluster: Cluster,
    topics: Topics,
    group: String,
    source: TopicPartition,
    changelog: TopicPartition,
    output: TopicPartition,
}

impl Fixture {
    fn new(name: &str, lines: usize) -> Self {
        let (cluster, run) = (cluster(), unique(name));
        let topic = |kind: &str| TopicPartition::new(format!("{run}-{kind}"), 0);
        let fixture = Self {
            topics: Topics::new(&cluster).unwrap(),
            cluster,
            source: topic("lines"),
            changelog: topic("changelog"),
            output: topic("output"),
            group: run,
        };
        for plain in [&fixture.source, &fixture.output] {
            fixture.topics.ensure(&TopicSpec::new(plain.topic(), 1)).unwrap();
        }
        fixture.topics.ensure(&TopicSpec::changelog(fixture.changelog.topic(), 1)).unwrap();
        let mut producer = ChangelogProducer::new(&fixture.cluster, TIMEOUT).unwrap();
        for _ in 0..lines {
            let line = ChangelogRecord { key: None, value: Some(b"line"), source_position: None };
            producer.append(&fixture.source, line).unwrap();
        }
        producer.flush().unwrap();
        fixture
    }

    fn producer(&self) -> TransactionalProducer {
        TransactionalProducer::new(&self.cluster, &self.group, TIMEOUT).unwrap()
    }

    fn consumer(&self) -> SourceConsumer {
        SourceConsumer::assign(&self.cluster, &self.group, slice::from_ref(&self.source)).unwrap()
    }

    fn store(&self) -> (Arc<dyn KeyValueStore>, Task) {
        let backend = MemoryBackend::new();
        let store: Arc<dyn KeyValueStore> =
            Arc::new(StagedStore::open("counts", backend, slice::from_ref(&self.changelog)).unwrap());
        let logged = LoggedStore::new(Arc::clone(&store) as _, self.changelog.clone()).unwrap();
        (store, Task::new(TaskId::new(0, 0), vec![self.source.clone()], vec![logged]))
    }

    fn restore(&self, task: &Task) -> Restored {
        let mut reader = ChangelogConsumer::read_committed(&self.cluster).unwrap();
        let logged = task.stores().first().unwrap();
        restore(logged, self.consumer().committed(), &mut reader, &RestoreOptions::new(), &mut |_| {}).unwrap()
    }

    /// Processes `lines` lines.
    fn process(&self, lines: usize, consumer: &SourceConsumer, store: &dyn KeyValueStore, out: &TransactionalProducer) {
        let deadline = Instant::now() + TIMEOUT;
        let mut seen = 0;
        while seen < lines {
            assert!(Instant::now() < deadline, "only {seen} lines came");
            let Some(line) = consumer.poll(Duration::from_millis(100)).unwrap() else { continue };
            let offset = line.offset();
            seen += 1;
            store.put(b"lines", &(offset + 1).to_be_bytes()).unwrap();
            out.send(&self.output, Some(b"line"), Some(&offset.to_be_bytes())).unwrap();
        }
    }

    /// The numbers in the output that a reader of committed records sees.
    fn output(&self) -> Vec<i64> {
        let mut reader = ChangelogConsumer::read_committed(&self.cluster).unwrap();
        let mut seen = Vec::new();
        read_all(&mut reader, &self.output, &mut |_, record| {
            seen.push(i64::from_be_bytes(record.value.unwrap().try_into().unwrap()));
        });
        seen
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let names = [self.source.topic(), self.changelog.topic(), self.output.topic()];
        // Only tidiness: the names are unique, and the broker is thrown away.
        drop(self.topics.delete(&names));
    }
}

fn lines(store: &Arc<dyn KeyValueStore>) -> Option<i64> {
    store.get(b"lines").unwrap().map(|count| i64::from_be_bytes(count.as_ref().try_into().unwrap()))
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p1_outputs_changelog_and_position_are_committed_together() {
    let fixture = Fixture::new("eos", 10);
    let (producer, mut consumer, (store, task)) = (fixture.producer(), fixture.consumer(), fixture.store());
    fixture.process(10, &consumer, &*store, &producer);
    let position = consumer.position().unwrap();
    let tasks = slice::from_ref(&task);
    let committed = checkpoint(tasks, &position, &mut &producer, &mut producer.committer(&mut consumer)).unwrap();
    assert_eq!(committed.changelog_offsets.get(&fixture.changelog), Some(Offset::ZERO));
    assert_eq!(store.committed_offset(&fixture.changelog).unwrap(), Some(Offset::ZERO));
    assert_eq!(consumer.committed().next(&fixture.source), Offset::new(10));

    assert_eq!(fixture.consumer().committed().next(&fixture.source), Offset::new(10));
    assert_eq!(fixture.output(), (0..10).collect::<Vec<_>>());
    let (rebuilt, task) = fixture.store();
    assert_eq!(fixture.restore(&task).applied, 1);
    assert_eq!(lines(&rebuilt), Some(10));
    // The end is past the transaction's marker.
    assert_eq!(rebuilt.committed_offset(&fixture.changelog).unwrap(), Offset::new(1));
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p1_nothing_of_an_aborted_transaction_is_seen_and_its_work_can_be_done_again() {
    let fixture = Fixture::new("abort", 10);
    let (producer, consumer, (store, task)) = (fixture.producer(), fixture.consumer(), fixture.store());
    fixture.process(7, &consumer, &*store, &producer);
    let mut changelog = &producer;
    let change = ChangelogRecord { key: Some(b"lines"), value: Some(b"lost"), source_position: None };
    changelog.append(&fixture.changelog, change).unwrap();
    changelog.flush().unwrap();
    producer.abort().unwrap();
    producer.abort().unwrap();
    store.rollback().unwrap();
    assert_eq!(fixture.output(), [0; 0]);
    assert_eq!(fixture.restore(&task).applied, 0);

    let mut consumer = fixture.consumer();
    fixture.process(10, &consumer, &*store, &producer);
    let position = consumer.position().unwrap();
    checkpoint(&[task], &position, &mut &producer, &mut producer.committer(&mut consumer)).unwrap();
    assert_eq!(fixture.output(), (0..10).collect::<Vec<_>>());
    let (rebuilt, task) = fixture.store();
    fixture.restore(&task);
    assert_eq!(lines(&rebuilt), Some(10));
}

/// A second producer of the same id takes over: what the first has not committed is gone, and it is told so.
#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p5_a_fenced_producer_commits_nothing() {
    let fixture = Fixture::new("fence", 10);
    let (zombie, mut consumer, (store, task)) = (fixture.producer(), fixture.consumer(), fixture.store());
    fixture.process(10, &consumer, &*store, &zombie);
    let heir = fixture.producer();

    let position = consumer.position().unwrap();
    let tasks = slice::from_ref(&task);
    let error = checkpoint(tasks, &position, &mut &zombie, &mut zombie.committer(&mut consumer)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
    assert_ne!(error.commit_outcome(), Some(CommitOutcome::Unknown), "{error}");
    assert_eq!(store.committed_offset(&fixture.changelog).unwrap(), None);
    assert_eq!(fixture.consumer().committed().next(&fixture.source), None);
    assert_eq!(zombie.send(&fixture.output, None, Some(b"zombie")).unwrap_err().kind(), ErrorKind::Fenced);
    assert_eq!(fixture.output(), [0; 0]);

    let mut consumer = fixture.consumer();
    store.rollback().unwrap();
    fixture.process(10, &consumer, &*store, &heir);
    let position = consumer.position().unwrap();
    checkpoint(&[task], &position, &mut &heir, &mut heir.committer(&mut consumer)).unwrap();
    assert_eq!(fixture.output(), (0..10).collect::<Vec<_>>());
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p1_outputs_without_a_record_are_committed_and_move_nothing() {
    let fixture = Fixture::new("outputs", 10);
    let (producer, mut consumer, (store, task)) = (fixture.producer(), fixture.consumer(), fixture.store());
    let send = |number: i64| producer.send(&fixture.output, None, Some(&number.to_be_bytes())).unwrap();
    send(-1);
    producer.committer(&mut consumer).commit(&Position::new()).unwrap();
    fixture.process(10, &consumer, &*store, &producer);
    let position = consumer.position().unwrap();
    checkpoint(&[task], &position, &mut &producer, &mut producer.committer(&mut consumer)).unwrap();
    send(10);
    producer.committer(&mut consumer).commit(&Position::new()).unwrap();
    assert_eq!(fixture.output(), (-1..11).collect::<Vec<_>>());
    assert_eq!(fixture.consumer().committed().next(&fixture.source), Offset::new(10));
}

/// A producer that was killed leaves its transaction open; its heir ends it before anything is restored.
#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn p4_a_restore_does_not_wait_for_the_transaction_of_a_dead_producer() {
    let fixture = Fixture::new("dead", 10);
    let (dead, consumer, (store, _)) = (fixture.producer(), fixture.consumer(), fixture.store());
    fixture.process(10, &consumer, &*store, &dead);
    let change = ChangelogRecord { key: Some(b"lines"), value: Some(b"lost"), source_position: None };
    (&dead).append(&fixture.changelog, change).unwrap();
    (&dead).flush().unwrap();
    // As if its process had ended: no abort.
    std::mem::forget(dead);

    let started = Instant::now();
    let _heir = fixture.producer();
    let (rebuilt, task) = fixture.store();
    let restored = fixture.restore(&task);
    assert_eq!(restored.applied, 0);
    assert_eq!(restored.end, Offset::new(2).unwrap(), "the record and the marker of its abort");
    assert_eq!(lines(&rebuilt), None);
    assert!(started.elapsed() < Duration::from_secs(8), "it took {:?}", started.elapsed());
}
