use std::{collections::BTreeMap, mem, sync::PoisonError, time::Duration};

use crate::sync::{Condvar, Mutex, lock};

/// Where a task's own thread hands jobs to its workers and gets back what they made of them.
///
/// Neither side has a bound of its own: there are never more jobs than records in flight, and the owner, who waits for
/// results, must not be waited for by those who bring them.
///
/// The oldest job is taken first, the one with the lowest number. A lane with many jobs becomes ready with an old one, so
/// it does not wait behind all that came after; were it last each time, it alone would be left in the end, with one
/// worker. And the position, which the oldest record holds back, goes on.
#[derive(Debug)]
pub(crate) struct Exchange<J, R> {
    jobs: Mutex<Jobs<J>>,
    job_came: Condvar,
    results: Mutex<Results<R>>,
    result_came: Condvar,
}

#[derive(Debug)]
struct Jobs<J> {
    by_number: BTreeMap<u64, J>,
    /// Workers that wait. Nobody else has to be woken, which costs more than all the rest.
    waiting: usize,
    is_closed: bool,
}

#[derive(Debug)]
struct Results<R> {
    list: Vec<R>,
    owner_waits: bool,
}

impl<J, R> Exchange<J, R> {
    pub(crate) fn new() -> Self {
        Self {
            jobs: Mutex::new(Jobs { by_number: BTreeMap::new(), waiting: 0, is_closed: false }),
            job_came: Condvar::new(),
            results: Mutex::new(Results { list: Vec::new(), owner_waits: false }),
            result_came: Condvar::new(),
        }
    }

    /// Hands a job to whichever worker comes first. No two jobs have the same number.
    pub(crate) fn give(&self, number: u64, job: J) {
        let mut jobs = lock(&self.jobs);
        jobs.by_number.insert(number, job);
        let is_waited_for = jobs.waiting > 0;
        drop(jobs);
        if is_waited_for {
            self.job_came.notify_one();
        }
    }

    /// The oldest job, as soon as there is one; `None` once the exchange is closed.
    pub(crate) fn take(&self) -> Option<J> {
        let mut jobs = lock(&self.jobs);
        loop {
            if jobs.is_closed {
                return None;
            }
            if let Some((_, job)) = jobs.by_number.pop_first() {
                return Some(job);
            }
            jobs.waiting += 1;
            jobs = self.job_came.wait(jobs).unwrap_or_else(PoisonError::into_inner);
            jobs.waiting -= 1;
        }
    }

    /// Takes back the jobs that no worker has taken yet and for which `is_gone` holds, the oldest first.
    pub(crate) fn withdraw(&self, is_gone: impl Fn(&J) -> bool) -> Vec<J> {
        let mut jobs = lock(&self.jobs);
        let (gone, kept): (BTreeMap<_, _>, _) =
            mem::take(&mut jobs.by_number).into_iter().partition(|(_, job)| is_gone(job));
        jobs.by_number = kept;
        drop(jobs);
        gone.into_values().collect()
    }

    /// Brings back a result.
    pub(crate) fn bring(&self, result: R) {
        let mut results = lock(&self.results);
        results.list.push(result);
        let is_waited_for = mem::take(&mut results.owner_waits);
        drop(results);
        if is_waited_for {
            self.result_came.notify_one();
        }
    }

    /// All results since the last call, in the order in which they came.
    pub(crate) fn collect(&self) -> Vec<R> {
        mem::take(&mut lock(&self.results).list)
    }

    /// Waits for a result, up to `limit`, and tells whether there is one. Only the owner may.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        let mut results = lock(&self.results);
        results.owner_waits = true;
        let waited = self.result_came.wait_timeout_while(results, limit, |results| results.list.is_empty());
        let mut results = waited.unwrap_or_else(PoisonError::into_inner).0;
        results.owner_waits = false;
        !results.list.is_empty()
    }

    /// Lets no worker take a further job.
    pub(crate) fn close(&self) {
        lock(&self.jobs).is_closed = true;
        self.job_came.notify_all();
    }
}
