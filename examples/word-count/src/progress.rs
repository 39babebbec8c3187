use std::{
    io::{self, IsTerminal as _},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A progress bar on standard error if that is a terminal, and nothing otherwise.
#[derive(Clone)]
pub(crate) struct Progress {
    bar: ProgressBar,
    fed: Arc<AtomicU64>,
}

impl Progress {
    /// Shows how many bytes of an input of `bytes` were fed.
    pub(crate) fn new(bytes: Option<u64>) -> Self {
        let target =
            if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(bytes, target);
        let template = if bytes.is_some() {
            "{bar:40} {bytes} of {total_bytes}, {bytes_per_sec} {msg}"
        } else {
            "{spinner} {bytes}, {bytes_per_sec} {msg}"
        };
        // The template is ours, and a test sees that it is well-formed.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(100));
        }
        Self { bar, fed: Arc::default() }
    }

    /// Where the feeder counts the bytes.
    pub(crate) fn fed(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.fed)
    }

    /// Shows how far it is by now.
    pub(crate) fn refresh(&self) {
        self.bar.set_position(self.fed.load(Ordering::Relaxed));
    }

    /// Writes a line to standard error, above the bar if there is one.
    pub(crate) fn line(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
