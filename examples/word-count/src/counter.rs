use std::{mem, sync::Arc, time::Duration};

use kstate_api::{ErrorKind, TaskId};
use kstate_checkpoint::LogRetention;
use kstate_kafka::app::{App, Processor, Queries, RunningApp};

use crate::{
    failure::Failure,
    feeder::CHUNK_BYTES,
    job::{Job, Membership},
    merge::{MergedCounts, SortedCounts},
    orders::Orders,
    protocol::Event,
    state_dir::look_at_stores,
    stop::Stop,
    stores::{STORE, supplier},
    tally::Tally,
    task_counts::{StoreCounts, TaskCounts},
    teller::{Emit, Teller},
};

/// How often to look whether something has changed.
const TICK: Duration = Duration::from_millis(10);
/// About how many bytes of counts go into one event.
const COUNTS_BYTES: usize = 64 << 10;

/// How far the feeder may be ahead in each partition of an embedded cluster, in bytes: less than a partition keeps.
pub(crate) const EMBEDDED_WINDOW_BYTES: u64 = 4 << 20;
/// The same for a real cluster.
pub(crate) const WINDOW_BYTES: u64 = 64 << 20;

/// Counts the words of the source topic, one task for each partition, until the orders say that it is enough.
///
/// # Errors
/// [`Failure::Stopped`] as soon as `stop` is requested; else what the broker or a store met.
pub(crate) fn count(job: &Job, orders: &Orders, stop: &Stop, emit: &Emit) -> Result<(), Failure> {
    let tally = Arc::new(Tally::new(job.names.clone()));
    let app = start(job, &tally, emit)?;
    let last = wait(&app, &tally, orders, stop, emit)?;
    app.stop_handle().stop();
    app.join().map_err(|error| failure(job, error))?;
    emit(last)
}

/// The whole app: a source, a store, and what happens to each record.
fn start(job: &Job, tally: &Arc<Tally>, emit: &Emit) -> Result<RunningApp, Failure> {
    let supplier = supplier(job)?;
    look_at_stores(job, &*supplier)?;
    let limits = Limits::of(job);
    let app = App::new(&job.cluster(), job.names.group.as_str(), &job.state_dir)
        .directory_name(job.directory_name())
        .source(job.names.source.as_str())
        .store(supplier)
        .threads(job.threads)
        .guarantee(job.guarantee())
        .standbys(job.standby)
        .commit_interval(job.commit_interval)
        .max_records_per_checkpoint(limits.records)
        .max_uncommitted_bytes(limits.uncommitted_bytes)
        .listener(Teller::new(job, Arc::clone(tally), Arc::clone(emit))?);
    let app = match job.membership() {
        Membership::Alone => app.alone(),
        Membership::Static => app.instance_id(job.directory_name()),
        Membership::Dynamic => app,
    };

    let tally = Arc::clone(tally);
    let processor = move |task: TaskId| -> Box<dyn Processor> {
        tally.taken_back(task);
        Box::new(TaskCounts::new(Arc::clone(&tally)))
    };
    app.start_with(processor).map_err(|error| match error.kind() {
        ErrorKind::Locked => Failure::StateDirInUse(job.state_dir.clone().into()),
        _ => failure(job, error),
    })
}

/// Waits until nothing is left to do here, or the app has ended; what is to be told then.
fn wait(app: &RunningApp, tally: &Tally, orders: &Orders, stop: &Stop, emit: &Emit) -> Result<Event, Failure> {
    let mut counting = false;
    loop {
        stop.sleep(TICK)?;
        if orders.is_to_leave() || app.state().has_ended() {
            return Ok(Event::Left);
        }
        if !counting && tally.has_counted() {
            counting = true;
            emit(Event::Counting)?;
        }
        let Some(ends) = orders.ends() else { continue };
        if tally.wants_checkpoint(ends) {
            app.request_checkpoint();
        }
        if tally.is_done(ends) && app.queries().tasks().len() == ends.len() {
            tell_counts(&app.queries(), stop, emit)?;
            return Ok(Event::Finished);
        }
    }
}

fn tell_counts(queries: &Queries, stop: &Stop, emit: &Emit) -> Result<(), Failure> {
    let mut sources: Vec<Box<dyn SortedCounts>> = Vec::new();
    for (_task, snapshot) in queries.snapshots(STORE)? {
        sources.push(Box::new(StoreCounts::new(&*snapshot)?));
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

fn failure(job: &Job, error: kstate_api::Error) -> Failure {
    let log_too_short =
        error.kind() == ErrorKind::Unsupported && job.cluster().log_retention() == LogRetention::DropsOldest;
    if log_too_short { Failure::EmbeddedLogTooShort { source: error } } else { error.into() }
}

/// What may gather in one thread between two checkpoints.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Bytes of staged counts.
    uncommitted_bytes: u64,
    /// Chunks of text.
    records: u64,
}

impl Limits {
    /// The feeder waits for the commit of what it is ahead; half of that is to be counted meanwhile.
    fn of(job: &Job) -> Self {
        let chunk = CHUNK_BYTES as u64;
        if job.embedded {
            // A checkpoint's records have to fit into the 5 MiB of a changelog's partition.
            return Self { uncommitted_bytes: 3 << 20, records: EMBEDDED_WINDOW_BYTES / 2 / chunk };
        }
        let threads = u64::try_from(job.threads.get()).unwrap_or(u64::MAX);
        Self { uncommitted_bytes: ((64 << 20) / threads).max(1 << 20), records: WINDOW_BYTES / 2 / chunk }
    }
}
