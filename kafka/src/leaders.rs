use std::{
    collections::{BTreeSet, HashMap},
    slice, thread,
    time::{Duration, Instant},
};

use kstate_api::{Error, ErrorKind, Result, TopicPartition};
use rdkafka::{
    consumer::{BaseConsumer, Consumer as _, ConsumerContext},
    error::KafkaError,
    types::RDKafkaErrorCode,
};

use crate::{cluster::REQUEST_TIMEOUT, error::broker_error};

/// How long to wait for a leader: brokers elect one within this unless something is wrong with them.
const ELECTION_TIMEOUT: Duration = Duration::from_secs(1);

/// How long to wait before a leader is looked for again.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Which partitions there are in the cluster, and which of them have a leader to ask.
pub(crate) struct Leaders(HashMap<String, HashMap<i32, bool>>);

impl Leaders {
    pub(crate) fn fetch<C: ConsumerContext>(consumer: &BaseConsumer<C>) -> Result<Self> {
        // All topics are asked for: a broker may create one that is asked for by name.
        let metadata = consumer
            .fetch_metadata(None, REQUEST_TIMEOUT)
            .map_err(|error| broker_error("cannot list the topics", error))?;
        let topics = metadata.topics().iter().map(|topic| {
            let partitions = topic.partitions().iter().map(|partition| (partition.id(), partition.leader() >= 0));
            (topic.name().to_owned(), partitions.collect())
        });
        Ok(Self(topics.collect()))
    }

    /// # Errors
    /// `Unavailable` if `partition` has no leader, `Config` if it is not there.
    pub(crate) fn check(&self, partition: &TopicPartition) -> Result<()> {
        let leader = self.0.get(partition.topic()).and_then(|leaders| leaders.get(&partition.partition()));
        let (kind, what) = match leader {
            Some(true) => return Ok(()),
            Some(false) => (ErrorKind::Unavailable, "has no leader"),
            None => (ErrorKind::Config, "is not there"),
        };
        Err(Error::new(kind, format!("partition {partition} {what}")))
    }
}

/// Where the log of `partition` starts and ends, looked up for `what`.
///
/// # Errors
/// `Unavailable` if it has no leader for a second, `Config` if it is not there.
pub(crate) fn fetch_watermarks<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    partition: &TopicPartition,
    what: &str,
) -> Result<(i64, i64)> {
    let missing = |error: Error| Error::new(error.kind(), format!("{what}: {error}"));
    let deadline = Instant::now() + ELECTION_TIMEOUT;
    loop {
        let error = match consumer.fetch_watermarks(partition.topic(), partition.partition(), REQUEST_TIMEOUT) {
            Err(error) if is_without_leader(&error) => error,
            found => return found.map_err(|error| broker_error(what, error)),
        };
        let checked = Leaders::fetch(consumer)?.check(partition);
        match checked {
            Err(error) if error.kind() != ErrorKind::Unavailable => return Err(missing(error)),
            _ if Instant::now() >= deadline => {
                return Err(checked.err().map_or_else(|| leader_error(what, error), missing));
            }
            // The client goes on believing that there is none until somebody asks for the topic by its name.
            Ok(()) => learn_leaders(consumer, slice::from_ref(partition))?,
            Err(_) => {}
        }
        thread::sleep(RETRY_PAUSE);
    }
}

/// Makes the client know who leads `partitions`. Before they are assigned it has to: if it cannot ask a leader at once
/// where a log starts, it asks again after half a second only.
pub(crate) fn learn_leaders<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    partitions: &[TopicPartition],
) -> Result<()> {
    let topics: BTreeSet<_> = partitions.iter().map(TopicPartition::topic).collect();
    for topic in topics {
        consumer
            .fetch_metadata(Some(topic), REQUEST_TIMEOUT)
            .map_err(|error| broker_error(&format!("cannot look up who leads topic {topic}"), error))?;
    }
    Ok(())
}

/// The client's error as ours, met while asking the leader of a partition that is there.
pub(crate) fn leader_error(what: &str, error: KafkaError) -> Error {
    if is_without_leader(&error) {
        return Error::new(ErrorKind::Unavailable, format!("{what}: no leader is known")).with_source(error);
    }
    broker_error(what, error)
}

/// Whether the client knows of no leader, or of one that is no more. It calls a partition without a leader unknown, were it
/// there or not, and a topic that a broker has not heard of yet.
fn is_without_leader(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            RDKafkaErrorCode::UnknownPartition
                | RDKafkaErrorCode::UnknownTopicOrPartition
                | RDKafkaErrorCode::LeaderNotAvailable
                | RDKafkaErrorCode::NotLeaderForPartition
        )
    )
}
