use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use kstate_api::{Error, ErrorKind, TaskId, TopicPartition};
use kstate_checkpoint::Trigger;
use rdkafka::{error::KafkaError, types::RDKafkaErrorCode};

use crate::{SourceConsumer, deliveries::OutputSource};

use super::{
    AppStats, OnError, OwnedRecord, ProcessingFailure, Queries, SourceRecord, TaskContext, TaskState,
    absence::Absence,
    active_task::{ActiveTask, OpenTask},
    control::{Control, WorkerState},
    definition::Definition,
    effects::Effects,
    outputs::Outputs,
    restorer::{Job, RestoreWork, Restorer},
    standbys::Standbys,
    task_processing::TaskProcessing,
};

mod checkpoints;
mod rebalances;
mod workers;

use checkpoints::{Failing, Outcome};

/// How long one look for a record takes; a stop, a pause and the end of a restore are noticed after it.
const POLL: Duration = Duration::from_millis(20);

/// How old the numbers may be that the app tells of itself.
const STATS_INTERVAL: Duration = Duration::from_millis(100);
/// How long one look after workers takes when no record comes; it ends as soon as one of them brings something.
const WORKER_WAIT: Duration = Duration::from_millis(1);

/// Whether a checkpoint is due whatever the trigger says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Urgency {
    None,
    /// There are keys to heal.
    Due,
    /// It waits for the workers to end what they have.
    Draining,
}

/// Why a session ends.
#[derive(Debug)]
pub(crate) enum End {
    /// The group, a client or a store has to be begun with anew.
    Rejoin(Error),
    /// The app cannot go on.
    Fail(Error),
    /// The same, for the sake of one record: what else is done may be committed before.
    Halt(Error),
}

impl End {
    /// What the error of a store or a client comes to.
    pub(crate) fn of(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Fenced
            | ErrorKind::Poisoned
            | ErrorKind::Closed
            | ErrorKind::Aborted
            | ErrorKind::Unavailable
            | ErrorKind::Busy
            | ErrorKind::Io => Self::Rejoin(error),
            // Neither time nor another session mends these.
            _ => Self::Fail(error),
        }
    }
}

/// One membership of a thread in the group, with all it has there.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    definition: &'a Arc<Definition>,
    control: &'a Control,
    queries: &'a Queries,
    standbys: &'a Standbys,
    thread: usize,
    // Before the clients: jobs hold stores.
    restorer: Restorer,
    tasks: BTreeMap<TaskId, ActiveTask>,
    outputs: Outputs,
    source: SourceConsumer,
    trigger: Trigger,
    absence: Absence,
    /// The bytes that all tasks have staged.
    staged: u64,
    urgency: Urgency,
    /// How many requests for a checkpoint were answered.
    answered: u64,
    /// While checkpoints fail. No records are taken in meanwhile.
    failing: Option<Failing>,
    /// Whether records are taken in.
    flowing: bool,
    /// `Restoring` from when the group tells what is assigned, were it nothing, until every task runs.
    state: WorkerState,
    /// Since when an assignment cannot be followed, as the brokers do not answer.
    waiting: Option<Instant>,
    /// Whether anything was committed.
    pub(crate) progressed: bool,
    /// What this thread has done, tasks that it has apart.
    stats: AppStats,
    told: Instant,
}

