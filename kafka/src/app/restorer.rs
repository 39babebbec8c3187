use std::{
    collections::BTreeSet,
    fmt,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, Sender, TryRecvError, channel},
    },
    thread::{self, JoinHandle},
};

use kstate_api::{Error, ErrorKind, Position, Result, TaskId, TopicPartition};
use kstate_checkpoint::{LoggedStore, restore};

use crate::{ChangelogConsumer, SourceConsumer};

use super::{cancellable::Cancellable, definition::Definition};

/// A restore that has ended, what it has done by then, and how it ended.
type Ended = (Arc<Job>, RestoreWork, Result<()>);

/// Restores the tasks of one worker, one after the other, in a thread of its own: the worker goes on polling, so that
/// the group does not take it for dead.
pub(crate) struct Restorer {
    jobs: Option<Sender<Arc<Job>>>,
    ended: Receiver<Ended>,
    thread: Option<JoinHandle<()>>,
}

impl Restorer {
    pub(crate) fn start(definition: &Arc<Definition>) -> Result<Self> {
        let (jobs, queue) = channel::<Arc<Job>>();
        let (report, ended) = channel();
        let definition = Arc::clone(definition);
        let work = move || {
            let mut reader = None;
            for job in queue {
                if !job.begin() {
                    continue;
                }
                // Ended in any case: whoever cancels it waits for that.
                let end = EndOnDrop(&job);
                let mut done = RestoreWork::default();
                let result = restore_job(&definition, &job, &mut reader, &mut done);
                if result.is_err() {
                    // Made anew: what it was reading is unknown.
                    reader = None;
                }
                drop(end);
                if report.send((job, done, result)).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("kstate-restore".into()).spawn(work);
        let thread = thread.map_err(|error| Error::io("cannot start a thread to restore in", error))?;
        Ok(Self { jobs: Some(jobs), ended, thread: Some(thread) })
    }

    /// Restores `stores` of `task`, whose sources `source` reads.
    pub(crate) fn restore(&self, task: TaskId, stores: &[LoggedStore], source: &SourceConsumer) -> Result<Arc<Job>> {
        let job = Arc::new(Job {
            task,
            stores: stores.to_vec(),
            committed: source.committed().clone(),
            source_starts: source.uncommitted_starts().clone(),
            bare_offsets: source.bare_offsets().clone(),
            phase: Mutex::new(Phase::Queued),
            changed: Condvar::new(),
        });
        let sent = self.jobs.as_ref().map(|jobs| jobs.send(Arc::clone(&job)));
        if matches!(sent, Some(Ok(()))) {
            return Ok(job);
        }
        Err(thread_ended())
    }

    /// A restore that has ended, if one has.
    ///
    /// # Errors
    /// `Io` if there will be none any more.
    pub(crate) fn next_ended(&self) -> Result<Option<Ended>> {
        match self.ended.try_recv() {
            Ok(ended) => Ok(Some(ended)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(thread_ended()),
        }
    }
}

impl Drop for Restorer {
    fn drop(&mut self) {
        // Its jobs were cancelled with their tasks, so it ends at once.
        self.jobs = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that restores panicked");
        }
    }
}

impl fmt::Debug for Restorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Restorer").finish_non_exhaustive()
    }
}

/// What the restore of a task has done, in the stores that it has ended with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RestoreWork {
    /// How many records it applied.
    pub(crate) applied: u64,
    /// How many stores it wiped first.
    pub(crate) wiped: u64,
}

/// The restore of one task.
pub(crate) struct Job {
    task: TaskId,
    stores: Vec<LoggedStore>,
    committed: Position,
    source_starts: Position,
    bare_offsets: BTreeSet<TopicPartition>,
    phase: Mutex<Phase>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Queued,
    Working,
    /// Working still, but nobody wants it any more.
    Cancelled,
    Ended,
}

impl Job {
    /// Nobody wants it any more. Its stores are not touched after this returns.
    pub(crate) fn cancel(&self) {
        let mut phase = self.phase();
        match *phase {
            Phase::Queued => *phase = Phase::Ended,
            Phase::Working => *phase = Phase::Cancelled,
            Phase::Cancelled | Phase::Ended => {}
        }
        while *phase != Phase::Ended {
            phase = self.changed.wait(phase).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn begin(&self) -> bool {
        let mut phase = self.phase();
        let queued = *phase == Phase::Queued;
        if queued {
            *phase = Phase::Working;
        }
        queued
    }

    fn end(&self) {
        *self.phase() = Phase::Ended;
        self.changed.notify_all();
    }

    fn check(&self) -> Result<()> {
        if *self.phase() == Phase::Cancelled {
            return Err(Error::new(ErrorKind::Aborted, format!("task {} is not wanted here any more", self.task)));
        }
        Ok(())
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        // Every change is one assignment.
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct EndOnDrop<'j>(&'j Job);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("task", &self.task).field("phase", &*self.phase()).finish_non_exhaustive()
    }
}

fn thread_ended() -> Error {
    Error::new(ErrorKind::Io, "the thread that restores has ended")
}

fn restore_job(
    definition: &Definition,
    job: &Job,
    reader: &mut Option<ChangelogConsumer>,
    done: &mut RestoreWork,
) -> Result<()> {
    let consumer = match reader {
        Some(consumer) => consumer,
        None => reader.insert(definition.changelog_reader()?),
    };
    let options =
        definition.restore_options().source_starts(job.source_starts.clone()).bare_offsets(job.bare_offsets.clone());
    for logged in &job.stores {
        let mut reader = Cancellable::new(consumer, || job.check());
        let mut progress = |progress| definition.listener.restore_progressed(job.task, logged.store().name(), progress);
        let restored = restore(logged, &job.committed, &mut reader, &options, &mut progress)?;
        done.applied += restored.applied;
        done.wiped += u64::from(restored.wiped.is_some());
        definition.listener.restored(job.task, logged.store().name(), &restored);
    }
    Ok(())
}
