//! The process that is killed: it counts events by key and in all, and copies them to the output.

use std::{
    collections::BTreeMap,
    path::Path,
    slice,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use kstate_api::{
    CursorExt, KeyValueStore, Offset, PartitionPosition, Position, ReadOnlyKeyValueStore, ReadOnlyKeyValueStoreExt,
    Result, StateStore, TaskId,
};
use kstate_checkpoint::{LoggedStore, RestoreOptions, Task, checkpoint, restore};
use kstate_kafka::{ChangelogProducer, SourceConsumer, TransactionalProducer, rdkafka::Message};
use kstate_processing::{
    CheckpointMode, Effect, Executor, ExecutorSettings, ProcessorFn, RecordFailure, RecordOrder, Sink, Source,
    Submission, Submitted, Work,
};

use crate::{
    EVENTS, EVENTS_PER_CHECKPOINT, KEYS, TIMEOUT,
    broker_support::cluster,
    death::{Committer, Death, Reader, Writer},
    dying_store::DyingStore,
    job::{Guarantee, Job, Mode, Step},
};

/// The key whose events workers do not come to an end with before all others were processed.
const SLOW: i64 = 10;

pub(crate) fn key(event: i64) -> Vec<u8> {
    format!("key-{:02}", event % KEYS).into_bytes()
}

/// What a process that never dies ends with.
pub(crate) fn reference() -> BTreeMap<Vec<u8>, i64> {
    let mut counts = BTreeMap::new();
    (0..EVENTS).for_each(|event| *counts.entry(key(event)).or_default() += 1);
    counts
}

pub(crate) fn numbers(store: &dyn KeyValueStore) -> BTreeMap<Vec<u8>, i64> {
    store.all().unwrap().entries().map(|row| row.unwrap()).map(|(key, value)| (key.to_vec(), number(&value))).collect()
}

fn number(value: &[u8]) -> i64 {
    i64::from_be_bytes(value.try_into().unwrap())
}

fn add_one(store: &dyn KeyValueStore, key: &[u8]) -> Result<()> {
    let count = store.get(key)?.map_or(0, |value| number(&value));
    store.put(key, &(count + 1).to_be_bytes())
}

enum Producer {
    Plain(ChangelogProducer),
    Transactional(TransactionalProducer),
}

impl Producer {
    fn send(&self, job: &Job, key: &[u8], event: i64) -> Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Transactional(producer) => producer.send(&job.output(), Some(key), Some(&event.to_be_bytes())),
        }
    }
}

/// A task at work.
struct Life<'l> {
    job: &'l Job,
    death: &'l Death,
    task: Task,
    counts: Arc<dyn KeyValueStore>,
    total: Arc<dyn KeyValueStore>,
    consumer: SourceConsumer,
    producer: Producer,
}

pub(crate) fn run(job: &Job, directory: &Path) -> Result<()> {
    let death = Arc::new(Death::of(job));
    let mut life = Life::begin(job, &death, directory)?;
    match job.mode {
        Mode::InOrder => life.process_in_order()?,
        Mode::Workers => life.process_with_workers()?,
    }
    assert_eq!(numbers(&*life.counts), reference(), "the counts in the local store");
    assert_eq!(numbers(&*life.total), BTreeMap::from([(b"total".to_vec(), EVENTS)]), "the total in the local store");
    life.counts.close()?;
    life.total.close()
}

impl<'l> Life<'l> {
    fn begin(job: &'l Job, death: &'l Arc<Death>, directory: &Path) -> Result<Self> {
        let cluster = cluster();
        // First: it ends the transaction that a dead process may have left, which offsets and logs wait for.
        let producer = match job.guarantee {
            Guarantee::AtLeastOnce => Producer::Plain(ChangelogProducer::new(&cluster, TIMEOUT)?),
            Guarantee::ExactlyOnce => Producer::Transactional(TransactionalProducer::new(&cluster, &job.run, TIMEOUT)?),
        };
        let (counts, total) = (job.open(directory, "counts")?, job.open(directory, "total")?);
        let first = LoggedStore::new(Arc::clone(&counts) as _, job.changelog("counts"))?;
        let second = DyingStore { below: Arc::clone(&total), death: Arc::clone(death) };
        let second = LoggedStore::new(Arc::new(second), job.changelog("total"))?;
        let source = job.source();
        let task = Task::new(TaskId::new(0, 0), vec![source.clone()], vec![first, second]);
        let mut consumer = SourceConsumer::assign(&cluster, &job.run, slice::from_ref(&source))?;
        if job.mode == Mode::Workers {
            consumer = consumer.with_ranges();
        }
        let mut reader = Reader { below: job.reader()?, death };
        let options = RestoreOptions::new().max_batch_bytes(1000).bare_offsets(consumer.bare_offsets().clone());
        for logged in task.stores() {
            restore(logged, consumer.committed(), &mut reader, &options, &mut |_| {
                death.comes_at(Step::RestoreApplied);
            })?;
        }
        Ok(Self { job, death, task, counts, total, consumer, producer })
    }

