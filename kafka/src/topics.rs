use std::{
    fmt, thread,
    time::{Duration, Instant},
};

use futures_executor::block_on;
use kstate_api::{Error, ErrorKind, Result, validate_name};
use kstate_checkpoint::LogRetention;
use rdkafka::{
    admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication},
    types::RDKafkaErrorCode,
};

use crate::{
    Cluster,
    cluster::REQUEST_TIMEOUT,
    context::Context,
    error::{broker_error, kind_of},
};

const CLEANUP_POLICY: &str = "cleanup.policy";

/// How long a changelog keeps every version of a key before compaction may drop the older ones: well above any outage,
/// for until its source commit a new version may turn out not to count (clause P3).
const MIN_COMPACTION_LAG: &str = "86400000";

/// A topic as it should be.
///
/// ```
/// use kstate_kafka::TopicSpec;
///
/// let changelog = TopicSpec::changelog("counts-changelog", 4);
/// assert_eq!(changelog.name(), "counts-changelog");
/// ```
#[derive(Clone, Debug)]
pub struct TopicSpec {
    name: String,
    partitions: u32,
    config: Vec<(String, String)>,
}

impl TopicSpec {
    /// A topic with the brokers' defaults.
    pub fn new(name: impl Into<String>, partitions: u32) -> Self {
        Self { name: name.into(), partitions, config: Vec::new() }
    }

    /// A changelog: compacted, versions of the last 24 hours kept. It has as many partitions as its source.
    pub fn changelog(name: impl Into<String>, partitions: u32) -> Self {
        Self::new(name, partitions).with(CLEANUP_POLICY, "compact").with("min.compaction.lag.ms", MIN_COMPACTION_LAG)
    }

    /// Sets a topic configuration for when the topic is created.
    ///
    /// ```
    /// # use kstate_kafka::TopicSpec;
    /// let lines = TopicSpec::new("lines", 4).with("retention.ms", "3600000");
    /// ```
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.config.push((key.into(), value.into()));
        self
    }

    /// The topic's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Creates, checks and deletes topics.
///
/// ```no_run
/// use kstate_kafka::{Cluster, TopicSpec, Topics};
///
/// # fn main() -> kstate_api::Result<()> {
/// let topics = Topics::new(&Cluster::new("localhost:9092"))?;
/// let partitions = topics.partitions("lines")?.unwrap_or(4);
/// topics.ensure(&TopicSpec::changelog("counts-changelog", partitions))?;
/// # Ok(())
/// # }
/// ```
pub struct Topics {
    admin: AdminClient<Context>,
    /// Whether the cluster answers what a topic's configuration is; an embedded one does not.
    describes: bool,
}

impl Topics {
    /// Works on the topics of `cluster`.
    ///
    /// # Errors
    /// `Config` for a property that the client does not take.
    pub fn new(cluster: &Cluster) -> Result<Self> {
        let admin = cluster.client_config(&[]).create_with_context(Context).map_err(|error| {
            Error::new(ErrorKind::Config, format!("cannot make a Kafka client: {error}")).with_source(error)
        })?;
        Ok(Self { admin, describes: cluster.log_retention() == LogRetention::Compacted })
    }

    /// How many partitions `topic` has; `None` if there is no such topic.
    ///
    /// # Errors
    /// If the brokers do not tell.
    pub fn partitions(&self, topic: &str) -> Result<Option<u32>> {
        // All topics are asked for: a broker may create one that is asked for by name.
        let metadata = self
            .admin
            .inner()
            .fetch_metadata(None, REQUEST_TIMEOUT)
            .map_err(|error| broker_error("cannot list the topics", error))?;
        let found = metadata.topics().iter().find(|found| found.name() == topic);
        Ok(found.and_then(|found| u32::try_from(found.partitions().len()).ok()).filter(|count| *count > 0))
    }

