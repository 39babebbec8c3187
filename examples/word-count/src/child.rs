use std::{
    collections::VecDeque,
    env,
    io::{self, BufRead as _, BufReader, Write as _},
    process::{self, Child, ChildStdin, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use crate::{
    counting_process::ARGUMENT,
    failure::Failure,
    job::Job,
    protocol::{Command, Event},
};

/// How many of the last lines a process wrote to standard error are kept to explain its end.
const LAST_LINES: usize = 5;
/// How many events may wait; a process that tells more waits for us.
const EVENTS: usize = 64;

/// A process that counts, seen from the one that feeds.
pub(crate) struct CountingChild {
    child: Child,
    commands: ChildStdin,
    events: Receiver<Event>,
    last_lines: Arc<Mutex<VecDeque<String>>>,
}

impl CountingChild {
    /// Starts it on `job`.
    pub(crate) fn start(job: &Job) -> Result<Self, Failure> {
        let failure = |source| Failure::System { what: "cannot start the counting process", source };
        let mut command = process::Command::new(env::current_exe().map_err(failure)?);
        command.arg(ARGUMENT).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A Ctrl-C at the terminal is for the parent, which ends the child in its own way.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(failure)?;

        let missing = || failure(io::Error::other("it has no pipes"));
        let commands = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;
        let (sender, events) = sync_channel(EVENTS);
        let last_lines = Arc::new(Mutex::new(VecDeque::new()));
        let lines = Arc::clone(&last_lines);
        thread::spawn(move || read_events(BufReader::new(stdout), &sender));
        thread::spawn(move || read_lines(BufReader::new(stderr), &lines));
        let mut this = Self { child, commands, events, last_lines };
        this.tell(&Command::Count(job.clone()))?;
        Ok(this)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it tells next, if it does within `timeout`.
    pub(crate) fn next_event(&mut self, timeout: Duration) -> Result<Option<Event>, Failure> {
        use std::sync::mpsc::RecvTimeoutError;
        match self.events.recv_timeout(timeout) {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.unexpected_end()),
        }
    }

    /// Kills it with SIGKILL and returns what it had told before and nobody had heard.
    pub(crate) fn kill(&mut self) -> Result<Vec<Event>, Failure> {
        // One that ended by itself was not killed by us.
        if let Ok(Some(_)) = self.child.try_wait() {
            return Err(self.unexpected_end());
        }
        let failure = |source| Failure::System { what: "cannot kill the counting process", source };
        self.child.kill().map_err(failure)?;
        self.child.wait().map_err(failure)?;
        Ok(self.events.iter().collect())
    }

    pub(crate) fn tell(&mut self, command: &Command) -> Result<(), Failure> {
        let line = serde_json::to_string(command).map_err(io::Error::from);
        let told = line.and_then(|line| writeln!(self.commands, "{line}"));
        told.map_err(|source| match source.kind() {
            io::ErrorKind::BrokenPipe => self.unexpected_end(),
            _ => Failure::System { what: "cannot talk to the counting process", source },
        })
    }

    fn unexpected_end(&mut self) -> Failure {
        // What it said last explains more than how it ended.
        if let Some(sentence) = self.events.iter().find_map(|event| match event {
            Event::Failed(sentence) => Some(sentence),
            _ => None,
        }) {
            return Failure::Child(sentence);
        }
        let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        let lines = self.last_lines.lock().unwrap_or_else(PoisonError::into_inner);
        let last_words = lines.iter().map(String::as_str).collect::<Vec<_>>().join(" / ");
        Failure::ChildEnded { status, last_words }
    }
}

impl Drop for CountingChild {
    fn drop(&mut self) {
        // No process is left behind, whatever ends the parent's work.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_events(stdout: BufReader<impl io::Read>, events: &SyncSender<Event>) {
    for line in stdout.lines().map_while(Result::ok) {
        // A line that is cut short by a kill is no event.
        let Ok(event) = serde_json::from_str(&line) else { continue };
        if events.send(event).is_err() {
            return;
        }
    }
}

fn read_lines(stderr: BufReader<impl io::Read>, last_lines: &Mutex<VecDeque<String>>) {
    let forward = env::var_os("RUST_LOG").is_some();
    for line in stderr.lines().map_while(Result::ok) {
        if forward {
            eprintln!("{line}");
        }
        let mut lines = last_lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push_back(line);
        if lines.len() > LAST_LINES {
            lines.pop_front();
        }
    }
}
