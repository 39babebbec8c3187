//! Processes that a case starts in order to kill them: this very program, told to run the same test again.

use std::{
    env, fs,
    io::{self, BufRead, BufReader, Write},
    path::PathBuf,
    process::{self, Child, Command, Stdio},
    sync::{
        PoisonError, RwLock,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::{Ctx, Violation};

/// The variable that names the case which a child runs.
pub(crate) const CASE: &str = "KSTATE_CONFORMANCE_CASE";
/// The variable that names the directory of that case.
const DIRECTORY: &str = "KSTATE_CONFORMANCE_DIRECTORY";
/// Begins each line from child to parent; everything else on standard output is the test harness's.
const MARK: &str = "kstate-conformance: ";
/// A child that says nothing for that long is stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// Keeps opens apart from the start of children. Between fork and exec a child has a copy of every file descriptor of
/// this process, and with it the locks of stores that other tests have open: one that is closed and opened again just
/// then would be `Locked`.
static STARTING: RwLock<()> = RwLock::new(());

/// Runs `open` while no child is being started.
pub(crate) fn apart_from_starts<T>(open: impl FnOnce() -> T) -> T {
    let _apart = STARTING.read().unwrap_or_else(PoisonError::into_inner);
    open()
}

/// In a child: the case and the directory it was started for.
pub(crate) fn role() -> Option<(String, PathBuf)> {
    Some((env::var(CASE).ok()?, env::var_os(DIRECTORY)?.into()))
}

/// In a child: tells the parent `message`, and ends the process if there is no parent any more.
pub(crate) fn tell(message: &str) {
    let mut out = io::stdout().lock();
    // The test harness does not end its own line before it runs the test.
    if writeln!(out, "\n{MARK}{message}").and_then(|()| out.flush()).is_err() {
        process::exit(1);
    }
}

/// In a child: waits to be killed, and ends the process if there is no parent any more.
pub(crate) fn wait_to_be_killed() -> ! {
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    process::exit(1)
}

/// A process that a case started.
pub(crate) struct ChildProcess {
    child: Child,
    messages: Receiver<String>,
    reader: Option<JoinHandle<()>>,
    errors: PathBuf,
}

pub(crate) fn spawn(ctx: &Ctx) -> Result<ChildProcess, Violation> {
    let respawn = ctx.respawn.as_ref().ok_or_else(|| {
        Violation::new("the case has to start this program again: drive it through `Suite::respawned_by`")
    })?;
    let errors = ctx.root().join("child-errors");
    let mut command = Command::new(env::current_exe()?);
    command
        .args([&*respawn.test, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"])
        .env(CASE, ctx.case.name)
        .env(DIRECTORY, ctx.root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(fs::File::create(&errors)?);
    let (child, out) = {
        let _alone = STARTING.write().unwrap_or_else(PoisonError::into_inner);
        let mut child = command.spawn()?;
        let mut out = child.stdout.take().map(BufReader::new);
        // The file descriptors are closed a little after `spawn` returns: the child's first word comes later still.
        if let Some(out) = &mut out {
            out.read_until(b'\n', &mut Vec::new())?;
        }
        (child, out)
    };
    let (sender, messages) = mpsc::channel();
    let reader = out.map(|out| {
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if let Some(message) = line.strip_prefix(MARK)
                    && sender.send(message.to_owned()).is_err()
                {
                    return;
                }
            }
        })
    });
    Ok(ChildProcess { child, messages, reader, errors })
}

impl ChildProcess {
    /// The next message of the child.
    pub(crate) fn next_message(&self) -> Result<String, Violation> {
        self.messages.recv_timeout(PATIENCE).map_err(|error| match error {
            RecvTimeoutError::Timeout => Violation::new(format!("the child said nothing for {} s", PATIENCE.as_secs())),
            RecvTimeoutError::Disconnected => {
                Violation::new(format!("the child ended by itself; it said: {}", self.errors()))
            }
        })
    }

    fn errors(&self) -> String {
        let errors = fs::read_to_string(&self.errors).unwrap_or_default();
        if errors.trim().is_empty() {
            "nothing (does the test's name match its path?)".into()
        } else {
            errors.trim().replace('\n', " | ")
        }
    }

    /// Kills the child (SIGKILL on Unix), and returns what it had said but nobody had read.
    pub(crate) fn kill(mut self) -> Result<Vec<String>, Violation> {
        self.end()?;
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        Ok(self.messages.try_iter().collect())
    }

    fn end(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // After `kill` there is nothing to end any more.
        let _ = self.end();
    }
}
