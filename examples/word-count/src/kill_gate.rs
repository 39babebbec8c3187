use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

/// What the feeder and whoever kills the counting process agree on: how far the input goes before each kill.
#[derive(Clone, Debug, Default)]
pub(crate) struct KillGate(Arc<State>);

#[derive(Debug, Default)]
struct State {
    due: AtomicU32,
    done: AtomicU32,
    ready: AtomicBool,
}

impl KillGate {
    /// The feeder has come to the place of the next kill, which is now due.
    pub(crate) fn make_due(&self) {
        self.0.due.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether a kill is due and not done.
    pub(crate) fn is_due(&self) -> bool {
        self.0.due.load(Ordering::Acquire) > self.done()
    }

    /// The kill was done.
    pub(crate) fn kill_done(&self) {
        self.set_ready(false);
        self.0.done.fetch_add(1, Ordering::AcqRel);
    }

    /// How many kills were done.
    pub(crate) fn done(&self) -> u32 {
        self.0.done.load(Ordering::Acquire)
    }

    /// Says whether the counting process is restored and counts.
    pub(crate) fn set_ready(&self, ready: bool) {
        self.0.ready.store(ready, Ordering::Release);
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.0.ready.load(Ordering::Acquire)
    }
}
