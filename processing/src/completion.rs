use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use crate::RecordFailure;

/// What became of a record.
///
/// ```
/// use kstate_processing::Outcome;
///
/// assert!(matches!(Outcome::Done, Outcome::Done));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// Its effects are applied.
    Done,
    /// It failed for good and went to the dead letters.
    DeadLettered(Arc<RecordFailure>),
    /// It was not finished: its partition was revoked, or the executor halted or was dropped.
    Abandoned,
}

/// Called with what became of a record, by the task's own thread.
pub(crate) type OnFinished = Box<dyn FnOnce(Outcome) + Send>;

/// What will become of a record: a future for async code, which can also be waited for by another thread.
///
/// The task's own thread must go on driving its executor; it would wait for itself. It has
/// [`Executor::process`](crate::Executor::process).
///
/// ```
/// use std::time::Duration;
///
/// use kstate_processing::{Completion, Outcome};
///
/// let (on_finished, completion) = Completion::new();
/// assert!(completion.wait(Duration::ZERO).is_none());
/// on_finished(Outcome::Done);
/// assert!(matches!(completion.wait(Duration::ZERO), Some(Outcome::Done)));
/// ```
#[derive(Clone)]
pub struct Completion(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    finished: Condvar,
}

#[derive(Default)]
struct State {
    outcome: Option<Outcome>,
    wakers: Vec<Waker>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(&self, outcome: Outcome) {
        let mut state = self.lock();
        state.outcome.get_or_insert(outcome);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        self.finished.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// Says that the record is abandoned if nobody says anything else.
struct Finisher(Arc<Shared>);

impl Drop for Finisher {
    fn drop(&mut self) {
        self.0.finish(Outcome::Abandoned);
    }
}

impl Completion {
    /// A completion, and what to give to [`Submission::on_finished`](crate::Submission::on_finished) for it. If that is
    /// dropped, the record counts as [abandoned](Outcome::Abandoned).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kstate_processing::{Completion, Outcome};
    /// let (on_finished, completion) = Completion::new();
    /// drop(on_finished);
    /// assert!(matches!(completion.wait(Duration::ZERO), Some(Outcome::Abandoned)));
    /// ```
    #[must_use = "without the first of the two nobody will say anything"]
    pub fn new() -> (impl FnOnce(Outcome) + Send + use<>, Self) {
        let shared = Arc::<Shared>::default();
        let finisher = Finisher(Arc::clone(&shared));
        (move |outcome| finisher.0.finish(outcome), Self(shared))
    }

    /// Waits, up to `limit`; `None` if the record was not finished in time.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kstate_processing::Completion;
    /// let (on_finished, completion) = Completion::new();
    /// assert!(completion.wait(Duration::from_millis(1)).is_none());
    /// ```
    #[must_use]
    pub fn wait(&self, limit: Duration) -> Option<Outcome> {
        let waited = self.0.finished.wait_timeout_while(self.0.lock(), limit, |state| state.outcome.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.outcome.clone()
    }
}

impl Future for Completion {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let mut state = self.0.lock();
        if let Some(outcome) = &state.outcome {
            return Poll::Ready(outcome.clone());
        }
        if !state.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            state.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Completion").field(&self.0.lock().outcome).finish()
    }
}