    /// Makes sure that the topic is there with its number of partitions, and creates it if it is not there.
    ///
    /// # Errors
    /// `InvalidArgument` for a bad name, `Config` if it is there with another number of partitions or another
    /// `cleanup.policy`, which is named, and nothing is changed; else what the brokers answer.
    pub fn ensure(&self, spec: &TopicSpec) -> Result<()> {
        validate_name("topic", &spec.name)?;
        if let Some(partitions) = self.partitions(&spec.name)? {
            check_partitions(spec, partitions)?;
            return self.check_policy(spec);
        }
        self.create(spec)?;
        let deadline = Instant::now() + REQUEST_TIMEOUT;
        loop {
            match self.partitions(&spec.name)? {
                Some(partitions) => return check_partitions(spec, partitions),
                None if Instant::now() > deadline => {
                    let message = format!("topic {} was created but does not show up", spec.name);
                    return Err(Error::new(ErrorKind::Unavailable, message));
                }
                None => thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// Refuses a topic that is there with another `cleanup.policy` than `spec` asks for: a changelog that drops its
    /// oldest records could not rebuild its store.
    fn check_policy(&self, spec: &TopicSpec) -> Result<()> {
        let Some((_, wanted)) = spec.config.iter().find(|(key, _)| key == CLEANUP_POLICY).filter(|_| self.describes)
        else {
            return Ok(());
        };
        let what = format!("cannot look up the configuration of topic {}", spec.name);
        let resource = ResourceSpecifier::Topic(&spec.name);
        let described = block_on(self.admin.describe_configs([&resource], &options()))
            .map_err(|error| broker_error(&what, error))?;
        let found = described.into_iter().next().and_then(std::result::Result::ok);
        let found = found.and_then(|config| config.get(CLEANUP_POLICY).and_then(|entry| entry.value.clone()));
        match found {
            Some(found) if found == *wanted => Ok(()),
            Some(found) => {
                let message = format!("topic {} has {CLEANUP_POLICY}={found}, not {wanted} as it should", spec.name);
                Err(Error::new(ErrorKind::Config, message))
            }
            None => Err(Error::new(ErrorKind::Unavailable, what)),
        }
    }

    fn create(&self, spec: &TopicSpec) -> Result<()> {
        let count = i32::try_from(spec.partitions).ok().filter(|count| *count > 0).ok_or_else(|| {
            let message = format!("topic {} cannot have {} partitions", spec.name, spec.partitions);
            Error::new(ErrorKind::InvalidArgument, message)
        })?;
        // −1: as many replicas as the brokers are configured to.
        let topic = NewTopic::new(&spec.name, count, TopicReplication::Fixed(-1));
        let topic = spec.config.iter().fold(topic, |topic, (key, value)| topic.set(key, value));
        let results = block_on(self.admin.create_topics([&topic], &options()))
            .map_err(|error| broker_error(&format!("cannot create topic {}", spec.name), error))?;
        for result in results {
            match result {
                // Somebody else was quicker; whether it is what we need is checked next.
                Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
                Err((topic, code)) => {
                    return Err(Error::new(kind_of(code), format!("cannot create topic {topic}: {code}")));
                }
            }
        }
        tracing::info!(topic = spec.name, partitions = spec.partitions, "topic created");
        Ok(())
    }

    /// Deletes `topics`. One that is not there is fine.
    ///
    /// # Errors
    /// What the brokers answer; all topics are tried.
    pub fn delete(&self, topics: &[&str]) -> Result<()> {
        let results = block_on(self.admin.delete_topics(topics, &options()))
            .map_err(|error| broker_error("cannot delete topics", error))?;
        let mut outcome = Ok(());
        for result in results {
            if let Err((topic, code)) = result
                && code != RDKafkaErrorCode::UnknownTopicOrPartition
            {
                outcome = outcome.and(Err(Error::new(kind_of(code), format!("cannot delete topic {topic}: {code}"))));
            }
        }
        outcome
    }
}

impl fmt::Debug for Topics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Topics").finish_non_exhaustive()
    }
}

fn options() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(REQUEST_TIMEOUT)).operation_timeout(Some(REQUEST_TIMEOUT))
}

fn check_partitions(spec: &TopicSpec, found: u32) -> Result<()> {
    if found == spec.partitions {
        return Ok(());
    }
    let message = format!("topic {} has {found} partitions, not {} as it should", spec.name, spec.partitions);
    Err(Error::new(ErrorKind::Config, message))
}
