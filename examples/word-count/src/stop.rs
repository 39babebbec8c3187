use std::{
    process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::failure::Failure;

/// How long one part of a wait is: a stop is noticed after it.
const TICK: Duration = Duration::from_millis(10);

/// Tells every thread of the program to end soon.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// A stop that Ctrl-C and SIGTERM request. Asked a second time, the program ends at once.
    pub(crate) fn on_signals() -> Result<Self, Failure> {
        let stop = Self::default();
        let handler = stop.clone();
        ctrlc::set_handler(move || {
            if handler.0.swap(true, Ordering::AcqRel) {
                process::exit(130);
            }
        })
        .map_err(|error| Failure::System { what: "cannot handle signals", source: std::io::Error::other(error) })?;
        Ok(stop)
    }

    pub(crate) fn request(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// An error if the program is to end.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.0.load(Ordering::Acquire) { Err(Failure::Stopped) } else { Ok(()) }
    }

    /// Waits for `time`.
    pub(crate) fn sleep(&self, time: Duration) -> Result<(), Failure> {
        let end = Instant::now() + time;
        loop {
            self.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(TICK));
        }
    }
}
