use kstate_api::{Offset, Result, TopicPartition};
use rdkafka::{
    Message as _,
    message::{BorrowedMessage, Headers as _},
};

/// A record to process, as it lies in the client's memory.
///
/// ```
/// use kstate_kafka::app::SourceRecord;
///
/// fn describe(record: &SourceRecord<'_>) -> String {
///     format!("{}-{} at {}", record.topic(), record.partition(), record.offset())
/// }
/// ```
#[derive(Debug)]
pub struct SourceRecord<'m> {
    message: &'m BorrowedMessage<'m>,
    offset: Offset,
}

impl<'m> SourceRecord<'m> {
    pub(crate) fn new(message: &'m BorrowedMessage<'m>) -> Result<Self> {
        Ok(Self { message, offset: Offset::try_from(message.offset())? })
    }

    /// The topic it was read from.
    #[must_use]
    pub fn topic(&self) -> &str {
        self.message.topic()
    }

    /// The partition it was read from.
    #[must_use]
    pub fn partition(&self) -> i32 {
        self.message.partition()
    }

    /// Topic and partition.
    #[must_use]
    pub fn topic_partition(&self) -> TopicPartition {
        TopicPartition::new(self.topic(), self.partition())
    }

    /// Where it is in its partition.
    #[must_use]
    pub fn offset(&self) -> Offset {
        self.offset
    }

    /// When it was made or appended, as the topic says, in milliseconds since 1970; `None` if it does not tell.
    #[must_use]
    pub fn timestamp(&self) -> Option<i64> {
        self.message.timestamp().to_millis()
    }

    /// The key, if it has one.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        self.message.key()
    }

    /// The value, if it has one.
    #[must_use]
    pub fn value(&self) -> Option<&[u8]> {
        self.message.payload()
    }

    /// The value of the first header `name`: `None` if there is none, `Some(None)` if it has no value.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<Option<&[u8]>> {
        self.message.headers()?.iter().find(|header| header.key == name).map(|header| header.value)
    }
}