impl<'a> Session<'a> {
    pub(crate) fn open(
        definition: &'a Arc<Definition>,
        control: &'a Control,
        queries: &'a Queries,
        standbys: &'a Standbys,
        thread: usize,
    ) -> Result<Self, End> {
        control.worker_changed(thread, WorkerState::Joining);
        let outputs = Outputs::open(definition, thread).map_err(End::of)?;
        let cluster = &definition.cluster;
        let instance = definition.instance.as_ref().map(|instance| format!("{instance}-{thread}"));
        let mut own = vec![("partition.assignment.strategy", definition.protocol.strategy())];
        own.extend(instance.as_ref().map(|instance| ("group.instance.id", instance.as_str())));
        let source = match definition.own_partitions(thread) {
            Some(partitions) => SourceConsumer::own(cluster, &definition.id, partitions),
            None => SourceConsumer::subscribe(cluster, &definition.id, &definition.sources, &own),
        };
        let mut source = source.map_err(End::of)?;
        if definition.processing.has_workers() {
            source = source.with_ranges();
        }
        Ok(Self {
            definition,
            control,
            queries,
            standbys,
            thread,
            restorer: Restorer::start(definition).map_err(End::of)?,
            tasks: BTreeMap::new(),
            outputs,
            source,
            trigger: definition.new_trigger(),
            absence: Absence::new(definition.session_timeout(), Instant::now()),
            staged: 0,
            urgency: Urgency::None,
            answered: control.checkpoint_requests(),
            failing: None,
            flowing: true,
            state: WorkerState::Joining,
            waiting: None,
            progressed: false,
            stats: control.stats_of(thread),
            told: Instant::now(),
        })
    }

    /// Goes on until the app is to stop, and everything is committed then.
    pub(crate) fn run(&mut self) -> Result<(), End> {
        let ended = self.run_to_the_end();
        if let Err(End::Halt(_)) = &ended
            && let Err(end) = self.checkpoint()
        {
            tracing::warn!(thread = self.thread, ?end, "what is finished was not committed, and comes again");
        }
        ended
    }

    fn run_to_the_end(&mut self) -> Result<(), End> {
        while !self.control.is_stopping() {
            self.poll()?;
            if self.state == WorkerState::Restoring {
                self.ready_tasks()?;
            }
            if self.is_checkpoint_due() {
                self.checkpoint()?;
            }
        }
        // It goes on polling: a group that deals out its partitions takes no commit until that is done.
        let deadline = Instant::now() + self.definition.timeouts.stop;
        loop {
            self.poll()?;
            let now = Instant::now();
            let waits = self.busy_workers().is_some() && now < deadline;
            if waits || self.failing.is_some_and(|failing| now < failing.again) {
                continue;
            }
            match self.checkpoint()? {
                // What was rolled back is in nobody's way: its records come again with the next start.
                Outcome::Committed | Outcome::RolledBack => return Ok(()),
                Outcome::Postponed | Outcome::Refused if now < deadline => {}
                Outcome::Postponed | Outcome::Refused => {
                    let message = "the app stopped without its last checkpoint, which failed until the end";
                    return Err(End::Fail(Error::new(ErrorKind::Unavailable, message)));
                }
            }
        }
    }

    /// Processes the next record, if there is one and records are taken in, and follows the group.
    fn poll(&mut self) -> Result<(), End> {
        self.absence.is_here(Instant::now());
        self.set_flow()?;
        self.process_next()?;
        self.drive_workers()?;
        self.tell_stats();
        self.follow_assignment()
    }

    /// Ends it, and gives its consumers back, whose end may take its time.
    pub(crate) fn close(mut self) -> (SourceConsumer, Restorer) {
        for task in std::mem::take(&mut self.tasks).into_values() {
            self.close_task(task);
        }
        self.outputs.tell(&mut self.stats);
        self.stats.workers.ranges_ignored += self.source.ranges_ignored();
        self.control.tell_stats(self.thread, self.stats);
        if let Err(error) = self.outputs.abort() {
            tracing::warn!(thread = self.thread, %error, "a transaction was left to its timeout");
        }
        (self.source, self.restorer)
    }

