use kstate_api::{Offset, TopicPartition};
use rdkafka::{Message as _, message::OwnedMessage};

use super::SourceRecord;

/// A record that a worker processes, in memory of its own.
///
/// ```
/// use kstate_kafka::app::OwnedRecord;
///
/// fn key(record: &OwnedRecord) -> Option<&[u8]> {
///     record.get().key()
/// }
/// ```
#[derive(Debug)]
pub struct OwnedRecord {
    message: OwnedMessage,
    offset: Offset,
}

impl OwnedRecord {
    pub(crate) fn new(message: OwnedMessage, offset: Offset) -> Self {
        Self { message, offset }
    }

    /// What it has.
    #[must_use]
    pub fn get(&self) -> SourceRecord<'_> {
        SourceRecord::of_owned(&self.message, self.offset)
    }

    pub(crate) fn topic_partition(&self) -> TopicPartition {
        TopicPartition::new(self.message.topic(), self.message.partition())
    }
}
