use std::{collections::VecDeque, mem, sync::PoisonError, time::Duration};

use crate::sync::{Condvar, Mutex, lock};

/// Where a task's own thread hands jobs to its workers and gets back what they made of them.
///
/// Neither side has a bound of its own: there are never more jobs than records in flight, and the owner, who waits for
/// results, must not be waited for by those who bring them.
#[derive(Debug)]
pub(crate) struct Exchange<J, R> {
    jobs: Mutex<Jobs<J>>,
    job_came: Condvar,
    results: Mutex<Vec<R>>,
    result_came: Condvar,
}

#[derive(Debug)]
struct Jobs<J> {
    queue: VecDeque<J>,
    is_closed: bool,
}

impl<J, R> Exchange<J, R> {
    pub(crate) fn new() -> Self {
        Self {
            jobs: Mutex::new(Jobs { queue: VecDeque::new(), is_closed: false }),
            job_came: Condvar::new(),
            results: Mutex::new(Vec::new()),
            result_came: Condvar::new(),
        }
    }

    /// Hands a job to whichever worker comes first.
    pub(crate) fn give(&self, job: J) {
        lock(&self.jobs).queue.push_back(job);
        self.job_came.notify_one();
    }

    /// The next job, as soon as there is one; `None` once the exchange is closed.
    pub(crate) fn take(&self) -> Option<J> {
        let mut jobs = lock(&self.jobs);
        loop {
            if jobs.is_closed {
                return None;
            }
            if let Some(job) = jobs.queue.pop_front() {
                return Some(job);
            }
            jobs = self.job_came.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes back the jobs that no worker has taken yet and for which `is_gone` holds.
    pub(crate) fn withdraw(&self, is_gone: impl Fn(&J) -> bool) -> Vec<J> {
        let mut jobs = lock(&self.jobs);
        let (gone, kept): (Vec<J>, Vec<J>) = mem::take(&mut jobs.queue).into_iter().partition(is_gone);
        jobs.queue = kept.into();
        gone
    }

    /// Brings back a result.
    pub(crate) fn bring(&self, result: R) {
        let mut results = lock(&self.results);
        results.push(result);
        drop(results);
        self.result_came.notify_one();
    }

    /// All results since the last call, in the order in which they came.
    pub(crate) fn collect(&self) -> Vec<R> {
        mem::take(&mut lock(&self.results))
    }

    /// Waits for a result, up to `limit`, and tells whether there is one.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        let results = lock(&self.results);
        let waited = self.result_came.wait_timeout_while(results, limit, |results| results.is_empty());
        !waited.unwrap_or_else(PoisonError::into_inner).0.is_empty()
    }

    /// Lets no worker take a further job.
    pub(crate) fn close(&self) {
        lock(&self.jobs).is_closed = true;
        self.job_came.notify_all();
    }
}
