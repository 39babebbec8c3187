use std::{
    collections::HashMap,
    fmt,
    time::{Duration, Instant},
};

use kstate_api::{Error, ErrorKind, Offset, Result, TopicPartition};
use kstate_offset_cache::{AllLogEnds, LogEnds, LogEndsReader};
use rdkafka::{
    Offset as ClientOffset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
};

use crate::{
    Cluster,
    cluster::REQUEST_TIMEOUT,
    context::Context,
    error::broker_error,
    leaders::{Leaders, leader_error},
};

/// The client searches a request's list anew for each partition of the answer, so lists must not grow without bound.
const PARTITIONS_PER_REQUEST: usize = 2_000;

/// Asks the brokers where changelogs begin and end: two requests to each broker for up to 2 000 partitions, and one
/// for the topics that there are.
///
/// The ends are those of the logs (`read_uncommitted`), which a restore has to reach. Nothing is created.
///
/// ```
/// use kstate_api::TopicPartition;
/// use kstate_kafka::{EmbeddedCluster, LogEndsConsumer};
/// use kstate_offset_cache::LogEndsReader;
///
/// # fn main() -> kstate_api::Result<()> {
/// let embedded = EmbeddedCluster::start()?;
/// embedded.create_topic("counts-changelog", 1)?;
/// let (counts, gone) = (TopicPartition::new("counts-changelog", 0), TopicPartition::new("gone", 0));
///
/// let ends = LogEndsConsumer::new(&embedded.cluster())?.log_ends(&[counts.clone(), gone.clone()])?;
/// assert_eq!(ends.get(&counts).unwrap().retained(), 0);
/// assert_eq!(ends.get(&gone), None);
/// # Ok(())
/// # }
/// ```
pub struct LogEndsConsumer {
    consumer: BaseConsumer<Context>,
}

/// An answer for one partition: the offset, or why there is none.
type Answers<'p> = HashMap<&'p TopicPartition, Result<Offset>>;

impl LogEndsConsumer {
    /// Asks the brokers of `cluster`.
    ///
    /// # Errors
    /// `Config` for a property that the client does not take.
    ///
    /// ```
    /// use kstate_kafka::{Cluster, LogEndsConsumer};
    ///
    /// let ends = LogEndsConsumer::new(&Cluster::new("localhost:9092"));
    /// assert!(ends.is_ok());
    /// ```
    pub fn new(cluster: &Cluster) -> Result<Self> {
        let config = cluster.client_config(&[("isolation.level", "read_uncommitted")]);
        let consumer = config.create_with_context(Context).map_err(|error| {
            Error::new(ErrorKind::Config, format!("cannot make a Kafka consumer: {error}")).with_source(error)
        })?;
        Ok(Self { consumer })
    }

    /// Asks for one end of `partitions`, which all have leaders.
    fn ask<'p>(
        &self,
        partitions: &[&'p TopicPartition],
        end: ClientOffset,
        deadline: Instant,
        answers: &mut Answers<'p>,
    ) {
        let found = list(partitions, end).and_then(|list| {
            let remaining = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            self.consumer.offsets_for_times(list, remaining)
        });
        match found {
            Ok(found) => {
                let by_name: HashMap<_, _> =
                    partitions.iter().map(|asked| ((asked.topic(), asked.partition()), *asked)).collect();
                for element in found.elements() {
                    if let Some(asked) = by_name.get(&(element.topic(), element.partition())) {
                        answers.insert(asked, answer(asked, element.error().map(|()| element.offset())));
                    }
                }
            }
            Err(error) => {
                let what = "cannot look up the ends of changelogs";
                let unavailable = broker_error(what, error.clone()).kind() == ErrorKind::Unavailable;
                // One partition's error is the answer to all of its request: ask for the halves, until it is alone. What
                // does not concern a partition would be met each time.
                if let [_, _, ..] = partitions
                    && !unavailable
                    && Instant::now() < deadline
                {
                    let (left, right) = partitions.split_at(partitions.len() / 2);
                    self.ask(left, end, deadline, answers);
                    self.ask(right, end, deadline, answers);
                    return;
                }
                for asked in partitions {
                    let what = format!("cannot look up the ends of changelog {asked}");
                    answers.insert(asked, Err(leader_error(&what, error.clone())));
                }
            }
        }
    }
}

impl LogEndsReader for LogEndsConsumer {
    fn log_ends(&mut self, partitions: &[TopicPartition]) -> Result<AllLogEnds> {
        let mut all = AllLogEnds::new();
        if partitions.is_empty() {
            return Ok(all);
        }
        // The client would wait for one missing leader and leave all others unanswered.
        let leaders = Leaders::fetch(&self.consumer)?;
        let mut led = Vec::with_capacity(partitions.len());
        for partition in partitions {
            match leaders.check(partition) {
                Ok(()) => led.push(partition),
                Err(error) => all.insert(partition.clone(), Err(error)),
            }
        }
        led.sort_unstable();
        led.dedup();
        let deadline = Instant::now() + REQUEST_TIMEOUT;
        for led in led.chunks(PARTITIONS_PER_REQUEST) {
            // The end first: what is dropped from the front in between makes a log shorter, never longer.
            let (mut ends, mut starts) = (Answers::new(), Answers::new());
            self.ask(led, ClientOffset::End, deadline, &mut ends);
            self.ask(led, ClientOffset::Beginning, deadline, &mut starts);
            for partition in led {
                let found = take(&mut ends, partition)
                    .and_then(|end| Ok(LogEnds { start: take(&mut starts, partition)?, end }));
                all.insert((*partition).clone(), found);
            }
        }
        Ok(all)
    }
}

/// The request for one end, which takes the place of a time.
fn list(partitions: &[&TopicPartition], end: ClientOffset) -> rdkafka::error::KafkaResult<TopicPartitionList> {
    let mut list = TopicPartitionList::with_capacity(partitions.len());
    for partition in partitions {
        list.add_partition_offset(partition.topic(), partition.partition(), end)?;
    }
    Ok(list)
}

fn answer(partition: &TopicPartition, found: rdkafka::error::KafkaResult<ClientOffset>) -> Result<Offset> {
    match found {
        Ok(ClientOffset::Offset(offset)) => Offset::try_from(offset),
        Ok(_) => Err(unanswered(partition)),
        Err(error) => Err(leader_error(&format!("cannot look up the ends of changelog {partition}"), error)),
    }
}

fn take(answers: &mut Answers<'_>, partition: &TopicPartition) -> Result<Offset> {
    answers.remove(partition).unwrap_or_else(|| Err(unanswered(partition)))
}

fn unanswered(partition: &TopicPartition) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the brokers did not tell the ends of changelog {partition}"))
}

impl fmt::Debug for LogEndsConsumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogEndsConsumer").finish_non_exhaustive()
    }
}
