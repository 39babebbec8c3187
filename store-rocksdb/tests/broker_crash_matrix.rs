//! The crash matrix: a process that is killed at each step of a checkpoint and of a restore, on a real broker, with each
//! guarantee and engine, and then started again with its local state or from nothing. The state is that of a process
//! that never died; under exactly once so is the output.
//!
//! The process is this program, told to run the test [`a_task_that_may_be_told_to_die`]. It dies in adapters around the
//! traits of the checkpoint, so nothing in the product knows of it.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../../kafka/tests/broker_support/mod.rs"]
mod broker_support;

use std::{
    cell::Cell,
    collections::BTreeMap,
    env, fs,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Command, ExitStatus, Stdio},
    slice,
    sync::Arc,
    time::Duration,
};

use broker_support::{cluster, read_all, unique};
use kstate_api::{
    ChangelogOffsets, CursorExt, Durability, KeyValueStore, KeyValueStoreSupplier, Offset, Position,
    ReadOnlyKeyValueStoreExt, Result, StagedStore, StagedSupplier, StateStore, TaskId, TopicPartition,
};
use kstate_checkpoint::{
    ChangelogReader, ChangelogRecord, ChangelogWriter, LogBounds, LoggedStore, RestoreOptions, SourceCommitter, Task,
    checkpoint, restore,
};
use kstate_kafka::{
    ChangelogConsumer, ChangelogProducer, SourceConsumer, TopicSpec, Topics, TransactionalProducer, rdkafka::Message,
};
use kstate_store_memory::MemoryBackend;
use kstate_store_redb::{RedbBackends, RedbOptions};
use kstate_store_rocksdb::{RocksDbBackends, RocksDbOptions};
use rustix::process::{Signal, getpid, kill_process};

const TIMEOUT: Duration = Duration::from_secs(60);
const EVENTS: i64 = 450;
const EVENTS_PER_CHECKPOINT: i64 = 100;
const KEYS: i64 = 37;
/// The variable that makes this program the process to be killed, and tells it what to do.
const JOB: &str = "KSTATE_CRASH_MATRIX";

/// Where a process dies: at the n-th time that it comes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Append,
    Flush,
    /// Every delivery was acknowledged; before the source commit or the transaction's.
    SourceCommit,
    /// The source commit has happened; before the commit of the stores.
    StoreCommit,
    CheckpointEnd,
    RestorePoll,
    RestoreApplied,
}

