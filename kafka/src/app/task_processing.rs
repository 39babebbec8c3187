use kstate_api::{Position, Result, TaskId};

use super::{
    Processor, definition::Definition, processing::Processing, task_stores::TaskStores, task_workers::TaskWorkers,
};

/// What one task does with its records.
pub(crate) enum TaskProcessing {
    InOrder(Box<dyn Processor>),
    Workers(Box<TaskWorkers>),
}

impl TaskProcessing {
    /// What the app does with the records of the task that has `stores`.
    pub(crate) fn new(definition: &Definition, stores: &TaskStores) -> Result<Self> {
        Ok(match &definition.processing {
            Processing::InOrder(processors) => Self::InOrder(processors.processor(stores.task())),
            Processing::Workers(processing) => {
                Self::Workers(Box::new(TaskWorkers::new(processing, definition, stores)?))
            }
        })
    }

    /// Begins at `position`; what was done since the last checkpoint is forgotten.
    pub(crate) fn begin_anew(&mut self, definition: &Definition, task: TaskId, position: &Position) {
        match (self, &definition.processing) {
            (Self::InOrder(processor), Processing::InOrder(processors)) => *processor = processors.processor(task),
            (Self::Workers(workers), _) => workers.begin(position),
            (Self::InOrder(_), Processing::Workers(_)) => {}
        }
    }
}
