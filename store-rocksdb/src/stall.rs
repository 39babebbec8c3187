//! Waiting while the engine has no room for a write, but not for ever.
//!
//! The engine stops writes while its buffers are full and not yet in tables. On a full disk they never get there: it
//! would wait, and the caller with it, until somebody makes room.

use std::{
    thread,
    time::{Duration, Instant},
};

use kstate_api::{Error, ErrorKind, Result};
use rocksdb::{WriteBatch, WriteOptions};

use crate::engine::Engine;

/// How long an engine that has met an error in the background may hold up a write before the write fails.
const PATIENCE: Duration = Duration::from_secs(5);
const SHORTEST_NAP: Duration = Duration::from_millis(1);
/// Long enough for an engine that only slows writes down to let the next one pass.
const LONGEST_NAP: Duration = Duration::from_millis(128);

/// Writes what `rows` makes, as soon as the engine has room for it.
///
/// # Errors
/// That of `rows`; `DiskFull` or `Io` if the engine does not come to have room. Nothing was written then. In the result
/// inside, what became of the write itself.
pub(crate) fn write(
    engine: &Engine,
    options: &WriteOptions,
    rows: impl Fn() -> Result<WriteBatch>,
) -> Result<std::result::Result<(), rocksdb::Error>> {
    let mut stall = Stall::new();
    loop {
        match engine.write(rows()?, options) {
            // Refused before anything was done.
            Err(error) if error.kind() == rocksdb::ErrorKind::Incomplete => stall.wait(engine)?,
            written => return Ok(written),
        }
    }
}

/// One write's wait for room.
struct Stall {
    since: Option<Instant>,
    nap: Duration,
}

impl Stall {
    const fn new() -> Self {
        Self { since: None, nap: SHORTEST_NAP }
    }

    /// Waits a moment after the engine has refused a write for want of room.
    ///
    /// # Errors
    /// `DiskFull` or `Io` if the engine cannot make room: it has met an error in the background, and time is up.
    fn wait(&mut self, engine: &Engine) -> Result<()> {
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() > PATIENCE && engine.background_errors()? > 0 {
            let (kind, why) = if engine.disk_is_full() {
                (ErrorKind::DiskFull, "the disk is full")
            } else {
                (ErrorKind::Io, "it met an error in the background")
            };
            return Err(Error::new(kind, format!("the engine takes no writes: {why}")));
        }
        thread::sleep(self.nap);
        self.nap = (self.nap * 2).min(LONGEST_NAP);
        Ok(())
    }
}
