use std::{
    fmt,
    sync::Arc,
    thread::{Builder, JoinHandle},
    time::Duration,
};

use kstate_api::{Error, ErrorKind, Result};
use kstate_offset_cache::OffsetCache;

#[cfg(feature = "metrics")]
use super::metrics::Metrics;
use super::{
    AppState, AppStats, Queries, control::Control, definition::Definition, standby_keeper, standbys::Standbys, worker,
};

/// An app at work. Dropping it stops it and waits, as [`join`](Self::join) does after a [`Stop`].
///
/// ```no_run
/// use std::time::Duration;
/// use kstate_kafka::app::{AppState, RunningApp};
///
/// fn pause_for_a_while(app: &RunningApp) {
///     app.pause();
///     std::thread::sleep(Duration::from_secs(60));
///     app.resume();
///     app.wait_for(AppState::Running, Duration::from_secs(10));
/// }
/// ```
pub struct RunningApp {
    definition: Arc<Definition>,
    control: Arc<Control>,
    queries: Queries,
    threads: Vec<JoinHandle<()>>,
}

impl RunningApp {
    pub(crate) fn start(definition: Definition, threads: usize, standbys: bool) -> Result<Self> {
        let definition = Arc::new(definition);
        let control = Control::new(threads, Arc::clone(&definition.listener));
        #[cfg(feature = "metrics")]
        let control = control.with_metrics(Metrics::register(&definition.id, threads, standbys));
        let control = Arc::new(control);
        let queries = Queries::new(definition.stores().map(|(supplier, _)| supplier.name().to_owned()).collect());
        let mut app = Self { definition, control, queries, threads: Vec::with_capacity(threads + 1) };
        let copies = Arc::new(Standbys::default());
        for thread in 0..threads {
            let (definition, control) = (Arc::clone(&app.definition), Arc::clone(&app.control));
            let (queries, copies) = (app.queries.clone(), Arc::clone(&copies));
            app.spawn(format!("kstate-{thread}"), move || {
                worker::run(&definition, &control, &queries, &copies, thread);
            })?;
        }
        if standbys {
            let (definition, control) = (Arc::clone(&app.definition), Arc::clone(&app.control));
            app.spawn("kstate-standbys".into(), move || standby_keeper::run(&definition, &copies, &control))?;
        }
        Ok(app)
    }

    /// Those that run are stopped when the app is dropped.
    fn spawn(&mut self, name: String, work: impl FnOnce() + Send + 'static) -> Result<()> {
        let started = Builder::new().name(name).spawn(work);
        self.threads.push(started.map_err(|error| Error::io("cannot start a thread of the app", error))?);
        Ok(())
    }

    /// What it is doing.
    #[must_use]
    pub fn state(&self) -> AppState {
        self.control.state()
    }

    /// What it has done by now. The numbers are at most a moment old.
    #[must_use]
    pub fn stats(&self) -> AppStats {
        self.control.stats()
    }

    /// Waits until it is in `state`, but no longer than `timeout` and not once it has ended; tells the state then.
    #[allow(clippy::must_use_candidate, reason = "whoever waits may not care how it ended")]
    pub fn wait_for(&self, state: AppState, timeout: Duration) -> AppState {
        self.control.wait_for(state, timeout)
    }

    /// What stops it, from any thread or a signal handler's.
    #[must_use]
    pub fn stop_handle(&self) -> Stop {
        Stop(Arc::clone(&self.control))
    }

    /// Takes in no more records until [`resume`](Self::resume). It stays in its group, and what was processed is
    /// committed in time.
    pub fn pause(&self) {
        self.control.set_paused(true);
    }

    /// Takes in records again.
    pub fn resume(&self) {
        self.control.set_paused(false);
    }

    /// Whether it is paused.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.control.is_paused()
    }

    /// Asks every thread for a checkpoint as soon as it is between two records, without waiting for it: when somebody
    /// waits for what was processed, say, and the commit interval is long.
    pub fn request_checkpoint(&self) {
        self.control.request_checkpoint();
    }

    /// Reads what its stores have committed, from any thread, for as long as you like.
    #[must_use]
    pub fn queries(&self) -> Queries {
        self.queries.clone()
    }

    /// How far the stores of the tasks are, those that run here and those that only have a directory here.
    #[must_use]
    pub fn offsets(&self) -> &OffsetCache {
        &self.definition.cache
    }

    /// Waits until it has ended: somebody has [stopped](Stop::stop) it, or it has failed.
    ///
    /// # Errors
    /// What it has failed with.
    pub fn join(mut self) -> Result<()> {
        self.end();
        self.control.take_failure().map_or(Ok(()), Err)
    }

    fn end(&mut self) {
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                self.control.fail(Error::new(ErrorKind::Io, "a thread of the app panicked"));
            }
        }
    }
}

impl Drop for RunningApp {
    fn drop(&mut self) {
        self.control.stop();
        self.end();
        if let Some(error) = self.control.take_failure() {
            tracing::error!(%error, "the app had failed, and nobody asked");
        }
    }
}

impl fmt::Debug for RunningApp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningApp")
            .field("id", &self.definition.id)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

/// Stops an app. Clones stop the same.
///
/// ```no_run
/// use kstate_kafka::app::RunningApp;
///
/// fn stop_on_signals(app: &RunningApp) {
///     let stop = app.stop_handle();
///     // With the signal crate of your choice:
///     # fn set_handler(_: impl FnMut()) {}
///     set_handler(move || stop.stop());
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Stop(Arc<Control>);

impl Stop {
    /// Tells the app to stop, and does not wait: it processes no further record, takes its last checkpoint, closes its
    /// stores and leaves its group. Told twice, it is the same.
    pub fn stop(&self) {
        self.0.stop();
    }
}
