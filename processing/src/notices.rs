use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
};

use kstate_api::Offset;

use crate::{Outcome, completion::OnFinished};

/// What is to be called with the outcomes of a partition's records in flight. What is left in the end hears that its
/// record is abandoned.
///
/// The owner keeps it, and no job takes it along: a worker may hang, or outlive the executor.
#[derive(Default)]
pub(crate) struct Notices(BTreeMap<Offset, OnFinished>);

impl Notices {
    pub(crate) fn add(&mut self, offset: Offset, on_finished: Option<OnFinished>) {
        self.0.extend(on_finished.map(|on_finished| (offset, on_finished)));
    }

    /// Tells what became of the record at `offset`, if somebody wants to know and was not told yet.
    pub(crate) fn tell(&mut self, offset: Offset, outcome: Outcome) {
        if let Some(on_finished) = self.0.remove(&offset) {
            call(offset, on_finished, outcome);
        }
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        while let Some((offset, on_finished)) = self.0.pop_first() {
            call(offset, on_finished, Outcome::Abandoned);
        }
    }
}

/// A panic goes no further: the owner has other records, and may be unwinding already.
fn call(offset: Offset, on_finished: OnFinished, outcome: Outcome) {
    if catch_unwind(AssertUnwindSafe(|| on_finished(outcome))).is_err() {
        tracing::error!(%offset, "what was called with the outcome of a record panicked");
    }
}
