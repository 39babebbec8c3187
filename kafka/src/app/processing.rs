use std::sync::Arc;

use kstate_processing::{ExecutorSettings, ProcessError, Processor, Work};

use super::{OutputRecord, OwnedRecord, ProcessorSupplier};

/// What an app does with its records.
pub(crate) enum Processing {
    /// A task's own thread processes them, one after the other.
    InOrder(Box<dyn ProcessorSupplier>),
    /// The workers of each task process several at a time.
    Workers(WorkerProcessing),
}

impl Processing {
    /// Whether tasks have workers.
    pub(crate) fn has_workers(&self) -> bool {
        matches!(self, Self::Workers(_))
    }
}

/// What an app does with records, with several workers for each task.
#[derive(Clone)]
pub(crate) struct WorkerProcessing {
    pub(crate) settings: ExecutorSettings,
    pub(crate) processor: SharedProcessor,
}

/// A processor that the workers of all tasks share.
#[derive(Clone)]
pub(crate) struct SharedProcessor(pub(crate) Arc<dyn Processor<Record = OwnedRecord, Output = OutputRecord>>);

impl Processor for SharedProcessor {
    type Record = OwnedRecord;
    type Output = OutputRecord;

    fn process(
        &self,
        record: &OwnedRecord,
        work: &mut Work<'_, OutputRecord>,
    ) -> std::result::Result<(), ProcessError> {
        self.0.process(record, work)
    }
}
