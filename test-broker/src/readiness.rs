//! When a broker may be used, and what it said when it may not.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::process::Process;

/// Logged when the node is registered, no longer fenced, and listening.
const STARTED: &str = "Kafka Server started";
const TAIL: usize = 40;
const PAUSE: Duration = Duration::from_millis(50);
const PATIENCE_PER_REQUEST: Duration = Duration::from_secs(5);

/// Returns when the broker says it is ready and answers a request; after `patience`, or when it ended, an error with
/// the last lines of its log.
pub(crate) fn wait(process: &Process, log: &Path, port: u16, patience: Duration) -> Result<()> {
    let deadline = Instant::now() + patience;
    loop {
        let said = read(log);
        if said.contains(STARTED) && answers(port).is_ok() {
            return Ok(());
        }
        if process.has_ended() {
            // What it wrote between the look at the log and its end matters most.
            let said = read(log);
            let what = format!("the Kafka broker ended while it started; its last lines:\n{}", tail(&said));
            return Err(if said.contains("Address already in use") {
                Error::port_taken(what)
            } else {
                Error::new(what)
            });
        }
        if Instant::now() >= deadline {
            let seconds = patience.as_secs();
            let lines = tail(&said);
            return Err(Error::new(format!(
                "the Kafka broker is not ready after {seconds} s; its last lines:\n{lines}"
            )));
        }
        thread::sleep(PAUSE);
    }
}

/// The end of a log file, however much of it there is.
pub(crate) fn log_tail(log: &Path) -> String {
    tail(&read(log))
}

fn read(log: &Path) -> String {
    fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

fn tail(said: &str) -> String {
    let skipped = said.lines().count().saturating_sub(TAIL);
    said.lines().skip(skipped).collect::<Vec<_>>().join("\n")
}

/// One `ApiVersions` request, version 0, and the head of its answer: the smallest proof that a Kafka broker serves there.
fn answers(port: u16) -> std::io::Result<()> {
    const CORRELATION: [u8; 4] = *b"kste";
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE_PER_REQUEST)?;
    stream.set_read_timeout(Some(PATIENCE_PER_REQUEST))?;
    stream.set_write_timeout(Some(PATIENCE_PER_REQUEST))?;
    let mut request = vec![0, 0, 0, 10, 0, 18, 0, 0];
    request.extend_from_slice(&CORRELATION);
    // No client id.
    request.extend_from_slice(&[0xFF, 0xFF]);
    stream.write_all(&request)?;
    let mut size = [0; 4];
    let mut correlation = [0; 4];
    let mut error_code = [0; 2];
    stream.read_exact(&mut size)?;
    stream.read_exact(&mut correlation)?;
    stream.read_exact(&mut error_code)?;
    if correlation == CORRELATION && error_code == [0, 0] {
        Ok(())
    } else {
        Err(std::io::Error::other("not the answer of a Kafka broker"))
    }
}

#[cfg(test)]
mod tests {
    use super::{TAIL, tail};

    #[test]
    fn a_tail_is_the_end() {
        assert_eq!(tail(""), "");
        assert_eq!(tail("a\nb\n"), "a\nb");
        let long = (0..100).map(|line| line.to_string()).collect::<Vec<_>>().join("\n");
        assert_eq!(tail(&long).lines().count(), TAIL);
        assert!(tail(&long).ends_with("99"));
    }
}
