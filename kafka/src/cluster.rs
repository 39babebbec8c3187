use std::time::Duration;

use kstate_api::{Error, ErrorKind, Result};
use kstate_checkpoint::LogRetention;
use rdkafka::{
    ClientConfig,
    consumer::{BaseConsumer, Consumer, ConsumerContext},
};

use crate::context::Context;

/// How to reach the brokers of a cluster, and what every client of it is configured to.
///
/// ```
/// use kstate_kafka::Cluster;
///
/// let cluster = Cluster::new("broker-1:9092,broker-2:9092").with("security.protocol", "plaintext");
/// assert_eq!(cluster.brokers(), "broker-1:9092,broker-2:9092");
/// ```
#[derive(Clone, Debug)]
pub struct Cluster {
    brokers: String,
    properties: Vec<(String, String)>,
    log_retention: LogRetention,
}

impl Cluster {
    /// The cluster of `brokers`: `host:port`, separated by commas.
    pub fn new(brokers: impl Into<String>) -> Self {
        Self { brokers: brokers.into(), properties: Vec::new(), log_retention: LogRetention::Compacted }
    }

    /// Sets a property of librdkafka on every client: security, timeouts and the like.
    ///
    /// ```
    /// # use kstate_kafka::Cluster;
    /// let cluster = Cluster::new("localhost:9092").with("socket.timeout.ms", "10000");
    /// ```
    #[must_use]
    pub fn with(mut self, property: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.push((property.into(), value.into()));
        self
    }

    /// The [`EmbeddedCluster`](crate::EmbeddedCluster) of another process, at `brokers`.
    ///
    /// ```
    /// use kstate_checkpoint::LogRetention;
    /// use kstate_kafka::Cluster;
    ///
    /// let cluster = Cluster::embedded("127.0.0.1:39999");
    /// assert_eq!(cluster.log_retention(), LogRetention::DropsOldest);
    /// ```
    pub fn embedded(brokers: impl Into<String>) -> Self {
        // It answers a fetch that finds nothing after this time only, even if something came meanwhile, and each
        // rebalance of a group takes it a second less than a session.
        Self::new(brokers)
            .dropping_oldest()
            .with("fetch.wait.max.ms", "10")
            .with("session.timeout.ms", "3000")
            .with("heartbeat.interval.ms", "300")
    }

    /// Says that this cluster's logs drop their oldest records whatever the topic's policy.
    ///
    /// ```
    /// # use kstate_kafka::Cluster;
    /// let cluster = Cluster::new("localhost:9092").dropping_oldest();
    /// ```
    #[must_use]
    pub fn dropping_oldest(mut self) -> Self {
        self.log_retention = LogRetention::DropsOldest;
        self
    }

    /// The brokers it was made with.
    #[must_use]
    pub fn brokers(&self) -> &str {
        &self.brokers
    }

    /// What this cluster's changelogs do with their oldest records.
    #[must_use]
    pub fn log_retention(&self) -> LogRetention {
        self.log_retention
    }

    /// Waits until a broker answers.
    ///
    /// # Errors
    /// `Unavailable` if none does within `timeout`, `Config` for a property that the client does not take.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kstate_api::ErrorKind;
    /// use kstate_kafka::Cluster;
    ///
    /// // A port on which nothing listens.
    /// let error = Cluster::new("127.0.0.1:1").check(Duration::from_millis(200)).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Unavailable);
    /// ```
    pub fn check(&self, timeout: Duration) -> Result<()> {
        let client = self.create_consumer("check", &[], Context)?;
        client.fetch_metadata(None, timeout).map_err(|source| {
            let message = format!("no broker at {} answers within {timeout:?}", self.brokers);
            Error::new(ErrorKind::Unavailable, message).with_source(source)
        })?;
        Ok(())
    }

    /// What the user has set `property` to.
    pub(crate) fn property(&self, property: &str) -> Option<&str> {
        self.properties.iter().rev().find(|(found, _)| found == property).map(|(_, value)| value.as_str())
    }

    /// The largest record that a producer of the cluster sends, in bytes.
    pub(crate) fn max_record_bytes(&self) -> usize {
        self.property("message.max.bytes").and_then(|bytes| bytes.parse().ok()).unwrap_or(DEFAULT_MAX_RECORD_BYTES)
    }

    /// What every client of the cluster is configured to; `own` are a client's needs, the user's properties go last.
    pub(crate) fn client_config(&self, own: &[(&str, &str)]) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.brokers);
        // A broker that went away is tried again within a second, not within ten.
        config.set("reconnect.backoff.max.ms", "1000");
        for (property, value) in own {
            config.set(*property, *value);
        }
        for (property, value) in &self.properties {
            config.set(property, value);
        }
        config
    }

    /// A consumer that commits only what it is told to, in `group`.
    pub(crate) fn create_consumer<C: ConsumerContext>(
        &self,
        group: &str,
        own: &[(&str, &str)],
        context: C,
    ) -> Result<BaseConsumer<C>> {
        let mut config = self.client_config(&[
            ("group.id", group),
            ("enable.auto.commit", "false"),
            ("enable.auto.offset.store", "false"),
            // An offset that is not there is for us to judge: the client would jump in silence.
            ("auto.offset.reset", "error"),
            ("allow.auto.create.topics", "false"),
            // Bounds the memory of one client; by default it may queue 64 MiB for each partition.
            ("queued.max.messages.kbytes", "16384"),
            // By default a partition that outruns its reader rests for a second.
            ("fetch.queue.backoff.ms", "10"),
        ]);
        for (property, value) in own {
            config.set(*property, *value);
        }
        config.create_with_context(context).map_err(|error| {
            Error::new(ErrorKind::Config, format!("cannot make a Kafka consumer: {error}")).with_source(error)
        })
    }
}

/// The client's default of `message.max.bytes`.
const DEFAULT_MAX_RECORD_BYTES: usize = 1_000_000;

/// How long one request to the brokers may take, its retries included.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
