use kstate_api::{KeyValueStore, Result, TopicPartition};
use kstate_processing::{Effect, RecordFailure, Sink, Source};

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
}

impl Sink<OwnedRecord, OutputRecord> for Effects<'_> {
    fn apply(&mut self, _: &Source<'_, OwnedRecord>, effects: Vec<Effect<OutputRecord>>) -> Result<()> {
        effects.into_iter().try_for_each(|effect| {
            effect.apply(&self.in_order, |output| {
                let OutputRecord { topic, partition, key, value } = output;
                match partition {
                    Some(partition) => {
                        self.outputs.send(&TopicPartition::new(topic, partition), key.as_deref(), value.as_deref())
                    }
                    None => self.outputs.send_by_key(&topic, key.as_deref(), value.as_deref()),
                }
            })
        })
    }

    fn dead_letter(&mut self, source: &Source<'_, OwnedRecord>, failure: &RecordFailure) -> Result<()> {
        let (task, record) = (self.stores.task(), source.record.get());
        tracing::warn!(%task, partition = %source.partition, offset = %source.offset, %failure, "a dead letter");
        if let Some(topic) = &self.definition.dead_letters {
            self.outputs.send_by_key(topic, record.key(), record.value())?;
        }
        self.definition.listener.dead_lettered(task, &record, failure);
        Ok(())
    }
}
