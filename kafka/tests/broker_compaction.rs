//! Healing on a topic that is really compacted (clause P3): compaction keeps the last record of a key, whoever wrote it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod broker_support;

use std::{
    slice,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use broker_support::{TIMEOUT, cluster, read_all, unique};
use kstate_api::{
    CommitOutcome, CursorExt, Error, ErrorKind, KeyValueStore, Offset, Position, ReadOnlyKeyValueStoreExt, Result,
    StagedStore, TaskId, TopicPartition,
};
use kstate_checkpoint::{
    ChangelogRecord, ChangelogWriter, LoggedStore, RestoreOptions, SourceCommitter, Task, checkpoint, restore,
};
use kstate_kafka::{ChangelogConsumer, ChangelogProducer, Cluster, TopicSpec, Topics};
use kstate_store_memory::MemoryBackend;

/// The group's commits, which can be made to fail.
struct Group {
    committed: Position,
    fails: bool,
}

impl SourceCommitter for Group {
    fn commit(&mut self, position: &Position) -> Result<()> {
        if self.fails {
            let refused = Error::new(ErrorKind::Unavailable, "refused");
            return Err(refused.with_commit_outcome(CommitOutcome::NotApplied));
        }
        self.committed.merge(position);
        Ok(())
    }
}

struct Fixture {
    cluster: Cluster,
    topics: Topics,
    source: TopicPartition,
    changelog: TopicPartition,
}

impl Fixture {
    fn new() -> Self {
        let cluster = cluster();
        let topics = Topics::new(&cluster).unwrap();
        let changelog = TopicPartition::new(unique("compacted"), 0);
        // Everything before the segment that is written to is compacted at once.
        let spec = TopicSpec::changelog(changelog.topic(), 1)
            .with("min.compaction.lag.ms", "0")
            .with("max.compaction.lag.ms", "100")
            .with("min.cleanable.dirty.ratio", "0.001")
            .with("delete.retention.ms", "0")
            .with("segment.bytes", "1048576")
            .with("segment.ms", "100");
        topics.ensure(&spec).unwrap();
        Self { cluster, topics, source: TopicPartition::new("lines", 0), changelog }
    }

    fn position(&self, next: i64) -> Position {
        [(self.source.clone(), Offset::new(next).unwrap())].into_iter().collect()
    }

    fn store(&self) -> (Arc<dyn KeyValueStore>, Task) {
        let backend = MemoryBackend::new();
        let store: Arc<dyn KeyValueStore> =
            Arc::new(StagedStore::open("counts", backend, slice::from_ref(&self.changelog)).unwrap());
        let logged = LoggedStore::new(Arc::clone(&store) as _, self.changelog.clone()).unwrap();
        (store, Task::new(TaskId::new(0, 0), vec![self.source.clone()], vec![logged]))
    }

    /// The records that are in the log still, by offset and key.
    fn log(&self) -> Vec<(Offset, Vec<u8>)> {
        let mut reader = ChangelogConsumer::new(&self.cluster).unwrap();
        let mut log = Vec::new();
        read_all(&mut reader, &self.changelog, &mut |offset, record| log.push((offset, record.key.unwrap().to_vec())));
        log
    }

    /// Writes until the cleaner has removed every record of `key` before `offset`. It leaves the last segment alone, so
    /// something has to follow.
    fn compact(&self, producer: &mut ChangelogProducer, key: &[u8], offset: Offset) {
        let deadline = Instant::now() + TIMEOUT;
        while self.log().iter().any(|(found, other)| other == key && *found < offset) {
            assert!(Instant::now() < deadline, "the broker does not compact: {:?}", self.log());
            let filler = ChangelogRecord { key: Some(b"filler"), value: Some(b""), source_position: None };
            producer.append(&self.changelog, filler).unwrap();
            producer.flush().unwrap();
            thread::sleep(Duration::from_millis(200));
        }
    }

    fn rebuilt(&self, committed: &Position) -> Vec<(String, String)> {
        let (store, task) = self.store();
        let mut reader = ChangelogConsumer::new(&self.cluster).unwrap();
        let logged = task.stores().first().unwrap();
        restore(logged, committed, &mut reader, &RestoreOptions::new(), &mut |_| {}).unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let rows = store.all().unwrap().entries().map(|row| row.unwrap());
        rows.map(|(key, value)| (text(&key), text(&value))).filter(|(key, _)| key != "filler").collect()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // Only tidiness: the name is unique, and the broker is thrown away.
        drop(self.topics.delete(&[self.changelog.topic()]));
    }
}

fn row(key: &str, value: &str) -> (String, String) {
    (key.into(), value.into())
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn ho_30_a_healed_key_survives_compaction_with_its_committed_value() {
    let fixture = Fixture::new();
    let mut producer = ChangelogProducer::new(&fixture.cluster, TIMEOUT).unwrap();
    let mut group = Group { committed: Position::new(), fails: false };
    let (store, task) = fixture.store();
    let tasks = slice::from_ref(&task);

    store.put(b"a", b"committed").unwrap();
    store.put(b"b", b"committed").unwrap();
    checkpoint(tasks, &fixture.position(10), &mut producer, &mut group).unwrap();
    // Offsets 2 to 4: never committed.
    store.put(b"a", b"lost").unwrap();
    store.delete(b"b").unwrap();
    store.put(b"c", b"lost").unwrap();
    group.fails = true;
    checkpoint(tasks, &fixture.position(20), &mut producer, &mut group).unwrap_err();
    store.rollback().unwrap();
    group.fails = false;
    // Offsets 5 to 8: d, and what heals a, b and c.
    store.put(b"d", b"committed").unwrap();
    let healed = checkpoint(tasks, &fixture.position(30), &mut producer, &mut group).unwrap();
    assert_eq!(healed.changelog_records, 4);

    let expected = [row("a", "committed"), row("b", "committed"), row("d", "committed")];
    assert_eq!(fixture.rebuilt(&group.committed), expected, "before compaction");
    for key in [b"a", b"b", b"c"] {
        fixture.compact(&mut producer, key, Offset::new(5).unwrap());
    }
    assert_eq!(fixture.rebuilt(&group.committed), expected, "after compaction");
}
