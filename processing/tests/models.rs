//! Models: the scheduler of `shuttle` tries many orders of the threads that meet at the exchange.
//!
//! The crate's own file is compiled here once more, over its types for what threads meet at (`sync`).
#![allow(clippy::unwrap_used, dead_code, unreachable_pub, reason = "tests, and a file that is the library elsewhere")]

use std::{sync::Arc, time::Duration};

use shuttle::{
    Config, Runner,
    scheduler::{PctScheduler, RandomScheduler},
    thread,
};

#[path = "../src/exchange.rs"]
mod exchange;

mod sync {
    use std::sync::PoisonError;

    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

use exchange::Exchange;

/// Runs `model` in many orders, some at random and some that switch threads rarely, at the worst moments.
fn explore(model: impl Fn() + Send + Sync + Clone + 'static) {
    Runner::new(RandomScheduler::new(500), Config::new()).run(model.clone());
    Runner::new(PctScheduler::new(3, 200), Config::new()).run(model);
}

type Numbers = Exchange<u32, u32>;

/// Starts workers that bring back what they take, and end with the exchange.
fn workers(count: u32, exchange: &Arc<Numbers>) -> Vec<thread::JoinHandle<u32>> {
    let worker = |_| {
        let exchange = Arc::clone(exchange);
        thread::spawn(move || {
            let mut taken = 0;
            while let Some(job) = exchange.take() {
                taken += 1;
                exchange.bring(job);
            }
            taken
        })
    };
    (0..count).map(worker).collect()
}

#[test]
fn every_job_comes_back_once_and_no_wait_hangs() {
    explore(|| {
        let exchange = Arc::new(Numbers::new());
        let workers = workers(2, &exchange);
        let (mut came, mut waits) = (Vec::new(), 0);
        for job in 0..4 {
            exchange.give(job.into(), job);
            came.extend(exchange.collect());
        }
        while came.len() < 4 {
            // The model's wait has no limit: a result of which nobody was told would be a deadlock.
            assert!(exchange.wait(Duration::MAX), "nothing came");
            came.extend(exchange.collect());
            waits += 1;
        }
        assert!(waits <= 4);
        came.sort_unstable();
        assert_eq!(came, [0, 1, 2, 3]);
        exchange.close();
        assert_eq!(workers.into_iter().map(|worker| worker.join().unwrap()).sum::<u32>(), 4);
    });
}

#[test]
fn closing_ends_every_worker_whatever_it_does() {
    explore(|| {
        let exchange = Arc::new(Numbers::new());
        let workers = workers(3, &exchange);
        exchange.give(0, 0);
        exchange.close();
        let taken: u32 = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
        assert_eq!(exchange.collect().len(), taken as usize);
    });
}

#[test]
fn a_job_is_either_withdrawn_or_comes_back() {
    explore(|| {
        let exchange = Arc::new(Numbers::new());
        let workers = workers(2, &exchange);
        (0..4).for_each(|job| exchange.give(job.into(), job));
        let withdrawn = exchange.withdraw(|job| job % 2 == 0);
        assert!(withdrawn.iter().all(|job| job % 2 == 0));
        let withdrawn_count = u32::try_from(withdrawn.len()).unwrap();
        let mut all = withdrawn;
        while all.len() < 4 {
            assert!(exchange.wait(Duration::MAX));
            all.extend(exchange.collect());
        }
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3]);
        exchange.close();
        assert_eq!(workers.into_iter().map(|worker| worker.join().unwrap()).sum::<u32>() + withdrawn_count, 4);
    });
}

#[test]
fn the_oldest_job_is_taken_first() {
    let model = || {
        let exchange = Numbers::new();
        for job in [3, 1, 2] {
            exchange.give(job.into(), job);
        }
        assert_eq!([exchange.take(), exchange.take(), exchange.take()], [Some(1), Some(2), Some(3)]);
    };
    Runner::new(RandomScheduler::new(1), Config::new()).run(model);
}
