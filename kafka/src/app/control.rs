use std::{
    fmt,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use kstate_api::{Error, ErrorKind, Result};

#[cfg(feature = "metrics")]
use super::metrics::Metrics;
use super::{AppState, AppStats, Listener};

/// What the threads of an app tell each other.
pub(crate) struct Control {
    stopping: AtomicBool,
    paused: AtomicBool,
    checkpoint_requests: AtomicU64,
    threads: usize,
    inner: Mutex<Inner>,
    changed: Condvar,
    listener: Arc<dyn Listener>,
    #[cfg(feature = "metrics")]
    metrics: Metrics,
}

struct Inner {
    workers: Vec<WorkerState>,
    /// Of each thread, and of the standbys at the end.
    stats: Vec<AppStats>,
    state: AppState,
    failure: Option<Error>,
}

/// What one thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkerState {
    Joining,
    Restoring,
    Running,
    Ended,
}

impl Control {
    pub(crate) fn new(threads: usize, listener: Arc<dyn Listener>) -> Self {
        let inner = Inner {
            workers: vec![WorkerState::Joining; threads],
            stats: vec![AppStats::default(); threads + 1],
            state: AppState::Joining,
            failure: None,
        };
        Self {
            stopping: AtomicBool::new(false),
            paused: AtomicBool::new(false),
            checkpoint_requests: AtomicU64::new(0),
            threads,
            inner: Mutex::new(inner),
            changed: Condvar::new(),
            listener,
            #[cfg(feature = "metrics")]
            metrics: Metrics::default(),
        }
    }

    /// What the threads tell goes there too.
    #[cfg(feature = "metrics")]
    pub(crate) fn with_metrics(self, metrics: Metrics) -> Self {
        Self { metrics, ..self }
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.update(|_| {});
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// # Errors
    /// `Aborted` once the app is to stop.
    pub(crate) fn check_running(&self) -> Result<()> {
        if self.is_stopping() {
            return Err(Error::new(ErrorKind::Aborted, "the app stops"));
        }
        Ok(())
    }

    pub(crate) fn set_paused(&self, paused: bool) {
        self.paused.store(paused, Ordering::Release);
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }

    pub(crate) fn request_checkpoint(&self) {
        self.checkpoint_requests.fetch_add(1, Ordering::AcqRel);
    }

    /// How many checkpoints were asked for so far. One answers all that came before it.
    pub(crate) fn checkpoint_requests(&self) -> u64 {
        self.checkpoint_requests.load(Ordering::Acquire)
    }

    /// A thread ends with an error: the others stop.
    pub(crate) fn fail(&self, error: Error) {
        tracing::error!(%error, "the app ends");
        {
            let mut inner = self.inner();
            inner.failure = inner.failure.take().or(Some(error));
        }
        self.stop();
    }

    pub(crate) fn worker_changed(&self, thread: usize, state: WorkerState) {
        self.update(|inner| {
            if let Some(worker) = inner.workers.get_mut(thread) {
                *worker = state;
            }
        });
    }

    /// What `thread` has done by now, in all its sessions.
    pub(crate) fn tell_stats(&self, thread: usize, stats: AppStats) {
        #[cfg(feature = "metrics")]
        self.metrics.tell(thread, &self.stats_of(thread), &stats);
        if let Some(told) = self.inner().stats.get_mut(thread) {
            *told = stats;
        }
    }

    /// A checkpoint of `thread` took so long.
    #[cfg(feature = "metrics")]
    pub(crate) fn checkpointed(&self, thread: usize, elapsed: Duration) {
        self.metrics.checkpointed(thread, elapsed);
    }

    /// What was done for the standbys by now.
    pub(crate) fn tell_standby_stats(&self, stats: AppStats) {
        self.tell_stats(self.threads, stats);
    }

    /// `thread` begins anew.
    pub(crate) fn restarts(&self, thread: usize) {
        let stats = self.stats_of(thread);
        self.tell_stats(thread, AppStats { restarts: stats.restarts + 1, ..stats });
    }

    /// What `thread` has told.
    pub(crate) fn stats_of(&self, thread: usize) -> AppStats {
        self.inner().stats.get(thread).copied().unwrap_or_default()
    }

    pub(crate) fn stats(&self) -> AppStats {
        self.inner().stats.iter().fold(AppStats::default(), AppStats::and)
    }

    pub(crate) fn state(&self) -> AppState {
        self.inner().state
    }

    /// What has ended the app, once.
    pub(crate) fn take_failure(&self) -> Option<Error> {
        self.inner().failure.take()
    }

    /// Waits until the app is in `state` or has ended; tells the state then.
    pub(crate) fn wait_for(&self, state: AppState, timeout: Duration) -> AppState {
        let deadline = Instant::now() + timeout;
        let mut inner = self.inner();
        while inner.state != state && !inner.state.has_ended() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            inner = self.changed.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        inner.state
    }

    /// Waits for `time`, or until the app is to stop.
    pub(crate) fn sleep(&self, time: Duration) {
        let deadline = Instant::now() + time;
        let mut inner = self.inner();
        while !self.is_stopping() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            inner = self.changed.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn update(&self, change: impl FnOnce(&mut Inner)) {
        let mut inner = self.inner();
        change(&mut inner);
        let from = inner.state;
        inner.state = self.derive(&inner);
        let to = inner.state;
        self.changed.notify_all();
        if from != to {
            // Told under the lock, so that changes are heard in their order.
            tracing::info!(?from, ?to, "the app's state has changed");
            self.listener.app_changed(from, to);
        }
    }

    fn derive(&self, inner: &Inner) -> AppState {
        if inner.state.has_ended() {
            return inner.state;
        }
        let any = |state| inner.workers.contains(&state);
        if inner.workers.iter().all(|worker| *worker == WorkerState::Ended) {
            return if inner.failure.is_some() { AppState::Failed } else { AppState::Stopped };
        }
        if self.is_stopping() {
            AppState::Stopping
        } else if any(WorkerState::Joining) {
            AppState::Joining
        } else if any(WorkerState::Restoring) {
            AppState::Restoring
        } else {
            AppState::Running
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // A listener that panics leaves the state as it was told.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("state", &self.state()).finish_non_exhaustive()
    }
}
