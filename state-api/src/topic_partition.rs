use std::{fmt, str::FromStr, sync::Arc};

use crate::{Error, ErrorKind, Result, name};

/// One partition of one topic, written `topic-partition` as Kafka does.
///
/// ```
/// use kstate_api::TopicPartition;
///
/// let partition = TopicPartition::new("counts-changelog", 3);
/// assert_eq!(partition.to_string(), "counts-changelog-3");
/// assert_eq!("counts-changelog-3".parse::<TopicPartition>().unwrap(), partition);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    topic: Arc<str>,
    partition: i32,
}

impl TopicPartition {
    /// Names partition `partition` of `topic`.
    ///
    /// Nothing is checked here; a store refuses a name that Kafka would refuse when it is opened with it
    /// (see [`validate`](Self::validate)).
    ///
    /// ```
    /// # use kstate_api::TopicPartition;
    /// let first = TopicPartition::new("counts-changelog", 0);
    /// ```
    pub fn new(topic: impl Into<Arc<str>>, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }

    /// The topic's name.
    ///
    /// ```
    /// # use kstate_api::TopicPartition;
    /// assert_eq!(TopicPartition::new("t", 0).topic(), "t");
    /// ```
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The partition's number, counted from zero.
    ///
    /// ```
    /// # use kstate_api::TopicPartition;
    /// assert_eq!(TopicPartition::new("t", 7).partition(), 7);
    /// ```
    #[must_use]
    pub const fn partition(&self) -> i32 {
        self.partition
    }

    /// Checks that Kafka could have such a partition.
    ///
    /// # Errors
    /// `InvalidArgument` if the partition is negative, or the topic has a character or a length that Kafka refuses.
    ///
    /// ```
    /// # use kstate_api::TopicPartition;
    /// assert!(TopicPartition::new("counts", 0).validate().is_ok());
    /// assert!(TopicPartition::new("a/b", 0).validate().is_err());
    /// ```
    pub fn validate(&self) -> Result<()> {
        name::validate("topic", &self.topic)?;
        if self.partition < 0 {
            let message = format!("topic `{}` cannot have partition {}", self.topic, self.partition);
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        Ok(())
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

impl FromStr for TopicPartition {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parsed = text.rsplit_once('-').and_then(|(topic, partition)| {
            // Only the form that `Display` writes: `+1` and `01` are numbers to Rust but no partitions to Kafka.
            let number = partition.parse::<i32>().ok().filter(|n| *n >= 0 && n.to_string() == partition)?;
            Some(Self::new(topic, number))
        });
        let partition = parsed.ok_or_else(|| {
            Error::new(ErrorKind::InvalidArgument, format!("`{text}` is not of the form topic-partition"))
        })?;
        partition.validate()?;
        Ok(partition)
    }
}
