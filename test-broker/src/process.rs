//! A child process with a thread of its own.
//!
//! The thread that starts the child also waits for it and sends its signals. So a signal never reaches a stranger who
//! got the process id after the child's end; and since the kernel ties the child to the *thread* that started it, the
//! child lives on when the test that wanted it runs on a thread that ends.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// How often the child is looked at.
const PAUSE: Duration = Duration::from_millis(10);

/// A running child process, killed and reaped on drop.
#[derive(Debug)]
pub(crate) struct Process {
    id: u32,
    signals: Sender<Signal>,
    keeper: Option<JoinHandle<io::Result<ExitStatus>>>,
}

impl Process {
    /// Starts `command` in a process group of its own, so that a Ctrl-C meant for the parent does not reach it.
    pub(crate) fn spawn(mut command: Command) -> io::Result<Self> {
        let (started, outcome) = mpsc::channel();
        let (signals, orders) = mpsc::channel();
        command.process_group(0);
        let keeper = thread::Builder::new().name("process-keeper".to_owned()).spawn(move || {
            let child = match command.spawn() {
                Ok(child) => child,
                Err(error) => {
                    let kind = error.kind();
                    // The other side waits for exactly this message; it cannot be gone.
                    let _ = started.send(Err(error));
                    return Err(kind.into());
                }
            };
            let _ = started.send(Ok(child.id()));
            keep(child, &orders)
        })?;
        let id = outcome.recv().map_err(|_| io::Error::other("the thread that starts the process ended"))??;
        Ok(Self { id, signals, keeper: Some(keeper) })
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.keeper.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the end. `None` when it has not come after `patience`.
    pub(crate) fn wait(&mut self, patience: Duration) -> Option<io::Result<ExitStatus>> {
        let deadline = Instant::now() + patience;
        while !self.has_ended() {
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(PAUSE);
        }
        let ended = self.keeper.take()?.join();
        Some(ended.unwrap_or_else(|_| Err(io::Error::other("the thread that kept the process panicked"))))
    }

    /// SIGTERM, and SIGKILL to what is still there after `patience`.
    pub(crate) fn terminate(&mut self, patience: Duration) {
        let _ = self.signals.send(Signal::TERM);
        if self.wait(patience).is_none() {
            self.kill();
        }
    }

    /// SIGKILL. Returns when the process is gone.
    pub(crate) fn kill(&mut self) {
        let _ = self.signals.send(Signal::KILL);
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Carries out `orders` until the child has ended. Without anyone left to give orders, it is killed.
fn keep(mut child: Child, orders: &Receiver<Signal>) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let signal = match orders.recv_timeout(PAUSE) {
            Ok(signal) => signal,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => Signal::KILL,
        };
        // Not reaped yet, so the id is still the child's; a child that ended this moment does not mind.
        let _ = rustix::process::kill_process(Pid::from_child(&child), signal);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;
    use std::time::Duration;

    use super::Process;

    fn sleeper() -> Process {
        let mut command = Command::new("sleep");
        command.arg("600");
        Process::spawn(command).unwrap()
    }

    #[test]
    fn a_dropped_process_is_gone() {
        let process = sleeper();
        let entry = format!("/proc/{}", process.id());
        assert!(Path::new(&entry).exists());
        drop(process);
        assert!(!Path::new(&entry).exists());
    }

    #[test]
    fn a_process_outlives_the_thread_that_wanted_it() {
        let mut process = std::thread::spawn(sleeper).join().unwrap();
        assert!(process.wait(Duration::from_millis(50)).is_none());
        process.terminate(Duration::from_secs(10));
        assert!(process.has_ended());
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let error = Process::spawn(Command::new("/no/such/program")).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    }
}
