use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::Result;

/// What a piece of work cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) wall: Duration,
    /// Of all threads of the process.
    pub(crate) cpu: Duration,
}

fn cpu_time() -> Result<Duration> {
    Ok(clock_gettime(ClockId::ProcessCPUTime).try_into()?)
}

impl Sample {
    /// Does `work` and measures it.
    pub(crate) fn of<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, Self)> {
        let cpu = cpu_time()?;
        let start = Instant::now();
        let done = work()?;
        let wall = start.elapsed();
        Ok((done, Self { wall, cpu: cpu_time()?.saturating_sub(cpu) }))
    }

    /// This, and the processor time of `more`: what goes on in the background until it ends.
    pub(crate) fn with_cpu_of(self, more: Self) -> Self {
        Self { cpu: self.cpu + more.cpu, ..self }
    }
}
