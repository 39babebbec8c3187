use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use kstate_api::{Bytes, Offset, ReadOnlyKeyValueStore};

use crate::{Effect, Epoch, ProcessError, Processor, Ticket, Work};

/// Which records wait for each other. Two partitions never share a lane, nor do two assignments of one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LaneKey {
    Partition(Epoch),
    Key(Epoch, Option<Bytes>),
}

impl LaneKey {
    pub(crate) fn epoch(&self) -> Epoch {
        match self {
            Self::Partition(epoch) | Self::Key(epoch, _) => *epoch,
        }
    }
}

/// A record in flight.
pub(crate) struct Job<R> {
    /// How many records were taken before it: the older one goes first.
    pub(crate) number: u64,
    pub(crate) record: R,
    pub(crate) offset: Offset,
    pub(crate) ticket: Ticket,
    pub(crate) lane: Option<LaneKey>,
    pub(crate) attempts: u32,
}

impl<R> Job<R> {
    pub(crate) fn epoch(&self) -> Epoch {
        self.ticket.epoch
    }
}

/// What a worker made of a record.
pub(crate) type Processed<O> = Result<Vec<Effect<O>>, ProcessError>;

/// What every worker needs.
pub(crate) struct Bench<P> {
    pub(crate) processor: P,
    pub(crate) stores: Vec<Arc<dyn ReadOnlyKeyValueStore>>,
}

impl<P: Processor> Bench<P> {
    /// One attempt. A panic is a failure of the record: what it had made is dropped with its `Work`.
    pub(crate) fn attempt(&self, job: &mut Job<P::Record>) -> Processed<P::Output> {
        job.attempts += 1;
        let mut work = Work::new(&self.stores);
        let processed = catch_unwind(AssertUnwindSafe(|| self.processor.process(&job.record, &mut work)));
        match processed {
            Ok(Ok(())) => Ok(work.into_effects()),
            Ok(Err(error)) => Err(error),
            Err(payload) => Err(ProcessError::panicked(&*payload)),
        }
    }
}
