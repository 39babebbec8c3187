//! What is logged meanwhile.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "shared by tests, which fail by panicking")]

use std::{cell::RefCell, io, sync::Once};

use tracing_subscriber::filter::LevelFilter;

thread_local! {
    static LINES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The events in this thread during `work`: a line for each, which begins with its level.
pub fn events_during(work: impl FnOnce()) -> Vec<String> {
    // One for all threads: where each has its own, what one of them first asks of an event holds for the others too.
    static SUBSCRIBER: Once = Once::new();
    SUBSCRIBER.call_once(|| {
        let lines = tracing_subscriber::fmt().without_time().with_ansi(false).with_target(false);
        lines.with_max_level(LevelFilter::TRACE).with_writer(|| ThreadsLines).init();
    });
    LINES.take();
    work();
    let text = String::from_utf8(LINES.take()).unwrap();
    text.lines().map(|line| line.trim_start().to_owned()).collect()
}

/// The warnings, and worse, in this thread during `work`.
pub fn warnings_during(work: impl FnOnce()) -> Vec<String> {
    let mut events = events_during(work);
    events.retain(|event| event.starts_with("WARN") || event.starts_with("ERROR"));
    events
}

struct ThreadsLines;

impl io::Write for ThreadsLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.with_borrow_mut(|lines| lines.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
