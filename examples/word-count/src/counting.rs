use std::{
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::{
    counter::{Ends, count},
    failure::Failure,
    protocol::{Event, Job},
    stop::Stop,
    supervisor::Supervisor,
};

/// How many events may wait to be heard; the counter waits then.
const EVENTS: usize = 64;
/// How long a counter that is told to stop may take; it may be waiting for a broker.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where the counting is done.
pub(crate) enum Counting {
    /// In a thread of this process.
    Here(CountingThread),
    /// In another process, killed and started again.
    Supervised(Box<Supervisor>),
}

impl Counting {
    /// What is told next, if something is within `timeout`.
    pub(crate) fn next_event(&mut self, timeout: Duration) -> Result<Option<Event>, Failure> {
        match self {
            Self::Here(thread) => thread.next_event(timeout),
            Self::Supervised(supervisor) => supervisor.next_event(timeout),
        }
    }

    /// Tells that the source ends.
    pub(crate) fn end(&mut self, ends: Vec<i64>) -> Result<(), Failure> {
        match self {
            Self::Here(thread) => {
                // It is told once.
                let _ = thread.ends.set(ends);
                Ok(())
            }
            Self::Supervised(supervisor) => supervisor.end(ends),
        }
    }

    /// Ends it, once it is finished or its stop was requested.
    pub(crate) fn close(self) {
        match self {
            Self::Here(thread) => thread.wait(),
            // The process goes with it.
            Self::Supervised(supervisor) => drop(supervisor),
        }
    }

    /// How many times the counting was killed and started again.
    pub(crate) fn restarts(&self) -> u32 {
        match self {
            Self::Here(_) => 0,
            Self::Supervised(supervisor) => supervisor.restarts(),
        }
    }
}

/// A counter in a thread of its own.
pub(crate) struct CountingThread {
    events: Receiver<Result<Event, Failure>>,
    ends: Ends,
    thread: JoinHandle<()>,
}

impl CountingThread {
    /// Starts to count, until `stop` is requested.
    pub(crate) fn start(job: Job, stop: Stop) -> Self {
        let (sender, events) = sync_channel(EVENTS);
        let ends = Ends::default();
        let known_ends = Arc::clone(&ends);
        let thread = thread::spawn(move || {
            let mut tell = |event| sender.send(Ok(event)).map_err(|_| Failure::Stopped);
            if let Err(failure) = count(&job, &known_ends, &stop, &mut tell) {
                // If nobody listens, it ends because it was told to.
                let _ = sender.send(Err(failure));
            }
        });
        Self { events, ends, thread }
    }

    fn next_event(&self, timeout: Duration) -> Result<Option<Event>, Failure> {
        match self.events.recv_timeout(timeout) {
            Ok(event) => event.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Failure::Panicked("counting")),
        }
    }

    fn wait(self) {
        drop(self.events);
        let patience = Instant::now() + PATIENCE;
        while !self.thread.is_finished() && Instant::now() < patience {
            thread::sleep(Duration::from_millis(5));
        }
    }
}