/// In the third checkpoint, for its first two are what a restart can build on. Each writes a record for each key and one
/// for the total.
const CHECKPOINT_STEPS: [(Step, u32); 7] = [
    (Step::Append, 77),
    (Step::Append, 90),
    (Step::Append, 114),
    (Step::Flush, 3),
    (Step::SourceCommit, 3),
    (Step::StoreCommit, 3),
    (Step::CheckpointEnd, 3),
];
const RESTORE_STEPS: [(Step, u32); 3] = [(Step::RestorePoll, 1), (Step::RestorePoll, 30), (Step::RestoreApplied, 2)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guarantee {
    AtLeastOnce,
    ExactlyOnce,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Engine {
    Redb,
    RocksDb,
}

/// The names of one run's topics and group; a word of the environment.
#[derive(Clone, Debug)]
struct Job {
    guarantee: Guarantee,
    engine: Engine,
    run: String,
    source: String,
    death: Option<(Step, u32)>,
}

impl Job {
    fn words(&self) -> String {
        let Self { guarantee, engine, run, source, death } = self;
        let death = death.map_or("None 0".into(), |(step, count)| format!("{step:?} {count}"));
        format!("{guarantee:?} {engine:?} {run} {source} {death}")
    }

    fn read(words: &str) -> Self {
        let [guarantee, engine, run, source, step, count] = words.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let steps = CHECKPOINT_STEPS.iter().chain(&RESTORE_STEPS);
        let step = steps.map(|(step, _)| *step).find(|known| format!("{known:?}") == step);
        Self {
            guarantee: if guarantee == "ExactlyOnce" { Guarantee::ExactlyOnce } else { Guarantee::AtLeastOnce },
            engine: if engine == "Redb" { Engine::Redb } else { Engine::RocksDb },
            run: run.into(),
            source: source.into(),
            death: step.map(|step| (step, count.parse().unwrap())),
        }
    }

    fn source(&self) -> TopicPartition {
        TopicPartition::new(self.source.as_str(), 0)
    }

    fn changelog(&self, store: &str) -> TopicPartition {
        TopicPartition::new(format!("{}-{store}-changelog", self.run), 0)
    }

    fn output(&self) -> TopicPartition {
        TopicPartition::new(format!("{}-output", self.run), 0)
    }

    fn reader(&self) -> Result<ChangelogConsumer> {
        match self.guarantee {
            Guarantee::AtLeastOnce => ChangelogConsumer::new(&cluster()),
            Guarantee::ExactlyOnce => ChangelogConsumer::read_committed(&cluster()),
        }
    }

    /// The stores forget the most that they may when they are killed: the log has to have the rest.
    fn open(&self, directory: &Path, name: &str) -> Result<Arc<dyn KeyValueStore>> {
        let changelog = self.changelog(name);
        let (directory, partitions) = (directory.join(name), slice::from_ref(&changelog));
        match self.engine {
            Engine::Redb => {
                let options = RedbOptions::new().durability(Durability::Eventual).flush_every(2, u64::MAX);
                StagedSupplier::new(name, RedbBackends::new(options))?.open(&directory, partitions)
            }
            Engine::RocksDb => {
                let options = RocksDbOptions::new().durability(Durability::Eventual);
                StagedSupplier::new(name, RocksDbBackends::new(options))?.open(&directory, partitions)
            }
        }
    }
}

fn key(event: i64) -> Vec<u8> {
    format!("key-{:02}", event % KEYS).into_bytes()
}

/// What a process that never dies ends with.
fn reference() -> BTreeMap<Vec<u8>, i64> {
    let mut counts = BTreeMap::new();
    (0..EVENTS).for_each(|event| *counts.entry(key(event)).or_default() += 1);
    counts
}

fn numbers(store: &dyn KeyValueStore) -> BTreeMap<Vec<u8>, i64> {
    let number = |value: &[u8]| i64::from_be_bytes(value.try_into().unwrap());
    store.all().unwrap().entries().map(|row| row.unwrap()).map(|(key, value)| (key.to_vec(), number(&value))).collect()
}

fn add_one(store: &dyn KeyValueStore, key: &[u8]) -> Result<()> {
    let count = store.get(key)?.map_or(0, |value| i64::from_be_bytes(value.as_ref().try_into().unwrap()));
    store.put(key, &(count + 1).to_be_bytes())
}

/// Kills its process when it is told the step for the n-th time.
struct Death {
    step: Option<Step>,
    left: Cell<u32>,
}

impl Death {
    fn of(job: &Job) -> Self {
        Self { step: job.death.map(|(step, _)| step), left: Cell::new(job.death.map_or(0, |(_, count)| count)) }
    }

    fn comes_at(&self, step: Step) {
        if self.step == Some(step) {
            self.left.set(self.left.get() - 1);
            if self.left.get() == 0 {
                kill_process(getpid(), Signal::KILL).unwrap();
            }
        }
    }
}

/// A changelog whose writer may die.
struct Writer<'w> {
    below: &'w mut dyn ChangelogWriter,
    death: &'w Death,
}

impl ChangelogWriter for Writer<'_> {
    fn check(&self, record: ChangelogRecord<'_>) -> Result<()> {
        self.below.check(record)
    }

    fn append(&mut self, partition: &TopicPartition, record: ChangelogRecord<'_>) -> Result<()> {
        self.below.append(partition, record)?;
        self.death.comes_at(Step::Append);
        Ok(())
    }

    fn flush(&mut self) -> Result<ChangelogOffsets> {
        self.death.comes_at(Step::Flush);
        let acknowledged = self.below.flush()?;
        self.death.comes_at(Step::SourceCommit);
        Ok(acknowledged)
    }
}

/// A source commit after which its process may die.
struct Committer<'c> {
    below: &'c mut dyn SourceCommitter,
    death: &'c Death,
}

impl SourceCommitter for Committer<'_> {
    fn commit(&mut self, position: &Position) -> Result<()> {
        self.below.commit(position)?;
        self.death.comes_at(Step::StoreCommit);
        Ok(())
    }
}

/// A changelog whose reader may die.
struct Reader<'r> {
    below: ChangelogConsumer,
    death: &'r Death,
}

