use std::fmt;

use kstate_api::{Offset, Result, TopicPartition};
use rdkafka::{
    Message,
    message::{BorrowedHeaders, BorrowedMessage, Headers as _, OwnedHeaders, OwnedMessage},
};

/// A record to process.
///
/// ```
/// use kstate_kafka::app::SourceRecord;
///
/// fn describe(record: &SourceRecord<'_>) -> String {
///     format!("{}-{} at {}", record.topic(), record.partition(), record.offset())
/// }
/// ```
#[derive(Clone, Copy)]
pub struct SourceRecord<'m> {
    topic: &'m str,
    partition: i32,
    offset: Offset,
    timestamp: Option<i64>,
    key: Option<&'m [u8]>,
    value: Option<&'m [u8]>,
    headers: Headers<'m>,
}

#[derive(Clone, Copy)]
enum Headers<'m> {
    None,
    Borrowed(&'m BorrowedHeaders),
    Owned(&'m OwnedHeaders),
}

impl<'m> SourceRecord<'m> {
    /// A record that lies in the client's memory.
    pub(crate) fn new(message: &'m BorrowedMessage<'_>) -> Result<Self> {
        let headers = message.headers().map_or(Headers::None, Headers::Borrowed);
        Ok(Self::of(message, Offset::try_from(message.offset())?, headers))
    }

    /// A record that lies in its own memory.
    pub(crate) fn of_owned(message: &'m OwnedMessage, offset: Offset) -> Self {
        Self::of(message, offset, message.headers().map_or(Headers::None, Headers::Owned))
    }

    fn of(message: &'m impl Message, offset: Offset, headers: Headers<'m>) -> Self {
        Self {
            topic: message.topic(),
            partition: message.partition(),
            offset,
            timestamp: message.timestamp().to_millis(),
            key: message.key(),
            value: message.payload(),
            headers,
        }
    }

    /// The topic it was read from.
    #[must_use]
    pub fn topic(&self) -> &'m str {
        self.topic
    }

    /// The partition it was read from.
    #[must_use]
    pub fn partition(&self) -> i32 {
        self.partition
    }

    /// Topic and partition.
    #[must_use]
    pub fn topic_partition(&self) -> TopicPartition {
        TopicPartition::new(self.topic, self.partition)
    }

    /// Where it is in its partition.
    #[must_use]
    pub fn offset(&self) -> Offset {
        self.offset
    }

    /// When it was made or appended, as the topic says, in milliseconds since 1970; `None` if it does not tell.
    #[must_use]
    pub fn timestamp(&self) -> Option<i64> {
        self.timestamp
    }

    /// The key, if it has one.
    #[must_use]
    pub fn key(&self) -> Option<&'m [u8]> {
        self.key
    }

    /// The value, if it has one.
    #[must_use]
    pub fn value(&self) -> Option<&'m [u8]> {
        self.value
    }

    /// The value of the first header `name`: `None` if there is none, `Some(None)` if it has no value.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<Option<&'m [u8]>> {
        match self.headers {
            Headers::None => None,
            Headers::Borrowed(headers) => headers.iter().find(|header| header.key == name).map(|header| header.value),
            Headers::Owned(headers) => headers.iter().find(|header| header.key == name).map(|header| header.value),
        }
    }
}

impl fmt::Debug for SourceRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceRecord")
            .field("topic", &self.topic)
            .field("partition", &self.partition)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}
