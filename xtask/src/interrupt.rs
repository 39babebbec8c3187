//! Ctrl-C and SIGTERM: the running program is ended, and then this one cleans up and ends as after any failure.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::{Failure, Result};

/// What a shell reports for a program that Ctrl-C ended.
const INTERRUPTED_EXIT_CODE: i32 = 130;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// The process group of the program that runs now.
static RUNNING: Mutex<Option<Pid>> = Mutex::new(None);

/// Starts the thread that passes signals on. Without it they would end this program and leave its children running.
pub(crate) fn watch() -> Result<()> {
    let mut signals =
        Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(|error| Failure::because("cannot watch for signals", error))?;
    thread::spawn(move || {
        for _ in signals.forever() {
            let again = INTERRUPTED.swap(true, Ordering::SeqCst);
            match *running() {
                // It may have ended this moment; it is not reaped while the lock is held, so the id is still its own.
                Some(group) => {
                    let _ = kill_process_group(group, if again { Signal::KILL } else { Signal::TERM });
                }
                // No program to end, but something that takes long, such as the start of the broker, which dies with us.
                None if again => std::process::exit(INTERRUPTED_EXIT_CODE),
                None => {}
            }
        }
    });
    Ok(())
}

/// Whether a signal asked this program to end.
pub(crate) fn asked_to_end() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// The process group that gets the signals. Hold the lock while reaping its leader.
pub(crate) fn running() -> MutexGuard<'static, Option<Pid>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