    fn process_next(&mut self) -> Result<(), End> {
        let busy = self.busy_workers().is_some();
        let message = match self.source.poll_client(if busy { Duration::ZERO } else { POLL }) {
            None => {
                self.busy_workers().into_iter().for_each(|workers| workers.wait(WORKER_WAIT));
                return Ok(());
            }
            Some(Ok(message)) => message,
            Some(Err(error)) => return poll_failed(&self.source, error),
        };
        let record = SourceRecord::new(&message).map_err(End::Fail)?;
        let id = task_of(&record.topic_partition());
        let Some(task) = self.tasks.get_mut(&id).and_then(ActiveTask::running_mut) else {
            // It counts as read and was not processed: its partition has to be read anew.
            let message = format!("a record of task {id} came, which does not run");
            return Err(End::Rejoin(Error::new(ErrorKind::Io, message)));
        };
        // One that an earlier processor made nothing of is not this record's.
        self.outputs.take_failure();
        let processor = match &mut task.processing {
            TaskProcessing::InOrder(processor) => processor,
            TaskProcessing::Workers(workers) => {
                let mut effects = Effects::new(self.definition, &task.stores, &self.outputs);
                let submitted = workers.submit(OwnedRecord::new(message.detach(), record.offset()), &mut effects);
                self.trigger.record();
                self.stats.records += 1;
                return self.submitted(id, submitted);
            }
        };
        let context = TaskContext { task: id, stores: task.stores.by_name(), outputs: &self.outputs };
        let processed = processor.process(&record, &context);
        let sent = self.outputs.end_of(|| OutputSource::Record(record.topic_partition(), record.offset()));
        let processed = processed.and(sent.map_err(Into::into));
        let staged = task.task.uncommitted_bytes();
        self.staged = self.staged.saturating_sub(task.staged).saturating_add(staged);
        task.staged = staged;
        self.trigger.record();
        self.stats.records += 1;
        let Err(error) = processed else { return Ok(()) };

        if let Some(kind) = self.outputs.take_failure() {
            return Err(End::of(
                Error::new(kind, format!("an output of task {id} failed: {error}")).with_source(error),
            ));
        }
        if !task.stores.is_sound() {
            let message = format!("a store of task {id} failed: {error}");
            return Err(End::Rejoin(Error::new(ErrorKind::Poisoned, message).with_source(error)));
        }
        let failure = ProcessingFailure { task: id, record: &record, error: &*error };
        match (self.definition.on_error)(&failure) {
            OnError::Skip => {
                self.stats.skipped_records += 1;
                tracing::warn!(task = %id, offset = %record.offset(), %error, "a record was skipped");
                Ok(())
            }
            OnError::Fail => {
                let message = format!("task {id} failed at {} {}: {error}", record.topic_partition(), record.offset());
                Err(End::Fail(Error::new(ErrorKind::Io, message).with_source(error)))
            }
        }
    }

    /// Opens, restores and runs the tasks that do not run yet, as far as they can be.
    fn ready_tasks(&mut self) -> Result<(), End> {
        let limit = self.definition.timeouts.retry;
        let waiting = |task: &&mut ActiveTask| task.state == TaskState::Assigned;
        for task in self.tasks.values_mut().filter(waiting) {
            let stores = match self.standbys.take_stores(self.definition, task.id) {
                Ok(stores) => stores,
                // Another thread of this process is closing it.
                Err(error) if error.kind() == ErrorKind::Locked && task.waits_within(limit) => continue,
                Err(error) => return Err(End::of(error)),
            };
            let open = OpenTask::new(self.definition, stores, task.sources.clone()).map_err(End::of)?;
            let job = self.restorer.restore(task.id, open.task.stores(), &self.source);
            let open = task.open.insert(open);
            task.job = Some(job.map_err(End::of)?);
            task.state = TaskState::Restoring;
            tracing::info!(task = %task.id, stores = open.stores.by_name().len(), "task opened");
            self.definition.listener.task_changed(task.id, task.state);
        }
        while let Some((job, done, result)) = self.restorer.next_ended().map_err(End::of)? {
            self.restored(&job, done, result)?;
        }
        if self.tasks.values().all(|task| task.state == TaskState::Running) {
            self.state = WorkerState::Running;
        }
        self.control.worker_changed(self.thread, self.state);
        Ok(())
    }

