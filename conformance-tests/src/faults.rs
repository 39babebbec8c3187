use std::sync::{Arc, Mutex, PoisonError};

use kstate_api::{CommitOutcome, Error, ErrorKind, Result};

/// How the next step that changes the store fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepFault {
    /// It does nothing, and says that it did nothing.
    Refused,
    /// It does nothing, and cannot tell.
    LostBefore,
    /// It is done, and cannot tell.
    LostAfter,
    /// It does nothing, and its error has no outcome: which means that it cannot tell.
    Unsaid,
}

/// A plan of faults, shared by a test and the [`FaultyBackend`](crate::FaultyBackend) that it watches.
///
/// ```
/// use kstate_conformance_tests::{Faults, StepFault};
///
/// let faults = Faults::new();
/// faults.fail_next_step(StepFault::Refused);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<Plan>>);

#[derive(Debug, Default)]
struct Plan {
    step: Option<StepFault>,
    read: bool,
    rows_before_error: Option<usize>,
}

impl Faults {
    /// No faults yet.
    ///
    /// ```
    /// # use kstate_conformance_tests::Faults;
    /// let faults = Faults::new();
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn plan<T>(&self, with: impl FnOnce(&mut Plan) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The next commit, restore step or wipe fails, once.
    ///
    /// ```
    /// # use kstate_conformance_tests::{Faults, StepFault};
    /// Faults::new().fail_next_step(StepFault::LostAfter);
    /// ```
    pub fn fail_next_step(&self, fault: StepFault) {
        self.plan(|plan| plan.step = Some(fault));
    }

    /// The next get fails, once.
    ///
    /// ```
    /// # use kstate_conformance_tests::Faults;
    /// Faults::new().fail_next_read();
    /// ```
    pub fn fail_next_read(&self) {
        self.plan(|plan| plan.read = true);
    }

    /// The next cursor fails after `rows` rows, and from then on at every step.
    ///
    /// ```
    /// # use kstate_conformance_tests::Faults;
    /// Faults::new().fail_next_cursor_after(3);
    /// ```
    pub fn fail_next_cursor_after(&self, rows: usize) {
        self.plan(|plan| plan.rows_before_error = Some(rows));
    }

    pub(crate) fn read(&self) -> Result<()> {
        if self.plan(|plan| std::mem::take(&mut plan.read)) { Err(injected()) } else { Ok(()) }
    }

    pub(crate) fn cursor(&self) -> Option<usize> {
        self.plan(|plan| plan.rows_before_error.take())
    }

    /// Runs `step`, or what the plan has for it.
    pub(crate) fn step(&self, step: impl FnOnce() -> Result<()>) -> Result<()> {
        let outcome = match self.plan(|plan| plan.step.take()) {
            None => return step(),
            Some(StepFault::Refused) => CommitOutcome::NotApplied,
            Some(StepFault::LostBefore) => CommitOutcome::Unknown,
            Some(StepFault::Unsaid) => return Err(injected()),
            Some(StepFault::LostAfter) => {
                step()?;
                CommitOutcome::Unknown
            }
        };
        Err(injected().with_commit_outcome(outcome))
    }
}

pub(crate) fn injected() -> Error {
    Error::new(ErrorKind::Io, "injected by the conformance suite")
}
