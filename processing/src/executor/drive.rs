use super::{
    Duration, Epoch, Executor, Instant, Offset, Processor, Result, Sink, Submission, Submitted, TopicPartition, thread,
};
use crate::Waited;

/// How driving an executor up to a deadline ended.
///
/// ```
/// use kstate_processing::Drained;
///
/// assert_ne!(Drained::Idle, Drained::TimedOut { lowest: None });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Nothing is in flight any more.
    Idle,
    /// Something still is; here is the lowest record of the first partition that has one.
    TimedOut {
        /// Its partition and offset.
        lowest: Option<(TopicPartition, Offset)>,
    },
}

/// The blocking forms.
impl<P: Processor> Executor<P> {
    /// Waits until a worker brings something, up to `limit`, and tells whether one did. With one worker, which is the
    /// caller, nothing comes: it just waits.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kstate_processing::{Executor, ExecutorSettings, ProcessorFn, Work};
    /// # let nothing = ProcessorFn::new(|_: &String, _: &mut Work<'_, String>| Ok(()));
    /// # let executor = Executor::new(ExecutorSettings::default(), nothing, vec![]).unwrap();
    /// assert!(!executor.wait(Duration::from_millis(1)));
    /// ```
    #[must_use = "a result that came is to be polled for"]
    pub fn wait(&self, limit: Duration) -> bool {
        if let Some(workers) = &self.workers {
            return workers.exchange().wait(limit);
        }
        thread::sleep(limit);
        false
    }

    /// When the next attempt of a record that failed is due.
    ///
    /// ```
    /// # use kstate_processing::{Executor, ExecutorSettings, ProcessorFn, Work};
    /// # let nothing = ProcessorFn::new(|_: &String, _: &mut Work<'_, String>| Ok(()));
    /// # let executor = Executor::new(ExecutorSettings::default(), nothing, vec![]).unwrap();
    /// assert_eq!(executor.next_due(), None);
    /// ```
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.lanes.next_due()
    }

    /// Goes on until nothing is in flight, or the deadline has passed. `clock` tells the time.
    ///
    /// # Errors
    /// As [`poll`](Executor::poll).
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # use kstate_api::Result;
    /// # use kstate_processing::*;
    /// # struct Nowhere;
    /// # impl Sink<String, String> for Nowhere {
    /// #     fn apply(&mut self, _: &Source<'_, String>, _: Vec<Effect<String>>) -> Result<()> { Ok(()) }
    /// #     fn dead_letter(&mut self, _: &Source<'_, String>, _: &RecordFailure) -> Result<()> { Ok(()) }
    /// # }
    /// # let nothing = ProcessorFn::new(|_: &String, _: &mut Work<'_, String>| Ok(()));
    /// # let mut executor = Executor::new(ExecutorSettings::default(), nothing, vec![]).unwrap();
    /// let deadline = Instant::now() + Duration::from_secs(5);
    /// assert_eq!(executor.drain(Instant::now, deadline, &mut Nowhere).unwrap(), Drained::Idle);
    /// ```
    pub fn drain(
        &mut self,
        clock: impl Fn() -> Instant,
        deadline: Instant,
        sink: &mut dyn Sink<P::Record, P::Output>,
    ) -> Result<Drained> {
        if self.drive_until(|executor| executor.in_flight == 0, &clock, deadline, sink)? {
            return Ok(Drained::Idle);
        }
        let mut in_flight = self.assigned.values().filter_map(|assigned| {
            assigned.tracker.lowest_in_flight().map(|offset| (assigned.partition.clone(), offset))
        });
        Ok(Drained::TimedOut { lowest: in_flight.next() })
    }

    /// Submits a record and goes on until it is finished, or the deadline has passed: the blocking form. A record for which
    /// there was no room until then comes back.
    ///
    /// # Errors
    /// As [`submit`](Executor::submit) and [`poll`](Executor::poll).
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # use kstate_api::{Offset, PartitionPosition, Result, TopicPartition};
    /// # use kstate_processing::*;
    /// # struct Nowhere;
    /// # impl Sink<String, String> for Nowhere {
    /// #     fn apply(&mut self, _: &Source<'_, String>, _: Vec<Effect<String>>) -> Result<()> { Ok(()) }
    /// #     fn dead_letter(&mut self, _: &Source<'_, String>, _: &RecordFailure) -> Result<()> { Ok(()) }
    /// # }
    /// # let nothing = ProcessorFn::new(|_: &String, _: &mut Work<'_, String>| Ok(()));
    /// # let mut executor = Executor::new(ExecutorSettings::default(), nothing, vec![]).unwrap();
    /// let epoch = executor.assign(TopicPartition::new("lines", 0), PartitionPosition::at(Offset::ZERO));
    /// let submission = Submission::new(Offset::ZERO, "a line".to_owned());
    /// let deadline = Instant::now() + Duration::from_secs(5);
    /// match executor.process(epoch, submission, Instant::now, deadline, &mut Nowhere).unwrap() {
    ///     Waited::Finished => (),
    ///     Waited::InFlight => println!("go on driving"),
    ///     Waited::Full(submission) => println!("submit {} again", submission.offset()),
    /// }
    /// ```
    pub fn process(
        &mut self,
        epoch: Epoch,
        mut submission: Submission<P::Record>,
        clock: impl Fn() -> Instant,
        deadline: Instant,
        sink: &mut dyn Sink<P::Record, P::Output>,
    ) -> Result<Waited<P::Record>> {
        let offset = submission.offset;
        loop {
            match self.submit(epoch, submission, clock(), sink)? {
                Submitted::Taken => break,
                Submitted::Finished(_) => return Ok(Waited::Finished),
                Submitted::Full(again) => submission = again,
            }
            let before = self.in_flight;
            if !self.drive_until(|executor| executor.in_flight < before, &clock, deadline, sink)? {
                return Ok(Waited::Full(submission));
            }
        }
        let is_finished =
            |executor: &Self| !executor.assigned.get(&epoch).is_some_and(|own| own.tracker.is_in_flight(offset));
        let is_finished = self.drive_until(is_finished, &clock, deadline, sink)?;
        Ok(if is_finished { Waited::Finished } else { Waited::InFlight })
    }

    fn drive_until(
        &mut self,
        is_reached: impl Fn(&Self) -> bool,
        clock: &impl Fn() -> Instant,
        deadline: Instant,
        sink: &mut dyn Sink<P::Record, P::Output>,
    ) -> Result<bool> {
        loop {
            let now = clock();
            self.poll(now, sink)?;
            if is_reached(self) {
                return Ok(true);
            }
            if now >= deadline {
                return Ok(false);
            }
            let until = self.next_due().map_or(deadline, |due| due.min(deadline));
            // What came is polled for next.
            let _ = self.wait(until.saturating_duration_since(now));
        }
    }
}
