use std::{
    mem,
    path::{Path, PathBuf},
    slice,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use kstate_api::{ErrorKind, KeyValueStoreSupplier, Position, StateStore, TaskId, TopicPartition};
use kstate_checkpoint::{
    LogRetention, LoggedStore, RestoreOptions, Task, Trigger, TriggerOptions, checkpoint, restore,
};
use kstate_kafka::{ChangelogConsumer, ChangelogProducer, Cluster, SourceConsumer, rdkafka::Message as _};

use crate::{
    failure::Failure,
    merge::{MergedCounts, SortedCounts},
    protocol::{Event, Job, TaskCommitted, TaskRestored},
    state_dir::store_directory,
    stop::Stop,
    stores::supplier,
    task_counts::TaskCounts,
};

/// How long one look for a source record takes; the end of the source and a stop are noticed after it.
const POLL: Duration = Duration::from_millis(20);
/// How long the broker may take to acknowledge a checkpoint's changelog records.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(120);
/// About how many bytes of counts go into one event.
const COUNTS_BYTES: usize = 64 << 10;

/// One past the last offset of each source partition, once the feeder has fed everything.
pub(crate) type Ends = Arc<OnceLock<Vec<i64>>>;

/// Hears what the counter tells.
pub(crate) type Emit<'e> = dyn FnMut(Event) -> Result<(), Failure> + 'e;

/// What may gather in one task between two checkpoints.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Bytes of staged counts.
    uncommitted: u64,
    /// Bytes of text.
    source: u64,
}

impl Limits {
    fn of(job: &Job) -> Self {
        if job.embedded {
            // A checkpoint's records have to fit into the 5 MiB of a changelog's partition, and the feeder waits
            // for the commit of what it is ahead.
            return Self { uncommitted: 3 << 20, source: EMBEDDED_WINDOW_BYTES / 2 };
        }
        let tasks = u64::try_from(job.partitions).unwrap_or(1).max(1);
        Self { uncommitted: ((64 << 20) / tasks).max(1 << 20), source: WINDOW_BYTES / 2 }
    }
}

/// How far the feeder may be ahead in each partition of an embedded cluster, in bytes: less than a partition keeps.
pub(crate) const EMBEDDED_WINDOW_BYTES: u64 = 4 << 20;
/// The same for a real cluster.
pub(crate) const WINDOW_BYTES: u64 = 64 << 20;

/// Counts the words of the source topic, one task for each partition, until `ends` is known and reached.
///
/// # Errors
/// [`Failure::Stopped`] as soon as `stop` is requested; else what the broker or a store met.
pub(crate) fn count(job: &Job, ends: &Ends, stop: &Stop, emit: &mut Emit<'_>) -> Result<(), Failure> {
    let mut counter = Counter::open(job)?;
    let restored = counter.restore()?;
    emit(Event::Restored(restored))?;
    counter.run(ends, stop, emit)?;
    counter.tell_counts(stop, emit)?;
    for task in &counter.counts {
        task.store().close()?;
    }
    emit(Event::Finished)
}

struct Counter {
    cluster: Cluster,
    limits: Limits,
    trigger: Trigger,
    source: SourceConsumer,
    changelog: ChangelogProducer,
    /// Both in the order of the partitions.
    tasks: Vec<Task>,
    counts: Vec<TaskCounts>,
    /// For each partition, the next source record to count, and the bytes counted since the last checkpoint.
    next: Vec<i64>,
    source_bytes: Vec<u64>,
}

impl Counter {
    fn open(job: &Job) -> Result<Self, Failure> {
        let cluster = job.cluster();
        let supplier = supplier(job)?;
        let homes = (0..job.partitions).map(|partition| Home::of(job, partition, supplier.name()));
        let homes = homes.collect::<Result<Vec<_>, _>>()?;
        // Every store is looked at before any is touched: one that cannot be opened leaves the others as they are.
        for home in &homes {
            home.look(&*supplier)?;
        }
        let (mut tasks, mut counts, mut sources) = (Vec::new(), Vec::new(), Vec::new());
        for home in homes {
            let source = home.source.clone();
            let (task, task_counts) = home.open(&*supplier)?;
            sources.push(source);
            tasks.push(task);
            counts.push(task_counts);
        }
        let limits = Limits::of(job);
        let options = TriggerOptions::new()
            .interval(Duration::from_millis(job.commit_interval_ms))
            .max_uncommitted_bytes(limits.uncommitted);
        let source = SourceConsumer::assign(&cluster, &job.names.group, &sources)?;
        let next = sources.iter().map(|partition| committed(&source, partition)).collect();
        Ok(Self {
            limits,
            trigger: Trigger::new(options, Instant::now()),
            changelog: ChangelogProducer::new(&cluster, DELIVERY_TIMEOUT)?,
            source,
            cluster,
            source_bytes: vec![0; tasks.len()],
            tasks,
            counts,
            next,
        })
    }

    fn restore(&self) -> Result<Vec<TaskRestored>, Failure> {
        let mut reader = ChangelogConsumer::new(&self.cluster)?;
        let options = RestoreOptions::new()
            .retention(self.cluster.log_retention())
            .source_starts(self.source.uncommitted_starts().clone());
        let mut restored = Vec::with_capacity(self.tasks.len());
        for (task, next) in self.tasks.iter().zip(&self.next) {
            for logged in task.stores() {
                let held = logged.store().committed_offset(logged.changelog())?;
                let result = restore(logged, self.source.committed(), &mut reader, &options, &mut |_| {})
                    .map_err(|error| self.restore_failure(error))?;
                restored.push(TaskRestored {
                    task: task.id().to_string(),
                    held: held.map(i64::from),
                    applied: result.applied,
                    uncommitted: result.uncommitted,
                    end: result.end.get(),
                    source_next: *next,
                });
            }
        }
        Ok(restored)
    }

