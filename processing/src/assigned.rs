use std::{collections::BTreeMap, sync::Arc, time::Instant};

use kstate_api::{Offset, TopicPartition};

use crate::{Effect, OffsetTracker, Processor, RecordFailure, admissions::Admissions, job::Job, notices::Notices};

/// How a record ended; it is applied when its turn comes.
pub(crate) enum Ended<O> {
    Processed(Vec<Effect<O>>),
    Failed(Arc<RecordFailure>),
}

/// A record that ended.
pub(crate) type EndedJob<P> = (Job<<P as Processor>::Record>, Ended<<P as Processor>::Output>);

/// One partition as long as it is assigned.
pub(crate) struct Assigned<P: Processor> {
    pub(crate) partition: TopicPartition,
    pub(crate) tracker: OffsetTracker,
    pub(crate) admissions: Admissions,
    pub(crate) notices: Notices,
    /// With effects applied in input order: what ended before its turn.
    pub(crate) waiting: BTreeMap<Offset, EndedJob<P>>,
}

impl<P: Processor> Assigned<P> {
    pub(crate) fn new(partition: TopicPartition, tracker: OffsetTracker) -> Self {
        Self {
            partition,
            tracker,
            admissions: Admissions::default(),
            notices: Notices::default(),
            waiting: BTreeMap::new(),
        }
    }

    /// When the lowest record in flight was taken.
    pub(crate) fn oldest_since(&self) -> Option<Instant> {
        self.admissions.since(self.tracker.lowest_in_flight()?)
    }

    /// Whether nothing before `offset` is left to be applied.
    pub(crate) fn is_turn_of(&self, offset: Offset) -> bool {
        self.tracker.lowest_in_flight() == Some(offset)
    }

    /// The next record that ended and whose turn it is.
    pub(crate) fn next_in_turn(&mut self) -> Option<EndedJob<P>> {
        let first = self.waiting.first_entry()?;
        (self.tracker.lowest_in_flight() == Some(*first.key())).then(|| first.remove())
    }
}
