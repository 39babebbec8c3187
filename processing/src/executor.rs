use std::{
    collections::BTreeMap,
    fmt,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use kstate_api::{Error, ErrorKind, Offset, PartitionPosition, ReadOnlyKeyValueStore, Result, TopicPartition};

use crate::{
    Admission, Epoch, ExecutorSettings, ExecutorStats, Lanes, OffsetTracker, PositionMetadata as _, PositionSnapshot,
    Processor, RangesIgnored, RecordOrder, Sink, Submission, Submitted,
    assigned::Assigned,
    job::{Bench, Job, LaneKey},
    workers::Workers,
};

mod attempt;
mod drive;
mod numbers;

pub use drive::Drained;

/// Why an executor does nothing any more.
#[derive(Clone, Debug)]
enum Halted {
    /// A record asked for it; what is finished may be committed.
    ByRecord(Arc<str>),
    /// The effects of a record may be applied in part; nothing may be committed.
    BySink(Arc<str>),
}

/// Processes the records of a task with several workers, and keeps the order, the retries and the position right
/// (clauses A1, A3, A4).
///
/// One thread, which owns the task, drives it: it [submits](Executor::submit) records, [polls](Executor::poll) for what
/// came of them, and takes [positions](Executor::positions) for checkpoints. Workers only read, and return one ordered
/// list of effects for each record; the owner's [`Sink`] applies them, the record is finished, and only then may the
/// next one of its lane run. Time is an argument: the executor has no clock.
///
/// A record that fails waits for its next attempt without holding a worker, and holds up only its own lane. After the
/// last attempt it goes to the dead letters and is finished, or the executor halts with the position at it.
///
/// With one worker there is no other thread: [`submit`](Executor::submit) processes the record and applies its effects
/// before it returns.
///
/// ```
/// use std::time::{Duration, Instant};
///
/// use kstate_api::{Offset, PartitionPosition, Result, TopicPartition};
/// use kstate_processing::{
///     Effect, Executor, ExecutorSettings, ProcessorFn, RecordFailure, Sink, Source, Submission, Work,
/// };
///
/// #[derive(Default)]
/// struct Lines(Vec<String>);
///
/// impl Sink<u64, String> for Lines {
///     fn apply(&mut self, _: &Source<'_, u64>, effects: Vec<Effect<String>>) -> Result<()> {
///         effects.into_iter().try_for_each(|effect| effect.apply(&[], |line| Ok(self.0.push(line))))
///     }
///     fn dead_letter(&mut self, source: &Source<'_, u64>, failure: &RecordFailure) -> Result<()> {
///         Ok(self.0.push(format!("{}: {failure}", source.record)))
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let double = ProcessorFn::new(|number: &u64, work: &mut Work<'_, String>| {
///     work.output(format!("{}", 2 * number));
///     Ok(())
/// });
/// let settings = ExecutorSettings { workers: 2, ..ExecutorSettings::default() };
/// let mut executor = Executor::new(settings, double, vec![])?;
/// let epoch = executor.assign(TopicPartition::new("numbers", 0), PartitionPosition::at(Offset::ZERO));
///
/// let mut lines = Lines::default();
/// executor.submit(epoch, Submission::new(Offset::ZERO, 21), Instant::now(), &mut lines)?;
/// while executor.in_flight() > 0 {
///     executor.wait(Duration::from_secs(1));
///     executor.poll(Instant::now(), &mut lines)?;
/// }
/// assert_eq!(lines.0, ["42"]);
/// assert_eq!(executor.next(epoch).map(Offset::get), Some(1));
/// # Ok(())
/// # }
/// ```
pub struct Executor<P: Processor> {
    settings: ExecutorSettings,
    bench: Arc<Bench<P>>,
    /// None with one worker, which is the owner itself.
    workers: Option<Workers<P>>,
    assigned: BTreeMap<Epoch, Assigned<P>>,
    lanes: Lanes<LaneKey, Job<P::Record>>,
    /// Records of partitions that are assigned.
    in_flight: usize,
    /// Records that were given to workers, of whatever partition.
    running: usize,
    /// Records that were taken, of whatever partition: the number of the next one.
    taken: u64,
    halted: Option<Halted>,
    stats: ExecutorStats,
}

impl<P: Processor> fmt::Debug for Executor<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor")
            .field("settings", &self.settings)
            .field("in_flight", &self.in_flight)
            .field("running", &self.running)
            .field("halted", &self.halted)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

impl<P: Processor> Executor<P> {
    /// An executor of `processor`, whose workers read `stores`.
    ///
    /// # Errors
    /// `Config` if the settings ask for what cannot be had, `Io` if a thread cannot be started.
    ///
    /// ```
    /// # use kstate_processing::{Executor, ExecutorSettings, ProcessorFn, Work};
    /// let nothing = ProcessorFn::new(|_: &String, _: &mut Work<'_, String>| Ok(()));
    /// assert!(Executor::new(ExecutorSettings::default(), nothing, vec![]).is_ok());
    /// ```
    pub fn new(settings: ExecutorSettings, processor: P, stores: Vec<Arc<dyn ReadOnlyKeyValueStore>>) -> Result<Self> {
        settings.check()?;
        let bench = Arc::new(Bench { processor, stores });
        let workers = if settings.workers > 1 { Some(Workers::start(settings.workers, &bench)?) } else { None };
        Ok(Self {
            settings,
            bench,
            workers,
            assigned: BTreeMap::new(),
            lanes: Lanes::new(),
            in_flight: 0,
            running: 0,
            taken: 0,
            halted: None,
            stats: ExecutorStats::default(),
        })
    }

    /// Begins to process `partition` at `position`, to whose `next` the consumer must seek.
    ///
    /// The epoch stands for this assignment until it is [revoked](Executor::revoke).
    ///
    /// ```
    /// # use kstate_api::{Offset, PartitionPosition, TopicPartition};
    /// # use kstate_processing::{Executor, ExecutorSettings, ProcessorFn, Work};
    /// # let nothing = ProcessorFn::new(|_: &String, _: &mut Work<'_, String>| Ok(()));
    /// # let mut executor = Executor::new(ExecutorSettings::default(), nothing, vec![]).unwrap();
    /// let epoch = executor.assign(TopicPartition::new("lines", 0), PartitionPosition::at(Offset::ZERO));
    /// ```
    pub fn assign(&mut self, partition: TopicPartition, position: PartitionPosition) -> Epoch {
        let mut tracker = OffsetTracker::new(self.settings.tracker_limits());
        let epoch = tracker.resume(position);
        self.assigned.insert(epoch, Assigned::new(partition, tracker));
        epoch
    }

    /// Begins to process `partition` where a consumer group's committed offset and its metadata say. Metadata that cannot
    /// be used is logged and counted, and what is above the offset runs again.
    ///
    /// ```
    /// # use kstate_api::{Offset, TopicPartition};
    /// # use kstate_processing::{Executor, ExecutorSettings, ProcessorFn, Work};
    /// # let nothing = ProcessorFn::new(|_: &String, _: &mut Work<'_, String>| Ok(()));
    /// # let mut executor = Executor::new(ExecutorSettings::default(), nothing, vec![]).unwrap();
    /// let (epoch, ignored) = executor.assign_committed(TopicPartition::new("lines", 0), Offset::ZERO, "other");
    /// assert!(ignored.is_some());
    /// ```
    pub fn assign_committed(
        &mut self,
        partition: TopicPartition,
        committed: Offset,
        metadata: &str,
    ) -> (Epoch, Option<RangesIgnored>) {
        let read = PartitionPosition::from_metadata(committed, metadata);
        let ignored = read.as_ref().err().copied().filter(|reason| *reason != RangesIgnored::Bare);
        if let Some(reason) = ignored {
            self.stats.ranges_ignored += 1;
            tracing::warn!(%partition, %committed, %reason, "records that were finished may run again");
        }
        (self.assign(partition, read.unwrap_or(PartitionPosition::at(committed))), ignored)
    }

    /// Ends an assignment at once, and returns its last position. Waiting for what is in flight, and committing, come
    /// before; afterwards nothing of it is committed any more.
    ///
    /// Records of it that did not start never will; what workers still bring of it is counted and dropped. All of them
    /// are [abandoned](crate::Outcome::Abandoned), and whoever waits for them hears so before this returns.
    ///
    /// ```
    /// # use kstate_api::{Offset, PartitionPosition, TopicPartition};
    /// # use kstate_processing::{Executor, ExecutorSettings, ProcessorFn, Work};
    /// # let nothing = ProcessorFn::new(|_: &String, _: &mut Work<'_, String>| Ok(()));
    /// # let mut executor = Executor::new(ExecutorSettings::default(), nothing, vec![]).unwrap();
    /// let epoch = executor.assign(TopicPartition::new("lines", 0), PartitionPosition::at(Offset::ZERO));
    /// assert!(executor.revoke(epoch).is_some());
    /// assert!(executor.revoke(epoch).is_none());
    /// ```
    pub fn revoke(&mut self, epoch: Epoch) -> Option<PartitionPosition> {
        let mut assigned = self.assigned.remove(&epoch)?;
        self.in_flight -= assigned.tracker.in_flight();
        let position = assigned.tracker.revoke();
        if let Some(workers) = &self.workers {
            self.running -= workers.exchange().withdraw(|job| job.epoch() == epoch).len();
        }
        drop(self.lanes.remove(|lane| lane.epoch() == epoch, |job| job.epoch() == epoch));
        position
    }

    /// Takes a record. All records of the partition must be submitted, in its order.
    ///
    /// # Errors
    /// `InvalidArgument` if the epoch is not assigned, or the offset is not above the last one. `Poisoned` once the
    /// executor has halted: the record that halted it is named.
    ///
    /// ```
    /// # use std::time::Instant;
    /// # use kstate_api::{Offset, PartitionPosition, Result, TopicPartition};
    /// # use kstate_processing::*;
    /// # struct Nowhere;
    /// # impl Sink<String, String> for Nowhere {
    /// #     fn apply(&mut self, _: &Source<'_, String>, _: Vec<Effect<String>>) -> Result<()> { Ok(()) }
    /// #     fn dead_letter(&mut self, _: &Source<'_, String>, _: &RecordFailure) -> Result<()> { Ok(()) }
    /// # }
    /// # let nothing = ProcessorFn::new(|_: &String, _: &mut Work<'_, String>| Ok(()));
    /// # let mut executor = Executor::new(ExecutorSettings::default(), nothing, vec![]).unwrap();
    /// # let epoch = executor.assign(TopicPartition::new("lines", 0), PartitionPosition::at(Offset::ZERO));
    /// let submission = Submission::new(Offset::ZERO, "a line".to_owned());
    /// match executor.submit(epoch, submission, Instant::now(), &mut Nowhere).unwrap() {
    ///     Submitted::Taken | Submitted::Finished(_) => (),
    ///     Submitted::Full(submission) => println!("pause at {}", submission.offset()),
    /// }
    /// ```
    pub fn submit(
        &mut self,
        epoch: Epoch,
        submission: Submission<P::Record>,
        now: Instant,
        sink: &mut dyn Sink<P::Record, P::Output>,
    ) -> Result<Submitted<P::Record>> {
        self.check_running()?;
        let Some(assigned) = self.assigned.get_mut(&epoch) else {
            return Err(Error::new(ErrorKind::InvalidArgument, format!("epoch {epoch} is not assigned")));
        };
        if self.in_flight >= self.settings.max_in_flight {
            self.stats.full += 1;
            return Ok(Submitted::Full(submission));
        }
        let ticket = match assigned.tracker.admit(submission.offset)? {
            Admission::Run(ticket) => ticket,
            Admission::Finished => {
                self.stats.skipped += 1;
                return Ok(Submitted::Finished(submission));
            }
            Admission::Full => {
                self.stats.full += 1;
                return Ok(Submitted::Full(submission));
            }
        };
        assigned.admissions.admit(submission.offset, now, assigned.tracker.lowest_in_flight());
        let number = self.taken;
        self.taken += 1;
        self.in_flight += 1;
        let Submission { offset, key, record, on_finished } = submission;
        assigned.notices.add(offset, on_finished);
        let lane = match self.settings.order {
            RecordOrder::Partition => Some(LaneKey::Partition(epoch)),
            RecordOrder::Key => Some(LaneKey::Key(epoch, key)),
            RecordOrder::Unordered => None,
        };
        let mut job = Job { number, record, offset, ticket, lane, attempts: 0 };
        if self.workers.is_none() && self.lanes.is_idle() {
            // The plain path: there is nobody to wait for, so no lane is needed either.
            let processed = self.bench.attempt(&mut job);
            if processed.is_err() {
                job.lane.iter().for_each(|lane| self.lanes.take(lane.clone()));
            }
            self.take_attempt(job, processed, now, sink)?;
        } else {
            self.lanes.push(job.lane.clone(), job);
            self.dispatch(now, sink)?;
        }
        Ok(Submitted::Taken)
    }

    /// Applies what workers brought, and starts what can be started: call it whenever something may have happened, and at
    /// [`next_due`](Executor::next_due). Tells how many records were finished.
    ///
    /// # Errors
    /// `Poisoned` if a record or the sink halts the executor, or did before.
    ///
    /// ```
    /// # use std::time::Instant;
    /// # use kstate_api::Result;
    /// # use kstate_processing::*;
    /// # struct Nowhere;
    /// # impl Sink<String, String> for Nowhere {
    /// #     fn apply(&mut self, _: &Source<'_, String>, _: Vec<Effect<String>>) -> Result<()> { Ok(()) }
    /// #     fn dead_letter(&mut self, _: &Source<'_, String>, _: &RecordFailure) -> Result<()> { Ok(()) }
    /// # }
    /// # let nothing = ProcessorFn::new(|_: &String, _: &mut Work<'_, String>| Ok(()));
    /// # let mut executor = Executor::new(ExecutorSettings::default(), nothing, vec![]).unwrap();
    /// assert_eq!(executor.poll(Instant::now(), &mut Nowhere).unwrap(), 0);
    /// ```
    pub fn poll(&mut self, now: Instant, sink: &mut dyn Sink<P::Record, P::Output>) -> Result<usize> {
        self.check_running()?;
        let before = self.stats.done + self.stats.dead_letters;
        let attempts = self.workers.as_ref().map(|workers| workers.exchange().collect());
        let mut attempts = attempts.into_iter().flatten();
        while let Some((job, processed)) = attempts.next() {
            self.running -= 1;
            if let Err(error) = self.take_attempt(job, processed, now, sink) {
                self.running -= attempts.count();
                return Err(error);
            }
        }
        self.lanes.wake(now);
        self.dispatch(now, sink)?;
        let finished = self.stats.done + self.stats.dead_letters - before;
        Ok(usize::try_from(finished).unwrap_or(usize::MAX))
    }

    /// Starts every job that can run.
    fn dispatch(&mut self, now: Instant, sink: &mut dyn Sink<P::Record, P::Output>) -> Result<()> {
        while let Some(mut job) = self.lanes.next_ready() {
            if let Some(workers) = &self.workers {
                self.running += 1;
                workers.exchange().give(job.number, job);
            } else {
                let processed = self.bench.attempt(&mut job);
                self.take_attempt(job, processed, now, sink)?;
            }
        }
        Ok(())
    }

    fn check_running(&self) -> Result<()> {
        match &self.halted {
            None => Ok(()),
            Some(Halted::ByRecord(message) | Halted::BySink(message)) => {
                Err(Error::new(ErrorKind::Poisoned, &**message))
            }
        }
    }

    /// Tells the consumer's position in a partition: every record below it was submitted. See
    /// [`OffsetTracker::observe`].
    ///
    /// ```
    /// # use kstate_api::{Offset, PartitionPosition, TopicPartition};
    /// # use kstate_processing::{Executor, ExecutorSettings, ProcessorFn, Work};
    /// # let nothing = ProcessorFn::new(|_: &String, _: &mut Work<'_, String>| Ok(()));
    /// # let mut executor = Executor::new(ExecutorSettings::default(), nothing, vec![]).unwrap();
    /// let epoch = executor.assign(TopicPartition::new("lines", 0), PartitionPosition::at(Offset::ZERO));
    /// executor.observe(epoch, Offset::ZERO.next());
    /// assert_eq!(executor.next(epoch), Some(Offset::ZERO.next()));
    /// ```
    pub fn observe(&mut self, epoch: Epoch, position: Offset) {
        if let Some(assigned) = self.assigned.get_mut(&epoch) {
            assigned.tracker.observe(position);
        }
    }

    /// The offset to commit of one partition, if it is assigned.
    ///
    /// ```
    /// # use kstate_api::{Offset, PartitionPosition, TopicPartition};
    /// # use kstate_processing::{Executor, ExecutorSettings, ProcessorFn, Work};
    /// # let nothing = ProcessorFn::new(|_: &String, _: &mut Work<'_, String>| Ok(()));
    /// # let mut executor = Executor::new(ExecutorSettings::default(), nothing, vec![]).unwrap();
    /// let epoch = executor.assign(TopicPartition::new("lines", 0), PartitionPosition::at(Offset::ZERO));
    /// assert_eq!(executor.next(epoch), Some(Offset::ZERO));
    /// ```
    #[must_use]
    pub fn next(&self, epoch: Epoch) -> Option<Offset> {
        self.assigned.get(&epoch)?.tracker.next()
    }

    /// The positions to commit now, as the checkpoint mode says; `None` if what is in flight has to be drained first. Give
    /// them to [`committed`](Executor::committed) once they are.
    ///
    /// # Errors
    /// `Poisoned` if the sink failed: the effects of a record may be applied in part, so nothing may be committed.
    ///
    /// ```
    /// # use kstate_processing::{Executor, ExecutorSettings, ProcessorFn, Work};
    /// # let nothing = ProcessorFn::new(|_: &String, _: &mut Work<'_, String>| Ok(()));
    /// # let mut executor = Executor::new(ExecutorSettings::default(), nothing, vec![]).unwrap();
    /// let positions = executor.positions().unwrap().expect("nothing is in flight");
    /// executor.committed(&positions);
    /// ```
    pub fn positions(&self) -> Result<Option<Vec<(TopicPartition, PositionSnapshot)>>> {
        if let Some(Halted::BySink(message)) = &self.halted {
            return Err(Error::new(ErrorKind::Poisoned, &**message));
        }
        let position = |assigned: &Assigned<P>| {
            let snapshot = self.settings.checkpoint.snapshot(&assigned.tracker)?;
            Some((assigned.partition.clone(), snapshot))
        };
        Ok(self.assigned.values().map(position).collect())
    }

    /// Notes that `positions` are committed.
    ///
    /// ```
    /// # use kstate_processing::{Executor, ExecutorSettings, ProcessorFn, Work};
    /// # let nothing = ProcessorFn::new(|_: &String, _: &mut Work<'_, String>| Ok(()));
    /// # let mut executor = Executor::new(ExecutorSettings::default(), nothing, vec![]).unwrap();
    /// executor.committed(&[]);
    /// ```
    pub fn committed(&mut self, positions: &[(TopicPartition, PositionSnapshot)]) {
        for (_, snapshot) in positions {
            if let Some(assigned) = self.assigned.get_mut(&snapshot.epoch()) {
                assigned.tracker.committed(snapshot);
            }
        }
    }
}

impl<P: Processor> Drop for Executor<P> {
    /// Waits for nobody: what is in flight is abandoned, and whoever waits for it hears so at once.
    fn drop(&mut self) {
        while let Some(epoch) = self.assigned.keys().next().copied() {
            self.revoke(epoch);
        }
    }
}