impl ChangelogReader for Reader<'_> {
    fn bounds(&mut self, partition: &TopicPartition) -> Result<LogBounds> {
        self.below.bounds(partition)
    }

    fn seek(&mut self, partition: &TopicPartition, next: Offset) -> Result<()> {
        self.below.seek(partition, next)
    }

    fn poll(&mut self, timeout: Duration, read: &mut dyn FnMut(Offset, ChangelogRecord<'_>)) -> Result<bool> {
        let came = self.below.poll(timeout, read)?;
        if came {
            self.death.comes_at(Step::RestorePoll);
        }
        Ok(came)
    }

    fn position(&mut self) -> Result<Offset> {
        self.below.position()
    }
}

enum Producer {
    Plain(ChangelogProducer),
    Transactional(TransactionalProducer),
}

/// The process that is killed: it counts events by key and in all, and copies them to the output.
#[test]
#[ignore = "the child of the crash matrix"]
fn a_task_that_may_be_told_to_die() {
    let Ok(words) = env::var(JOB) else { return };
    let (words, directory) = words.split_once('|').unwrap();
    let job = Job::read(words);
    run(&job, Path::new(directory)).unwrap();
}

fn run(job: &Job, directory: &Path) -> Result<()> {
    let (cluster, death) = (cluster(), Death::of(job));
    // First: it ends the transaction that a dead process may have left, which offsets and logs wait for.
    let mut producer = match job.guarantee {
        Guarantee::AtLeastOnce => Producer::Plain(ChangelogProducer::new(&cluster, TIMEOUT)?),
        Guarantee::ExactlyOnce => Producer::Transactional(TransactionalProducer::new(&cluster, &job.run, TIMEOUT)?),
    };
    let (counts, total) = (job.open(directory, "counts")?, job.open(directory, "total")?);
    let logged = |store: &Arc<dyn KeyValueStore>| LoggedStore::new(Arc::clone(store) as _, job.changelog(store.name()));
    let source = job.source();
    let task = Task::new(TaskId::new(0, 0), vec![source.clone()], vec![logged(&counts)?, logged(&total)?]);
    let mut consumer = SourceConsumer::assign(&cluster, &job.run, slice::from_ref(&source))?;
    let mut reader = Reader { below: job.reader()?, death: &death };
    let options = RestoreOptions::new().max_batch_bytes(1000);
    for logged in task.stores() {
        restore(logged, consumer.committed(), &mut reader, &options, &mut |_| death.comes_at(Step::RestoreApplied))?;
    }
    let mut next = consumer.committed().next(&source).map_or(0, Offset::get);
    while next < EVENTS {
        let Some(event) = consumer.poll(Duration::from_millis(100))? else { continue };
        let key = event.key().unwrap().to_vec();
        next = event.offset() + 1;
        drop(event);
        add_one(&*counts, &key)?;
        add_one(&*total, b"total")?;
        if let Producer::Transactional(producer) = &producer {
            producer.send(&job.output(), Some(&key), Some(&(next - 1).to_be_bytes()))?;
        }
        if next % EVENTS_PER_CHECKPOINT == 0 || next == EVENTS {
            let position = consumer.position()?;
            let tasks = slice::from_ref(&task);
            match &mut producer {
                Producer::Plain(producer) => {
                    let mut writer = Writer { below: producer, death: &death };
                    let mut committer = Committer { below: &mut consumer, death: &death };
                    checkpoint(tasks, &position, &mut writer, &mut committer)?;
                }
                Producer::Transactional(producer) => {
                    let mut writer = Writer { below: &mut &*producer, death: &death };
                    let mut committer = Committer { below: &mut producer.committer(&mut consumer), death: &death };
                    checkpoint(tasks, &position, &mut writer, &mut committer)?;
                }
            }
            death.comes_at(Step::CheckpointEnd);
        }
    }
    assert_eq!(numbers(&*counts), reference(), "the counts in the local store");
    assert_eq!(numbers(&*total), BTreeMap::from([(b"total".to_vec(), EVENTS)]), "the total in the local store");
    counts.close()?;
    total.close()
}