    /// Where it goes on.
    fn position(&self) -> PartitionPosition {
        self.consumer.committed().get(&self.job.source()).cloned().unwrap_or(PartitionPosition::at(Offset::ZERO))
    }

    /// The key and the offset of the next event, if one comes soon.
    fn next_event(&self) -> Result<Option<(Vec<u8>, Offset)>> {
        let event = self.consumer.poll(Duration::from_millis(100))?;
        Ok(event.map(|event| (event.key().unwrap().to_vec(), Offset::new(event.offset()).unwrap())))
    }

    fn process_in_order(&mut self) -> Result<()> {
        let mut next = self.position().next().get();
        while next < EVENTS {
            let Some((key, offset)) = self.next_event()? else { continue };
            next = offset.get() + 1;
            add_one(&*self.counts, &key)?;
            add_one(&*self.total, b"total")?;
            self.producer.send(self.job, &key, next - 1)?;
            if next % EVENTS_PER_CHECKPOINT == 0 || next == EVENTS {
                let position = self.consumer.position()?;
                self.checkpoint(&position)?;
            }
        }
        Ok(())
    }

    fn process_with_workers(&mut self) -> Result<()> {
        let is_released = Arc::new(AtomicBool::new(false));
        let waits_for = Arc::clone(&is_released);
        let processor = ProcessorFn::new(move |event: &i64, work: &mut Work<'_, i64>| {
            while event % KEYS == SLOW && !waits_for.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
            let count = work.get(0, &key(*event))?.map_or(0, |value| number(&value));
            work.put(0, key(*event), (count + 1).to_be_bytes().to_vec())?;
            work.output(*event);
            Ok(())
        });
        let settings = ExecutorSettings {
            workers: 4,
            order: RecordOrder::Key,
            checkpoint: CheckpointMode::Holes,
            exactly_once: self.job.guarantee == Guarantee::ExactlyOnce,
            ..ExecutorSettings::default()
        };
        let stores = vec![Arc::clone(&self.counts) as Arc<dyn ReadOnlyKeyValueStore>];
        let mut executor = Executor::new(settings, processor, stores)?;
        let epoch = executor.assign(self.job.source(), self.position());
        let mut next = self.position().next().get();
        while next < EVENTS {
            let Some((key, offset)) = self.next_event()? else { continue };
            next = offset.get() + 1;
            let submission = Submission::new(offset, next - 1).with_key(key);
            let submitted = executor.submit(epoch, submission, Instant::now(), &mut self.effects())?;
            assert!(!matches!(submitted, Submitted::Full(_)), "there is room for all of them");
            if next % EVENTS_PER_CHECKPOINT == 0 || next == EVENTS {
                is_released.store(next == EVENTS, Ordering::Relaxed);
                let slow = (0..next).filter(|event| event % KEYS == SLOW).count();
                let left = if next == EVENTS { 0 } else { slow };
                while executor.in_flight() > left {
                    let _ = executor.wait(Duration::from_millis(10));
                    executor.poll(Instant::now(), &mut self.effects())?;
                }
                let positions = executor.positions()?.expect("positions with holes can always be taken");
                let differs = |position: &PartitionPosition| *position != self.position();
                let position: Position = positions
                    .iter()
                    .filter(|(_, snapshot)| differs(snapshot.position()))
                    .map(|(partition, snapshot)| (partition.clone(), snapshot.position().clone()))
                    .collect();
                self.checkpoint(&position)?;
                executor.committed(&positions);
            }
        }
        Ok(())
    }

    fn effects(&self) -> Effects<'_> {
        Effects { job: self.job, counts: &*self.counts, total: &*self.total, producer: &self.producer }
    }

    fn checkpoint(&mut self, position: &Position) -> Result<()> {
        let (tasks, death) = (slice::from_ref(&self.task), self.death);
        match &mut self.producer {
            Producer::Plain(producer) => {
                let mut writer = Writer { below: producer, death };
                let mut committer = Committer { below: &mut self.consumer, death };
                checkpoint(tasks, position, &mut writer, &mut committer)?;
            }
            Producer::Transactional(producer) => {
                let mut writer = Writer { below: &mut &*producer, death };
                let mut committer = Committer { below: &mut producer.committer(&mut self.consumer), death };
                checkpoint(tasks, position, &mut writer, &mut committer)?;
            }
        }
        death.comes_at(Step::CheckpointEnd);
        Ok(())
    }
}

/// Applies what workers bring. The total is every worker's, so it is counted here.
struct Effects<'e> {
    job: &'e Job,
    counts: &'e dyn KeyValueStore,
    total: &'e dyn KeyValueStore,
    producer: &'e Producer,
}

impl Sink<i64, i64> for Effects<'_> {
    fn apply(&mut self, _: &Source<'_, i64>, effects: Vec<Effect<i64>>) -> Result<()> {
        add_one(self.total, b"total")?;
        let send = |event| self.producer.send(self.job, &key(event), event);
        effects.into_iter().try_for_each(|effect| effect.apply(&[self.counts], send))
    }

    fn dead_letter(&mut self, source: &Source<'_, i64>, failure: &RecordFailure) -> Result<()> {
        panic!("event {}: {failure}", source.offset);
    }
}
