use std::time::Instant;

use super::Executor;
use crate::{ExecutorStats, Processor, assigned::Assigned};

/// What it is at, in numbers.
impl<P: Processor> Executor<P> {
    /// Whether a position has changed since the last ones committed.
    ///
    /// ```
    /// # use kstate_processing::{Executor, ExecutorSettings, ProcessorFn, Work};
    /// # let nothing = ProcessorFn::new(|_: &String, _: &mut Work<'_, String>| Ok(()));
    /// # let executor = Executor::new(ExecutorSettings::default(), nothing, vec![]).unwrap();
    /// assert!(!executor.is_dirty());
    /// ```
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        self.assigned.values().any(|assigned| assigned.tracker.is_dirty())
    }

    /// How many records are in flight: the one number that decides whether there is room.
    ///
    /// ```
    /// # use kstate_processing::{Executor, ExecutorSettings, ProcessorFn, Work};
    /// # let nothing = ProcessorFn::new(|_: &String, _: &mut Work<'_, String>| Ok(()));
    /// # let executor = Executor::new(ExecutorSettings::default(), nothing, vec![]).unwrap();
    /// assert_eq!(executor.in_flight(), 0);
    /// ```
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Since when the oldest record is in flight, to 10 ms; `None` if nothing is.
    ///
    /// ```
    /// # use kstate_processing::{Executor, ExecutorSettings, ProcessorFn, Work};
    /// # let nothing = ProcessorFn::new(|_: &String, _: &mut Work<'_, String>| Ok(()));
    /// # let executor = Executor::new(ExecutorSettings::default(), nothing, vec![]).unwrap();
    /// assert_eq!(executor.oldest_since(), None);
    /// ```
    #[must_use]
    pub fn oldest_since(&self) -> Option<Instant> {
        self.assigned.values().filter_map(Assigned::oldest_since).min()
    }

    /// How many records workers have, also of partitions that were revoked since.
    ///
    /// ```
    /// # use kstate_processing::{Executor, ExecutorSettings, ProcessorFn, Work};
    /// # let nothing = ProcessorFn::new(|_: &String, _: &mut Work<'_, String>| Ok(()));
    /// # let executor = Executor::new(ExecutorSettings::default(), nothing, vec![]).unwrap();
    /// assert_eq!(executor.running(), 0);
    /// ```
    #[must_use]
    pub const fn running(&self) -> usize {
        self.running
    }

    /// How many records wait for their next attempt.
    ///
    /// ```
    /// # use kstate_processing::{Executor, ExecutorSettings, ProcessorFn, Work};
    /// # let nothing = ProcessorFn::new(|_: &String, _: &mut Work<'_, String>| Ok(()));
    /// # let executor = Executor::new(ExecutorSettings::default(), nothing, vec![]).unwrap();
    /// assert_eq!(executor.parked(), 0);
    /// ```
    #[must_use]
    pub fn parked(&self) -> usize {
        self.lanes.parked()
    }

    /// How many finished records are held back by one that is not.
    ///
    /// ```
    /// # use kstate_processing::{Executor, ExecutorSettings, ProcessorFn, Work};
    /// # let nothing = ProcessorFn::new(|_: &String, _: &mut Work<'_, String>| Ok(()));
    /// # let executor = Executor::new(ExecutorSettings::default(), nothing, vec![]).unwrap();
    /// assert_eq!(executor.held(), 0);
    /// ```
    #[must_use]
    pub fn held(&self) -> usize {
        self.assigned.values().map(|assigned| assigned.tracker.held()).sum()
    }

    /// What was counted.
    ///
    /// ```
    /// # use kstate_processing::{Executor, ExecutorSettings, ProcessorFn, Work};
    /// # let nothing = ProcessorFn::new(|_: &String, _: &mut Work<'_, String>| Ok(()));
    /// # let executor = Executor::new(ExecutorSettings::default(), nothing, vec![]).unwrap();
    /// assert_eq!(executor.stats().done, 0);
    /// ```
    #[must_use]
    pub const fn stats(&self) -> ExecutorStats {
        self.stats
    }
}
