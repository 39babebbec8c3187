use std::{sync::Arc, thread};

use kstate_api::{Error, Result};

use crate::{
    Processor,
    exchange::Exchange,
    job::{Bench, Job, Processed},
};

/// What a worker brings back.
pub(crate) type Attempt<P> = (Job<<P as Processor>::Record>, Processed<<P as Processor>::Output>);

type WorkExchange<P> = Exchange<Job<<P as Processor>::Record>, Attempt<P>>;

/// The threads that process records for a task.
pub(crate) struct Workers<P: Processor> {
    exchange: Arc<WorkExchange<P>>,
}

impl<P: Processor> Workers<P> {
    pub(crate) fn start(count: usize, bench: &Arc<Bench<P>>) -> Result<Self> {
        // If a thread cannot be started, those before it end with this.
        let workers = Self { exchange: Arc::new(Exchange::new()) };
        for number in 0..count {
            let (exchange, bench) = (Arc::clone(&workers.exchange), Arc::clone(bench));
            thread::Builder::new()
                .name(format!("kstate-worker-{number}"))
                .spawn(move || {
                    while let Some(mut job) = exchange.take() {
                        let processed = bench.attempt(&mut job);
                        exchange.bring((job, processed));
                    }
                })
                .map_err(|error| Error::io("cannot start a worker", error))?;
        }
        Ok(workers)
    }

    pub(crate) fn exchange(&self) -> &WorkExchange<P> {
        &self.exchange
    }
}

impl<P: Processor> Drop for Workers<P> {
    /// Nobody waits for a record that hangs: each worker ends after the one it has, and its result goes nowhere.
    fn drop(&mut self) {
        self.exchange.close();
    }
}
