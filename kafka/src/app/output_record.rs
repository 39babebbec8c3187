use kstate_api::{Bytes, TopicPartition};

use crate::sender::Output;

/// A record that a worker sends.
///
/// ```
/// use kstate_kafka::app::OutputRecord;
///
/// let output = OutputRecord::by_key("word-counts", "word", "1");
/// assert_eq!(output.topic(), "word-counts");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputRecord {
    pub(crate) topic: String,
    pub(crate) partition: Option<i32>,
    pub(crate) key: Option<Bytes>,
    pub(crate) value: Option<Bytes>,
}

impl OutputRecord {
    /// A record with a key and a value, to the partition of its key, as Kafka's Java client does it.
    ///
    /// ```
    /// use kstate_kafka::app::OutputRecord;
    ///
    /// let output = OutputRecord::by_key("word-counts", "word", "1");
    /// ```
    #[must_use]
    pub fn by_key(topic: impl Into<String>, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        Self { topic: topic.into(), partition: None, key: Some(key.into()), value: Some(value.into()) }
    }

    /// A record of your making: without a key it goes to any partition; without a value it is a tombstone.
    ///
    /// ```
    /// use kstate_kafka::app::OutputRecord;
    ///
    /// let tombstone = OutputRecord::new("word-counts", Some("word".into()), None);
    /// ```
    #[must_use]
    pub fn new(topic: impl Into<String>, key: Option<Bytes>, value: Option<Bytes>) -> Self {
        Self { topic: topic.into(), partition: None, key, value }
    }

    /// A record to a partition of your choice.
    ///
    /// ```
    /// use kstate_api::TopicPartition;
    /// use kstate_kafka::app::OutputRecord;
    ///
    /// let output = OutputRecord::to(&TopicPartition::new("word-counts", 3), None, Some("1".into()));
    /// ```
    #[must_use]
    pub fn to(partition: &TopicPartition, key: Option<Bytes>, value: Option<Bytes>) -> Self {
        Self { partition: Some(partition.partition()), ..Self::new(partition.topic(), key, value) }
    }

    /// Where it goes.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.topic
    }

    pub(crate) fn as_output(&self) -> Output<'_> {
        let Self { topic, partition, key, value } = self;
        Output { topic, partition: *partition, key: key.as_deref(), value: value.as_deref() }
    }
}

impl From<Output<'_>> for OutputRecord {
    fn from(output: Output<'_>) -> Self {
        let Output { topic, partition, key, value } = output;
        Self {
            topic: topic.into(),
            partition,
            key: key.map(Bytes::copy_from_slice),
            value: value.map(Bytes::copy_from_slice),
        }
    }
}
