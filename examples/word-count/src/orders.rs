use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

/// What a counter is told while it counts. Told twice, it is the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Orders(Arc<State>);

#[derive(Debug, Default)]
struct State {
    ends: OnceLock<Vec<i64>>,
    leave: AtomicBool,
}

impl Orders {
    /// The source ends: one past the last offset of each partition.
    pub(crate) fn end(&self, ends: Vec<i64>) {
        let _ = self.0.ends.set(ends);
    }

    /// Where the source ends, once that is known.
    pub(crate) fn ends(&self) -> Option<&[i64]> {
        self.0.ends.get().map(Vec::as_slice)
    }

    /// Another process finishes the work.
    pub(crate) fn leave(&self) {
        self.0.leave.store(true, Ordering::Release);
    }

    pub(crate) fn is_to_leave(&self) -> bool {
        self.0.leave.load(Ordering::Acquire)
    }
}
