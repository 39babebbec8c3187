use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use kstate_api::{CommitOutcome, Error, ErrorKind, Result};

use crate::workload::scramble;

/// How a step that changes the store fails: a commit, a restored batch, a wipe or forgetting the offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepFault {
    /// It does nothing, and says that it did nothing.
    Refused,
    /// It does nothing, and cannot tell.
    LostBefore,
    /// It is done, and cannot tell.
    LostAfter,
    /// It does nothing, and its error has no outcome: which means that it cannot tell. A backend may say so; a store
    /// answers it like [`LostBefore`](StepFault::LostBefore).
    Unsaid,
}

/// How many of a thousand calls fail, for each kind of fault, in a [seeded](Faults::seeded) plan.
///
/// ```
/// use kstate_conformance_tests::FaultRates;
///
/// let rates = FaultRates { refused: 100, cursors: 20, ..FaultRates::NONE };
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultRates {
    /// Steps that do nothing and say so: [`StepFault::Refused`].
    pub refused: u16,
    /// Steps that do nothing and cannot tell: [`StepFault::LostBefore`].
    pub lost_before: u16,
    /// Steps that are done and cannot tell: [`StepFault::LostAfter`].
    pub lost_after: u16,
    /// Gets that fail.
    pub reads: u16,
    /// Cursors that fail after up to 31 rows.
    pub cursors: u16,
    /// Flushes that fail, having done nothing.
    pub flushes: u16,
}

impl FaultRates {
    /// No faults.
    pub const NONE: Self = Self { refused: 0, lost_before: 0, lost_after: 0, reads: 0, cursors: 0, flushes: 0 };
}

/// A fault that was injected, and which call of its kind it met, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Injected {
    /// A step failed so.
    Step(u64, StepFault),
    /// A get failed.
    Read(u64),
    /// A cursor failed after so many rows.
    Cursor(u64, usize),
    /// A flush failed.
    Flush(u64),
}

/// A plan of faults, shared by a test and what fails by it: a [`Faulty`](crate::Faulty) store or a
/// [`FaultyBackend`](crate::FaultyBackend).
///
/// Steps, gets, cursors and flushes are counted apart. What happens to the next of them is, first, what was planned by
/// hand; then what the seed says; else nothing. Every error that is injected is of kind `Io`.
///
/// ```
/// use kstate_conformance_tests::{FaultRates, Faults, StepFault};
///
/// // By hand: the third commit is done, but nobody can tell.
/// let faults = Faults::new();
/// faults.plan_steps([None, None, Some(StepFault::LostAfter)]);
///
/// // By chance, and the same whenever the seed is the same.
/// let faults = Faults::seeded(42, FaultRates { refused: 50, lost_after: 50, ..FaultRates::NONE });
/// ```
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<Plan>>);

#[derive(Debug, Default)]
struct Plan {
    seed: u64,
    rates: FaultRates,
    steps: Lane<StepFault>,
    reads: Lane<()>,
    cursors: Lane<usize>,
    flushes: Lane<()>,
    injected: Vec<Injected>,
}

/// The calls of one kind.
#[derive(Debug)]
struct Lane<F> {
    planned: VecDeque<Option<F>>,
    calls: u64,
}

impl<F> Default for Lane<F> {
    fn default() -> Self {
        Self { planned: VecDeque::new(), calls: 0 }
    }
}

impl<F> Lane<F> {
    /// The number of this call, and its fault: the planned one, or what `draw` makes of a number that looks random.
    fn next(&mut self, seed: u64, draw: impl FnOnce(u64) -> Option<F>) -> (u64, Option<F>) {
        let number = self.calls;
        self.calls += 1;
        let planned = self.planned.pop_front();
        (number, planned.unwrap_or_else(|| draw(scramble(scramble(seed).wrapping_add(number)))))
    }
}