fn start(job: &Job, death: Option<(Step, u32)>, directory: &Path) -> (ExitStatus, String) {
    let job = Job { death, ..job.clone() };
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", "a_task_that_may_be_told_to_die", "--include-ignored", "--nocapture"])
        .env(JOB, format!("{}|{}", job.words(), directory.display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (output.status, String::from_utf8_lossy(&output.stderr).into_owned())
}

fn die(job: &Job, death: (Step, u32), directory: &Path) {
    let (status, errors) = start(job, Some(death), directory);
    assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "{job:?} did not come to {death:?}: {status} {errors}");
}

/// What a store holds that is built from its changelog alone.
fn rebuilt(job: &Job, committed: &Position, name: &str) -> BTreeMap<Vec<u8>, i64> {
    let changelog = job.changelog(name);
    let store = Arc::new(StagedStore::open(name, MemoryBackend::new(), slice::from_ref(&changelog)).unwrap());
    let logged = LoggedStore::new(store.clone(), changelog).unwrap();
    restore(&logged, committed, &mut job.reader().unwrap(), &RestoreOptions::new(), &mut |_| {}).unwrap();
    numbers(&*store)
}

/// The events in the output that a reader of committed records sees, in order.
fn output(job: &Job) -> Vec<i64> {
    let mut reader = ChangelogConsumer::read_committed(&cluster()).unwrap();
    let mut events = Vec::new();
    read_all(&mut reader, &job.output(), &mut |_, record| {
        events.push(i64::from_be_bytes(record.value.unwrap().try_into().unwrap()));
    });
    events
}

/// Everything in one column of the matrix.
fn column(guarantee: Guarantee, engine: Engine) {
    let topics = Topics::new(&cluster()).unwrap();
    let column = unique(&format!("crash-{guarantee:?}-{engine:?}"));
    let source = format!("{column}-events");
    topics.ensure(&TopicSpec::new(&source, 1)).unwrap();
    let mut events = ChangelogProducer::new(&cluster(), TIMEOUT).unwrap();
    for event in 0..EVENTS {
        let key = key(event);
        let record = ChangelogRecord { key: Some(&key), value: Some(b"event"), source_position: None };
        events.append(&TopicPartition::new(source.as_str(), 0), record).unwrap();
    }
    events.flush().unwrap();

    for (run, death) in CHECKPOINT_STEPS.into_iter().chain(RESTORE_STEPS).enumerate() {
        for from_nothing in [false, true] {
            let run = format!("{column}-{run}-{from_nothing}");
            let job = Job { guarantee, engine, run, source: source.clone(), death: None };
            let (counts, total, out) = (job.changelog("counts"), job.changelog("total"), job.output());
            topics.ensure(&TopicSpec::changelog(counts.topic(), 1)).unwrap();
            topics.ensure(&TopicSpec::changelog(total.topic(), 1)).unwrap();
            topics.ensure(&TopicSpec::new(out.topic(), 1)).unwrap();
            let temporary = tempfile::tempdir().unwrap();
            let directory = temporary.path().join("state");
            let forget = || {
                if from_nothing {
                    fs::remove_dir_all(&directory).unwrap();
                }
            };
            if RESTORE_STEPS.contains(&death) {
                // Something to restore, whatever the engine kept.
                die(&job, (Step::StoreCommit, 3), &directory);
                fs::remove_dir_all(&directory).unwrap();
            }
            die(&job, death, &directory);
            forget();
            let (status, errors) = start(&job, None, &directory);
            assert!(status.success(), "{job:?} after {death:?}, from nothing: {from_nothing}: {status} {errors}");

            let committed = SourceConsumer::assign(&cluster(), &job.run, slice::from_ref(&job.source())).unwrap();
            let committed = committed.committed();
            assert_eq!(committed.next(&job.source()), Offset::new(EVENTS), "{job:?} after {death:?}");
            assert_eq!(rebuilt(&job, committed, "counts"), reference(), "{job:?} after {death:?}");
            assert_eq!(rebuilt(&job, committed, "total").into_values().sum::<i64>(), EVENTS, "{job:?} after {death:?}");
            if guarantee == Guarantee::ExactlyOnce {
                assert_eq!(output(&job), (0..EVENTS).collect::<Vec<_>>(), "{job:?} after {death:?}");
            }
            topics.delete(&[counts.topic(), total.topic(), out.topic()]).unwrap();
        }
    }
    topics.delete(&[&source]).unwrap();
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn at_least_once_on_redb() {
    column(Guarantee::AtLeastOnce, Engine::Redb);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn at_least_once_on_rocksdb() {
    column(Guarantee::AtLeastOnce, Engine::RocksDb);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn exactly_once_on_redb() {
    column(Guarantee::ExactlyOnce, Engine::Redb);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn exactly_once_on_rocksdb() {
    column(Guarantee::ExactlyOnce, Engine::RocksDb);
}
