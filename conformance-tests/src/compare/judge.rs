use std::{
    fmt::{self, Debug},
    sync::{
        Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicBool, Ordering},
    },
};

use kstate_api::{CommitOutcome, Error, ErrorKind, Result};

use super::Mismatch;
use crate::check::short;

type Report = dyn Fn(&Mismatch) + Send + Sync;

/// Compares the answers of two stores, and keeps them in step: what a pair shares with its cursors and snapshots.
pub(super) struct Judge {
    store: Arc<str>,
    turn: RwLock<()>,
    report: Option<Box<Report>>,
    /// The difference at which the two have parted, if it was not reported elsewhere.
    parted: OnceLock<Mismatch>,
    /// Whether nobody can tell what the trusted store holds, so that there is nothing to compare with.
    lost: AtomicBool,
    closed: AtomicBool,
}

impl Judge {
    pub(super) fn new(store: &str) -> Self {
        Self {
            store: store.into(),
            turn: RwLock::new(()),
            report: None,
            parted: OnceLock::new(),
            lost: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }

    pub(super) fn reporting_to(mut self, report: Box<Report>) -> Self {
        self.report = Some(report);
        self
    }

    /// Keeps writes away while both stores are read.
    pub(super) fn reading(&self) -> RwLockReadGuard<'_, ()> {
        self.turn.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps everything away while both stores are written.
    pub(super) fn writing(&self) -> RwLockWriteGuard<'_, ()> {
        self.turn.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Whether there is something to compare with.
    pub(super) fn compares(&self) -> bool {
        !self.lost.load(Ordering::Acquire)
    }

    pub(super) fn is_poisoned(&self) -> bool {
        self.parted.get().is_some()
    }

    /// An error once the two have parted. A closed pair says that it is closed.
    pub(super) fn check(&self) -> Result<()> {
        match self.parted.get() {
            Some(mismatch) if !self.closed.load(Ordering::Acquire) => {
                let message = format!("the compared stores have parted at {mismatch}");
                Err(Error::new(ErrorKind::Poisoned, message).with_source(mismatch.clone()).with_store(&self.store))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn check_step(&self) -> Result<()> {
        self.check().map_err(|error| error.with_commit_outcome(CommitOutcome::NotApplied))
    }

    /// An error met after a step was done, as that step's.
    pub(super) fn of_step(error: Error) -> Error {
        error.with_commit_outcome(CommitOutcome::Unknown)
    }

    /// The trusted answer, if the candidate's is the same.
    pub(super) fn same<T: Debug + PartialEq>(
        &self,
        call: impl Fn() -> String,
        trusted: Result<T>,
        candidate: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.judge(call, trusted, candidate, |trusted, candidate| trusted == candidate).map(|(trusted, _)| trusted)
    }

    /// The trusted answer, if the candidate's is one too, or an error of the same kind.
    pub(super) fn same_failure<T: Debug>(
        &self,
        call: impl Fn() -> String,
        trusted: Result<T>,
        candidate: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.judge(call, trusted, candidate, |_, _| true).map(|(trusted, _)| trusted)
    }

    /// The trusted answer to a step.
    pub(super) fn same_step(
        &self,
        call: impl Fn() -> String,
        trusted: Result<()>,
        candidate: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let lost = |error: &Error| error.commit_outcome() != Some(CommitOutcome::NotApplied);
        if trusted.as_ref().is_err_and(lost) {
            self.lost.store(true, Ordering::Release);
        }
        let mismatches = self.is_poisoned();
        let answer = self.same(call, trusted, candidate);
        if self.is_poisoned() == mismatches { answer } else { answer.map_err(Self::of_step) }
    }

    /// Both answers, if they are alike; the trusted one alone if the candidate was not asked, or the difference was
    /// reported.
    pub(super) fn judge<T: Debug>(
        &self,
        call: impl Fn() -> String,
        trusted: Result<T>,
        candidate: impl FnOnce() -> Result<T>,
        alike: impl FnOnce(&T, &T) -> bool,
    ) -> Result<(T, Option<T>)> {
        if !self.compares() {
            return trusted.map(|trusted| (trusted, None));
        }
        let candidate = candidate();
        let agree = match (&trusted, &candidate) {
            (Ok(trusted), Ok(candidate)) => alike(trusted, candidate),
            (Err(trusted), Err(candidate)) => {
                (trusted.kind(), trusted.commit_outcome()) == (candidate.kind(), candidate.commit_outcome())
            }
            _ => false,
        };
        if agree {
            return trusted.map(|trusted| (trusted, candidate.ok()));
        }
        self.differ(Mismatch { call: call(), trusted: answer(&trusted), candidate: answer(&candidate) })?;
        trusted.map(|trusted| (trusted, None))
    }

    /// Reports a difference, or fails with it.
    fn differ(&self, mismatch: Mismatch) -> Result<()> {
        let Mismatch { call, trusted, candidate } = &mismatch;
        tracing::error!(store = &*self.store, call, trusted, candidate, "the compared stores differ");
        if let Some(report) = &self.report {
            report(&mismatch);
            return Ok(());
        }
        // The first one counts.
        let _ = self.parted.set(mismatch.clone());
        Err(Error::new(ErrorKind::Corrupted, mismatch.to_string()).with_source(mismatch).with_store(&self.store))
    }
}

impl Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { store, turn: _, report, parted, lost, closed } = self;
        f.debug_struct("Judge")
            .field("store", store)
            .field("reports", &report.is_some())
            .field("parted", parted)
            .field("lost", lost)
            .field("closed", closed)
            .finish_non_exhaustive()
    }
}

fn answer<T: Debug>(answer: &Result<T>) -> String {
    match answer {
        Ok(answer) => short(&format!("{answer:?}")),
        Err(error) => match error.commit_outcome() {
            Some(outcome) => format!("{:?}, {outcome:?} ({error})", error.kind()),
            None => format!("{:?} ({error})", error.kind()),
        },
    }
}

/// Bytes, as Rust writes them.
pub(super) fn literal(bytes: &[u8]) -> String {
    short(&format!("b\"{}\"", bytes.escape_ascii()))
}