/// Whether a number that looks random is among `rate` of a thousand.
fn falls(draw: u64, rate: u16) -> bool {
    draw % 1000 < rate.into()
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

    /// Faults at random: the same for the same seed, whatever the threads do, as long as the calls of a kind are the
    /// same.
    ///
    /// ```
    /// # use kstate_conformance_tests::{FaultRates, Faults};
    /// let faults = Faults::seeded(42, FaultRates { reads: 10, ..FaultRates::NONE });
    /// ```
    #[must_use]
    pub fn seeded(seed: u64, rates: FaultRates) -> Self {
        Self(Arc::new(Mutex::new(Plan { seed, rates, ..Plan::default() })))
    }

    fn plan<T>(&self, with: impl FnOnce(&mut Plan) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The next steps fail so, or not at all, one after the other; in addition to what is planned already.
    ///
    /// ```
    /// # use kstate_conformance_tests::{Faults, StepFault};
    /// Faults::new().plan_steps([Some(StepFault::Refused), None, Some(StepFault::LostBefore)]);
    /// ```
    pub fn plan_steps(&self, faults: impl IntoIterator<Item = Option<StepFault>>) {
        self.plan(|plan| plan.steps.planned.extend(faults));
    }

    /// The next gets fail where `true` stands, one after the other; in addition to what is planned already.
    ///
    /// ```
    /// # use kstate_conformance_tests::Faults;
    /// Faults::new().plan_reads([false, true]);
    /// ```
    pub fn plan_reads(&self, faults: impl IntoIterator<Item = bool>) {
        self.plan(|plan| plan.reads.planned.extend(faults.into_iter().map(|fails| fails.then_some(()))));
    }

    /// The next cursors fail after so many rows, or not at all, one after the other; in addition to what is planned
    /// already.
    ///
    /// ```
    /// # use kstate_conformance_tests::Faults;
    /// Faults::new().plan_cursors([None, Some(3)]);
    /// ```
    pub fn plan_cursors(&self, rows: impl IntoIterator<Item = Option<usize>>) {
        self.plan(|plan| plan.cursors.planned.extend(rows));
    }

    /// The next flushes fail where `true` stands, one after the other; in addition to what is planned already.
    ///
    /// ```
    /// # use kstate_conformance_tests::Faults;
    /// Faults::new().plan_flushes([true]);
    /// ```
    pub fn plan_flushes(&self, faults: impl IntoIterator<Item = bool>) {
        self.plan(|plan| plan.flushes.planned.extend(faults.into_iter().map(|fails| fails.then_some(()))));
    }

    /// The next step fails, before what is planned already.
    ///
    /// ```
    /// # use kstate_conformance_tests::{Faults, StepFault};
    /// Faults::new().fail_next_step(StepFault::LostAfter);
    /// ```
    pub fn fail_next_step(&self, fault: StepFault) {
        self.plan(|plan| plan.steps.planned.push_front(Some(fault)));
    }

    /// The next get fails, before what is planned already.
    ///
    /// ```
    /// # use kstate_conformance_tests::Faults;
    /// Faults::new().fail_next_read();
    /// ```
    pub fn fail_next_read(&self) {
        self.plan(|plan| plan.reads.planned.push_front(Some(())));
    }

    /// The next cursor fails after `rows` rows, and from then on at every step; before what is planned already.
    ///
    /// ```
    /// # use kstate_conformance_tests::Faults;
    /// Faults::new().fail_next_cursor_after(3);
    /// ```
    pub fn fail_next_cursor_after(&self, rows: usize) {
        self.plan(|plan| plan.cursors.planned.push_front(Some(rows)));
    }

    /// Ends the plan: nothing fails any more. What is open stays as the faults so far left it.
    ///
    /// ```
    /// # use kstate_conformance_tests::Faults;
    /// let faults = Faults::new();
    /// faults.fail_next_read();
    /// faults.end();
    /// ```
    pub fn end(&self) {
        self.plan(|plan| {
            *plan = Plan { injected: std::mem::take(&mut plan.injected), ..Plan::default() };
        });
    }

    /// What was injected so far, in order: for a test to see that it met faults at all, and to write down by hand what
    /// a seed has found.
    ///
    /// ```
    /// # use kstate_conformance_tests::Faults;
    /// assert!(Faults::new().injected().is_empty());
    /// ```
    #[must_use]
    pub fn injected(&self) -> Vec<Injected> {
        self.plan(|plan| plan.injected.clone())
    }

    /// An error if this get is to fail.
    pub(crate) fn read(&self) -> Result<()> {
        self.plan(|plan| {
            let rate = plan.rates.reads;
            let (number, fault) = plan.reads.next(plan.seed ^ 1, |draw| falls(draw, rate).then_some(()));
            plan.injected.extend(fault.map(|()| Injected::Read(number)));
            fault.map_or(Ok(()), |()| Err(injected()))
        })
    }

    /// After how many rows this cursor is to fail.
    pub(crate) fn cursor(&self) -> Option<usize> {
        self.plan(|plan| {
            let rate = plan.rates.cursors;
            let rows = |draw: u64| usize::try_from(draw >> 32).unwrap_or_default() % 32;
            let (number, fault) = plan.cursors.next(plan.seed ^ 2, |draw| falls(draw, rate).then(|| rows(draw)));
            plan.injected.extend(fault.map(|rows| Injected::Cursor(number, rows)));
            fault
        })
    }

    /// Runs `flush`, or fails instead.
    pub(crate) fn flush(&self, flush: impl FnOnce() -> Result<()>) -> Result<()> {
        let fails = self.plan(|plan| {
            let rate = plan.rates.flushes;
            let (number, fault) = plan.flushes.next(plan.seed ^ 3, |draw| falls(draw, rate).then_some(()));
            plan.injected.extend(fault.map(|()| Injected::Flush(number)));
            fault.is_some()
        });
        if fails { Err(injected()) } else { flush() }
    }

    /// Runs `step`, or what the plan has for it.
    pub(crate) fn step(&self, step: impl FnOnce() -> Result<()>) -> Result<()> {
        let outcome = match self.plan(Plan::next_step) {
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

impl Plan {
    fn next_step(&mut self) -> Option<StepFault> {
        let FaultRates { refused, lost_before, lost_after, .. } = self.rates;
        let (number, fault) = self.steps.next(self.seed, |draw| {
            let lost_from = refused.saturating_add(lost_before);
            match draw {
                draw if falls(draw, refused) => Some(StepFault::Refused),
                draw if falls(draw, lost_from) => Some(StepFault::LostBefore),
                draw if falls(draw, lost_from.saturating_add(lost_after)) => Some(StepFault::LostAfter),
                _ => None,
            }
        });
        self.injected.extend(fault.map(|fault| Injected::Step(number, fault)));
        fault
    }
}

pub(crate) fn injected() -> Error {
    Error::new(ErrorKind::Io, "injected by a plan of faults")
}
