use kstate_api::{Position, Result, TaskId};

use super::{
    Processor, ProcessorSupplier,
    definition::Definition,
    task_stores::TaskStores,
    task_workers::{TaskWorkers, WorkerProcessing},
};

/// What an app does with its records.
pub(crate) enum Processing {
    /// A task's own thread processes them, one after the other.
    InOrder(Box<dyn ProcessorSupplier>),
    /// The workers of each task process several at a time.
    Workers(WorkerProcessing),
}

impl Processing {
    pub(crate) fn of_task(&self, definition: &Definition, stores: &TaskStores) -> Result<TaskProcessing> {
        Ok(match self {
            Self::InOrder(processors) => TaskProcessing::InOrder(processors.processor(stores.task())),
            Self::Workers(processing) => {
                TaskProcessing::Workers(Box::new(TaskWorkers::new(processing, definition, stores)?))
            }
        })
    }
}

/// What one task does with its records.
pub(crate) enum TaskProcessing {
    InOrder(Box<dyn Processor>),
    Workers(Box<TaskWorkers>),
}

impl TaskProcessing {
    /// Begins at `position`; what was done since the last checkpoint is forgotten.
    pub(crate) fn begin_anew(&mut self, definition: &Definition, task: TaskId, position: &Position) {
        match (self, &definition.processing) {
            (Self::InOrder(processor), Processing::InOrder(processors)) => *processor = processors.processor(task),
            (Self::Workers(workers), _) => workers.begin(position),
            (Self::InOrder(_), Processing::Workers(_)) => {}
        }
    }
}
