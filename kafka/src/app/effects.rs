use kstate_api::{KeyValueStore, Result};
use kstate_processing::{Effect, RecordFailure, Sink, Source};

use crate::{deliveries::OutputSource, sender::Output};

use super::{OutputRecord, OwnedRecord, definition::Definition, outputs::Outputs, task_stores::TaskStores};

/// What the workers of a task bring about: writes to its stores, outputs, and dead letters.
pub(crate) struct Effects<'t> {
    definition: &'t Definition,
    stores: &'t TaskStores,
    /// In the order in which the app was given them.
    in_order: Vec<&'t dyn KeyValueStore>,
    outputs: &'t Outputs,
}

impl<'t> Effects<'t> {
    pub(crate) fn new(definition: &'t Definition, stores: &'t TaskStores, outputs: &'t Outputs) -> Self {
        Self { definition, stores, in_order: stores.in_order(definition).map(|store| &**store).collect(), outputs }
    }

    fn end_of(&self, source: &Source<'_, OwnedRecord>) -> Result<()> {
        self.outputs.end_of(|| OutputSource::Record(source.partition.clone(), source.offset))
    }
}

impl Sink<OwnedRecord, OutputRecord> for Effects<'_> {
    fn apply(&mut self, source: &Source<'_, OwnedRecord>, effects: Vec<Effect<OutputRecord>>) -> Result<()> {
        for effect in effects {
            effect.apply(&self.in_order, |output| self.outputs.send(output.as_output()))?;
        }
        self.end_of(source)
    }

    fn dead_letter(&mut self, source: &Source<'_, OwnedRecord>, failure: &RecordFailure) -> Result<()> {
        let (task, record) = (self.stores.task(), source.record.get());
        tracing::warn!(%task, partition = %source.partition, offset = %source.offset, %failure, "a dead letter");
        if let Some(topic) = &self.definition.dead_letters {
            self.outputs.send(Output { topic, partition: None, key: record.key(), value: record.value() })?;
            self.end_of(source)?;
        }
        self.definition.listener.dead_lettered(task, &record, failure);
        Ok(())
    }
}
