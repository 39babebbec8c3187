//! Runs a program: its output is passed on line by line while it runs.

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::Pid;

use crate::failure::{Failure, Result};
use crate::interrupt;

/// Runs `command` and passes its standard output on; each line is shown to `read` too. Its failure is ours.
pub(crate) fn run(command: Command, read: impl FnMut(&str)) -> Result<()> {
    watched(command, &mut io::stdout().lock(), read)
}

/// Runs `command` and shows each line of its standard output to `read`, and to nobody else. Its failure is ours.
pub(crate) fn watch(command: Command, read: impl FnMut(&str)) -> Result<()> {
    watched(command, &mut io::sink(), read)
}

fn watched(mut command: Command, stdout: &mut impl Write, mut read: impl FnMut(&str)) -> Result<()> {
    let shown = shown(&command);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let (mut child, output) = start(command, &shown)?;
    let passed_on = output.map_or(Ok(()), |output| pass_on(output, stdout, &mut read));
    let status = reap(&mut child).map_err(|error| Failure::because(&shown, error))?;
    passed_on.map_err(|error| Failure::because(format!("the output of `{shown}`"), error))?;
    judge(status, &shown)
}

/// Runs `command` silently, but for its standard error, and returns its standard output.
pub(crate) fn capture(mut command: Command) -> Result<String> {
    let shown = shown(&command);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let (mut child, output) = start(command, &shown)?;
    let mut bytes = Vec::new();
    let read = output.map_or(Ok(0), |mut output| output.read_to_end(&mut bytes));
    let status = reap(&mut child).map_err(|error| Failure::because(&shown, error))?;
    read.map_err(|error| Failure::because(format!("the output of `{shown}`"), error))?;
    judge(status, &shown)?;
    String::from_utf8(bytes).map_err(|error| Failure::because(format!("the output of `{shown}`"), error))
}

/// Whether `command` can be run and succeeds; nothing of it is shown.
pub(crate) fn succeeds(mut command: Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    start(command, "").is_ok_and(|(mut child, _)| reap(&mut child).is_ok_and(|status| status.success()))
}

/// In a process group of its own, so that a signal can be given to all of it: to cargo and the test programs below it.
fn start(mut command: Command, shown: &str) -> Result<(Child, Option<impl Read + use<>>)> {
    let mut running = interrupt::running();
    if interrupt::asked_to_end() {
        return Err(Failure::new("interrupted"));
    }
    let mut child =
        command.process_group(0).spawn().map_err(|error| Failure::because(format!("cannot run `{shown}`"), error))?;
    *running = Some(Pid::from_child(&child));
    let output = child.stdout.take();
    Ok((child, output))
}

fn reap(child: &mut Child) -> io::Result<ExitStatus> {
    loop {
        let mut running = interrupt::running();
        if let Some(status) = child.try_wait()? {
            *running = None;
            return Ok(status);
        }
        drop(running);
        thread::sleep(Duration::from_millis(10));
    }
}

fn pass_on(output: impl Read, stdout: &mut impl Write, read: &mut impl FnMut(&str)) -> io::Result<()> {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line)? > 0 {
        stdout.write_all(&line)?;
        stdout.flush()?;
        read(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(())
}

fn judge(status: ExitStatus, shown: &str) -> Result<()> {
    if interrupt::asked_to_end() {
        Err(Failure::new(format!("interrupted while `{shown}` ran")))
    } else if status.success() {
        Ok(())
    } else {
        Err(Failure::new(format!("`{shown}` ended with {status}")))
    }
}

/// The command as a person would type it, without the settings every cargo call here has.
fn shown(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let name = program.rsplit('/').next().unwrap_or_default().to_owned();
    let mut words = vec![name];
    let mut arguments = command.get_args();
    while let Some(argument) = arguments.next() {
        if argument == "--config" {
            arguments.next();
        } else {
            words.push(argument.to_string_lossy().into_owned());
        }
    }
    words.join(" ")
}
