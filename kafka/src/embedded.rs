use std::fmt;

use kstate_api::{Error, ErrorKind, Result};
use rdkafka::{mocking::MockCluster, producer::DefaultProducerContext};

use crate::Cluster;

/// How many bytes each partition of an [`EmbeddedCluster`] keeps, roughly: the mock's limit is 5 MiB.
pub const EMBEDDED_LOG_BYTES: u64 = 5 << 20;

/// A Kafka cluster inside this process, in memory, for trying things out without a broker: librdkafka's mock.
///
/// It listens on loopback, so other processes can use it too, until it is dropped.
///
/// # Limits
/// - Each partition keeps about [`EMBEDDED_LOG_BYTES`] or 100 000 batches and drops its oldest beyond that. A producer
///   must not run further ahead of its consumers.
/// - It does not compact, so a large state cannot be rebuilt from a changelog: a restore that needs dropped records
///   fails as `Unsupported` ([`Cluster::log_retention`]).
/// - It has no administration: topics are made by [`create_topic`](EmbeddedCluster::create_topic).
/// - Its transactions are hollow. At-least-once only.
///
/// ```
/// use kstate_kafka::EmbeddedCluster;
///
/// # fn main() -> kstate_api::Result<()> {
/// let embedded = EmbeddedCluster::start()?;
/// embedded.create_topic("lines", 2)?;
/// let cluster = embedded.cluster();
/// # cluster.check(std::time::Duration::from_secs(10))
/// # }
/// ```
pub struct EmbeddedCluster {
    mock: MockCluster<'static, DefaultProducerContext>,
}

impl EmbeddedCluster {
    /// Starts a cluster of one broker on a free port.
    ///
    /// # Errors
    /// `Io` if it cannot listen.
    pub fn start() -> Result<Self> {
        let mock = MockCluster::new(1).map_err(|error| {
            Error::new(ErrorKind::Io, format!("cannot start the embedded cluster: {error}")).with_source(error)
        })?;
        Ok(Self { mock })
    }

    /// Makes a topic.
    ///
    /// # Errors
    /// `InvalidArgument` for a bad name or no partitions, `Config` if the topic is there already.
    pub fn create_topic(&self, topic: &str, partitions: u32) -> Result<()> {
        kstate_api::validate_name("topic", topic)?;
        let count = i32::try_from(partitions).ok().filter(|count| *count > 0).ok_or_else(|| {
            Error::new(ErrorKind::InvalidArgument, format!("topic {topic} cannot have {partitions} partitions"))
        })?;
        self.mock.create_topic(topic, count, 1).map_err(|error| {
            Error::new(ErrorKind::Config, format!("cannot create topic {topic}: {error}")).with_source(error)
        })
    }

    /// How to reach it.
    #[must_use]
    pub fn cluster(&self) -> Cluster {
        Cluster::embedded(self.mock.bootstrap_servers())
    }
}

impl fmt::Debug for EmbeddedCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedCluster").field("brokers", &self.mock.bootstrap_servers()).finish()
    }
}
