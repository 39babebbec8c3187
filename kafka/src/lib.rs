//! kstate on Kafka: the traits of `kstate-checkpoint` on rdkafka.
//!
//! - [`Cluster`] says how to reach brokers; [`EmbeddedCluster`] is one in this process, for people without a broker.
//! - [`Topics`] creates and checks topics.
//! - [`SourceConsumer`] reads source partitions and commits positions.
//! - [`ChangelogProducer`] and [`ChangelogConsumer`] write and read changelogs.
//!
//! The guarantee is at least once. `rdkafka` is re-exported: what a client can be configured to is part of this API.

mod changelog_consumer;
mod changelog_producer;
mod cluster;
mod context;
mod embedded;
mod error;
mod source_consumer;
mod topics;

pub use changelog_consumer::ChangelogConsumer;
pub use changelog_producer::ChangelogProducer;
pub use cluster::Cluster;
pub use embedded::{EMBEDDED_LOG_BYTES, EmbeddedCluster};
pub use rdkafka;
pub use source_consumer::SourceConsumer;
pub use topics::{TopicSpec, Topics};