    fn restored(&mut self, job: &Arc<Job>, done: RestoreWork, result: kstate_api::Result<()>) -> Result<(), End> {
        self.stats.restored_records += done.applied;
        self.stats.wiped_stores += done.wiped;
        let is_its = |task: &&mut ActiveTask| task.job.as_ref().is_some_and(|own| Arc::ptr_eq(own, job));
        // A task that was given up meanwhile has cancelled it.
        let Some(task) = self.tasks.values_mut().find(is_its) else { return Ok(()) };
        task.job = None;
        let patient = result.is_ok() || task.waits_within(self.definition.timeouts.retry);
        let Some(open) = &mut task.open else { return Ok(()) };
        if let Err(error) = result {
            if error.kind() != ErrorKind::Unavailable {
                return Err(End::of(error));
            }
            if !patient {
                return Err(End::Fail(error));
            }
            tracing::warn!(task = %task.id, %error, "the restore is begun again");
            let again = self.restorer.restore(task.id, open.task.stores(), &self.source);
            task.job = Some(again.map_err(End::of)?);
            return Ok(());
        }
        open.stores.restored(self.definition);
        open.begin(self.definition, &self.source.resumed_at(&task.sources));
        if open.stores.unsettled_keys() > 0 && self.urgency == Urgency::None {
            self.urgency = Urgency::Due;
        }
        task.state = TaskState::Running;
        self.queries.open(task.id, Arc::clone(open.stores.by_name()));
        self.definition.listener.task_changed(task.id, task.state);
        if self.flowing {
            self.source.resume(&task.sources).map_err(End::of)?;
        }
        Ok(())
    }

    /// Takes in records, or does not: the app is paused or stops, or checkpoints fail and memory has to be bounded.
    fn set_flow(&mut self) -> Result<(), End> {
        let flowing = self.failing.is_none()
            && self.urgency != Urgency::Draining
            && !self.control.is_paused()
            && !self.control.is_stopping();
        if flowing == self.flowing {
            return Ok(());
        }
        self.flowing = flowing;
        // Those whose workers have no room are paused until they have.
        let sources: Vec<_> =
            self.running().filter(|open| !open.is_full()).flat_map(|open| open.task.sources().to_vec()).collect();
        let set = if flowing { self.source.resume(&sources) } else { self.source.pause(&sources) };
        set.map_err(End::of)
    }

    /// Tells what was done by now, every once in a while.
    fn tell_stats(&mut self) {
        if self.told.elapsed() < STATS_INTERVAL {
            return;
        }
        self.told = Instant::now();
        let mut stats = AppStats { tasks: self.running().count(), staged_bytes: self.staged, ..self.stats };
        self.running().filter_map(OpenTask::workers).for_each(|workers| workers.tell(&mut stats));
        self.outputs.tell(&mut stats);
        stats.workers.ranges_ignored += self.source.ranges_ignored();
        self.control.tell_stats(self.thread, stats);
    }

    fn running(&self) -> impl Iterator<Item = &OpenTask> {
        self.tasks.values().filter_map(ActiveTask::running)
    }

    fn close_task(&mut self, task: ActiveTask) {
        if let Some(job) = &task.job {
            job.cancel();
        }
        self.queries.close(task.id);
        if let Some(open) = task.open {
            if let Some(workers) = open.workers() {
                // What is in flight is dropped with them.
                let mut last = AppStats::default();
                workers.tell(&mut last);
                self.stats.workers = self.stats.workers.and(&last.workers);
                self.stats.workers.late += workers.running() as u64;
            }
            self.staged = self.staged.saturating_sub(open.staged);
            open.stores.close(self.definition);
        }
        self.standbys.release(task.id);
        self.definition.listener.task_changed(task.id, TaskState::Closed);
    }
}

/// The task of a source partition.
fn task_of(partition: &TopicPartition) -> TaskId {
    TaskId::new(0, partition.partition().unsigned_abs())
}

/// What an error of the consumer comes to. The client mends most of them itself and only tells.
fn poll_failed(source: &SourceConsumer, error: KafkaError) -> Result<(), End> {
    let fatal = matches!(error, KafkaError::MessageConsumptionFatal(_));
    let code = error.rdkafka_error_code();
    let told = source.explain(error);
    match code {
        _ if fatal => Err(End::Rejoin(told)),
        Some(
            RDKafkaErrorCode::AutoOffsetReset
            | RDKafkaErrorCode::OffsetOutOfRange
            | RDKafkaErrorCode::TopicAuthorizationFailed
            | RDKafkaErrorCode::GroupAuthorizationFailed,
        ) => Err(End::Fail(told)),
        _ => {
            tracing::warn!(error = %told, "the client goes on after an error");
            Ok(())
        }
    }
}
