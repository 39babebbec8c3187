use std::{
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::{
    counter::count, failure::Failure, job::Job, orders::Orders, protocol::Event, stop::Stop, supervisor::Supervisor,
    teller::Emit,
};

/// How many events may wait to be heard; the counter waits then.
const EVENTS: usize = 64;
/// How long a counter that is told to stop may take; it may be waiting for a broker.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where the counting is done.
pub(crate) enum Counting {
    /// In a thread of this process.
    Here(CountingThread),
    /// In other processes, killed and started again.
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

    /// Whether all tasks are dealt out and restored.
    pub(crate) fn is_ready(&self) -> bool {
        match self {
            Self::Here(thread) => thread.running,
            Self::Supervised(supervisor) => supervisor.is_ready(),
        }
    }

    /// Tells that the source ends.
    pub(crate) fn end(&mut self, ends: Vec<i64>) {
        match self {
            Self::Here(thread) => thread.orders.end(ends),
            Self::Supervised(supervisor) => supervisor.end(ends),
        }
    }

    /// Ends it, once it is finished or its stop was requested.
    pub(crate) fn close(self) {
        match self {
            Self::Here(thread) => thread.wait(),
            // The processes go with it.
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
    orders: Orders,
    running: bool,
    thread: JoinHandle<()>,
}

impl CountingThread {
    /// Starts to count, until `stop` is requested.
    pub(crate) fn start(job: Job, stop: Stop) -> Self {
        let (sender, events) = sync_channel(EVENTS);
        let orders = Orders::default();
        let known_orders = orders.clone();
        let thread = thread::spawn(move || {
            let teller = sender.clone();
            let emit: Emit = Arc::new(move |event| teller.send(Ok(event)).map_err(|_| Failure::Stopped));
            if let Err(failure) = count(&job, &known_orders, &stop, &emit) {
                // If nobody listens, it ends because it was told to.
                let _ = sender.send(Err(failure));
            }
        });
        Self { events, orders, running: false, thread }
    }

    fn next_event(&mut self, timeout: Duration) -> Result<Option<Event>, Failure> {
        match self.events.recv_timeout(timeout) {
            Ok(Ok(Event::Running(running))) => {
                self.running = running;
                Ok(None)
            }
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
