//! kstate on Kafka: the traits of `kstate-checkpoint` on rdkafka.
//!
//! - [`app`] runs tasks: sources, a processing function, stores, outputs, in a group of members.
//! - [`Cluster`] says how to reach brokers; [`EmbeddedCluster`] is one in this process, for people without a broker.
//! - [`Topics`] creates and checks topics.
//! - [`SourceConsumer`] reads source partitions and commits positions; [`GroupOffsets`] only looks up what is committed.
//! - [`TransactionalProducer`] writes changelogs, outputs and positions in one transaction: exactly once.
//! - [`ChangelogProducer`] and [`ChangelogConsumer`] write and read changelogs.
//! - [`LogEndsConsumer`] asks how far changelogs go, for lags.
//!
//! A task from its restore to its checkpoint:
//!
//! ```
//! use std::{slice, sync::Arc, time::Duration};
//!
//! use kstate_api::{KeyValueStore, StagedStore, StateStore, TaskId, TopicPartition};
//! use kstate_checkpoint::{LoggedStore, RestoreOptions, Task, checkpoint, restore};
//! use kstate_kafka::{ChangelogConsumer, ChangelogProducer, EmbeddedCluster, SourceConsumer};
//! # use kstate_store_memory::MemoryBackend;
//!
//! # fn main() -> kstate_api::Result<()> {
//! let embedded = EmbeddedCluster::start()?;
//! let cluster = embedded.cluster();
//! embedded.create_topic("lines", 1)?;
//! embedded.create_topic("counts-changelog", 1)?;
//! let (source, changelog) = (TopicPartition::new("lines", 0), TopicPartition::new("counts-changelog", 0));
//!
//! let store = Arc::new(StagedStore::open("counts", MemoryBackend::new(), slice::from_ref(&changelog))?);
//! let logged = LoggedStore::new(store.clone(), changelog.clone())?;
//! let mut lines = SourceConsumer::assign(&cluster, "my-group", slice::from_ref(&source))?;
//! let mut reader = ChangelogConsumer::new(&cluster)?;
//! let options = RestoreOptions::new().retention(cluster.log_retention());
//! restore(&logged, lines.committed(), &mut reader, &options, &mut |_| {})?;
//!
//! // Between records: the changes of all that was polled, and the position after it.
//! let task = Task::new(TaskId::new(0, 0), vec![source], vec![logged]);
//! let mut producer = ChangelogProducer::new(&cluster, Duration::from_secs(30))?;
//! store.put(b"word", b"1")?;
//! let committed = checkpoint(&[task], &lines.position()?, &mut producer, &mut lines)?;
//! assert_eq!(committed.changelog_records, 1);
//! assert_eq!(store.committed_offset(&changelog)?.map(|offset| offset.get()), Some(0));
//! # Ok(())
//! # }
//! ```
//!
//! That is at least once. `rdkafka` is re-exported: what a client can be configured to is part of this API.

pub mod app;
mod changelog_consumer;
mod changelog_producer;
mod cluster;
mod context;
mod deliveries;
mod embedded;
mod error;
mod group_offsets;
mod leaders;
mod log_ends;
mod rebalance;
mod sender;
mod source_consumer;
mod topics;
mod transactional_producer;

pub use changelog_consumer::ChangelogConsumer;
pub use changelog_producer::ChangelogProducer;
pub use cluster::Cluster;
pub use embedded::{EMBEDDED_LOG_BYTES, EmbeddedCluster};
pub use group_offsets::{GroupOffsets, GroupPosition};
pub use log_ends::LogEndsConsumer;
pub use rdkafka;
pub use source_consumer::SourceConsumer;
pub use topics::{TopicSpec, Topics};
pub use transactional_producer::{TransactionCommitter, TransactionalProducer};