    fn restore_failure(&self, error: kstate_api::Error) -> Failure {
        let log_too_short =
            error.kind() == ErrorKind::Unsupported && self.cluster.log_retention() == LogRetention::DropsOldest;
        if log_too_short { Failure::EmbeddedLogTooShort { source: error } } else { error.into() }
    }

    fn run(&mut self, ends: &Ends, stop: &Stop, emit: &mut Emit<'_>) -> Result<(), Failure> {
        self.trigger.reset(Instant::now());
        let mut counting = false;
        loop {
            stop.check()?;
            let full = self.count_next()?;
            if full.is_some() && !counting {
                counting = true;
                emit(Event::Counting)?;
            }
            let uncommitted = full.unwrap_or_default();
            if self.trigger.is_due(Instant::now(), uncommitted)
                || self.source_bytes.iter().any(|bytes| *bytes >= self.limits.source)
            {
                self.checkpoint(emit)?;
            }
            if ends.get().is_some_and(|ends| *ends == self.next) {
                return self.checkpoint(emit);
            }
        }
    }

    /// Counts the next chunk, if there is one; returns the bytes that its task has staged.
    fn count_next(&mut self) -> Result<Option<u64>, Failure> {
        let Some(message) = self.source.poll(POLL)? else { return Ok(None) };
        let Ok(task) = usize::try_from(message.partition()) else { return Ok(None) };
        let text = message.payload().unwrap_or_default();
        let mut uncommitted = 0;
        if let Some(counts) = self.counts.get_mut(task) {
            counts.count(&String::from_utf8_lossy(text))?;
            uncommitted = counts.store().uncommitted_bytes();
        }
        if let (Some(next), Some(bytes)) = (self.next.get_mut(task), self.source_bytes.get_mut(task)) {
            *next = message.offset() + 1;
            *bytes += text.len() as u64;
        }
        Ok(Some(uncommitted))
    }

    fn checkpoint(&mut self, emit: &mut Emit<'_>) -> Result<(), Failure> {
        for counts in &mut self.counts {
            counts.stage()?;
        }
        let position = self.source.position()?;
        let committed = checkpoint(&self.tasks, &position, &mut self.changelog, &mut self.source)?;
        self.trigger.reset(Instant::now());
        self.source_bytes.fill(0);
        if committed.position == Position::new() {
            return Ok(());
        }
        emit(Event::Checkpoint(self.committed()?))
    }

    fn committed(&self) -> Result<Vec<TaskCommitted>, Failure> {
        let mut all = Vec::with_capacity(self.tasks.len());
        for (task, partition) in
            self.tasks.iter().flat_map(|task| task.sources().iter().map(move |source| (task, source)))
        {
            let mut changelog_offset = None;
            for logged in task.stores() {
                changelog_offset = logged.store().committed_offset(logged.changelog())?.map(i64::from);
            }
            let source_next = committed(&self.source, partition);
            all.push(TaskCommitted { task: task.id().to_string(), source_next, changelog_offset });
        }
        Ok(all)
    }

    fn tell_counts(&self, stop: &Stop, emit: &mut Emit<'_>) -> Result<(), Failure> {
        let mut sources: Vec<Box<dyn SortedCounts>> = Vec::with_capacity(self.counts.len());
        for counts in &self.counts {
            sources.push(Box::new(counts.counts()?));
        }
        let mut merged = MergedCounts::new(sources)?;
        let (mut told, mut bytes) = (Vec::new(), 0);
        while let Some((word, count)) = merged.next_count()? {
            bytes += word.len();
            told.push((word, count));
            if bytes >= COUNTS_BYTES {
                stop.check()?;
                bytes = 0;
                emit(Event::Counts(mem::take(&mut told)))?;
            }
        }
        emit(Event::Counts(told))
    }
}

/// What one task has, and where its store is.
struct Home {
    task: TaskId,
    source: TopicPartition,
    changelog: TopicPartition,
    directory: PathBuf,
}

impl Home {
    fn of(job: &Job, partition: i32, store: &str) -> Result<Self, Failure> {
        let task = TaskId::new(0, partition.unsigned_abs());
        Ok(Self {
            task,
            source: TopicPartition::new(job.names.source.as_str(), partition),
            changelog: TopicPartition::new(job.names.changelog.as_str(), partition),
            directory: store_directory(Path::new(&job.state_dir), task, store)?,
        })
    }

    fn look(&self, supplier: &dyn KeyValueStoreSupplier) -> Result<(), Failure> {
        let looked = supplier.read_offsets(&self.directory, slice::from_ref(&self.changelog));
        looked.map(|_| ()).map_err(|source| Failure::StoreOpen { path: self.directory.clone(), source })
    }

    fn open(self, supplier: &dyn KeyValueStoreSupplier) -> Result<(Task, TaskCounts), Failure> {
        let store = supplier
            .open(&self.directory, slice::from_ref(&self.changelog))
            .map_err(|source| Failure::StoreOpen { path: self.directory, source })?;
        let logged = LoggedStore::new(Arc::clone(&store) as Arc<dyn StateStore>, self.changelog)?;
        Ok((Task::new(self.task, vec![self.source], vec![logged]), TaskCounts::new(store)))
    }
}

/// The next record of `partition`, as the group has committed it.
fn committed(source: &SourceConsumer, partition: &TopicPartition) -> i64 {
    source.committed().next(partition).map_or(0, i64::from)
}
