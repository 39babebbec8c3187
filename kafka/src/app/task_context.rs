use kstate_api::{Error, ErrorKind, KeyValueStore, Result, TaskId, TopicPartition};

use crate::sender::Output;

use super::{outputs::Outputs, task_stores::Stores};

/// What a processor works with: the stores of its task, and the app's outputs.
///
/// ```
/// use kstate_api::ReadOnlyKeyValueStoreExt as _;
/// use kstate_kafka::app::{ProcessingResult, SourceRecord, TaskContext};
///
/// fn process(record: &SourceRecord<'_>, context: &TaskContext<'_>) -> ProcessingResult {
///     let counts = context.store("counts")?;
///     let word = record.value().unwrap_or_default();
///     let before = counts.get(word)?.map_or(0, |count| u64::from_be_bytes(count.as_ref().try_into().unwrap_or_default()));
///     let count = (before + 1).to_be_bytes();
///     counts.put(word, &count)?;
///     context.send("word-counts", Some(word), Some(&count))?;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct TaskContext<'t> {
    pub(crate) task: TaskId,
    pub(crate) stores: &'t Stores,
    pub(crate) outputs: &'t Outputs,
}

impl TaskContext<'_> {
    /// The task.
    #[must_use]
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// The task's store `name`. What is written to it is committed by the next checkpoint.
    ///
    /// # Errors
    /// `InvalidArgument` if the app has no such store.
    pub fn store(&self, name: &str) -> Result<&dyn KeyValueStore> {
        let store = self.stores.get(name);
        store
            .map(|store| &**store)
            .ok_or_else(|| Error::new(ErrorKind::InvalidArgument, format!("the app has no store `{name}`")))
    }

    /// Sends a record to `topic`, to the partition of its key, as Kafka's Java client does; without a key, to any. It
    /// waits if there is no room for it, and not for its delivery, which the next checkpoint sees to.
    ///
    /// # Errors
    /// `InvalidArgument` if the broker would refuse the record for its size; or what the client met. None for topics that
    /// are not required ([`App::output_role`](super::App::output_role)): it counts as not delivered.
    pub fn send(&self, topic: &str, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<()> {
        self.outputs.send(Output { topic, partition: None, key, value })
    }

    /// As [`send`](Self::send), to a partition of your choice.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_to(&self, partition: &TopicPartition, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<()> {
        self.outputs.send(Output { topic: partition.topic(), partition: Some(partition.partition()), key, value })
    }
}
