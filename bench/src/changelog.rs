//! What a changelog costs on a real broker: restores beside a bare consumer and a store that only applies, checkpoints
//! beside a bare producer.

use std::{
    env,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use clap::Parser;
use kstate_api::{KeyValueStore, KeyValueStoreSupplier, Offset, Position, StagedSupplier, TaskId, TopicPartition};
use kstate_checkpoint::{LoggedStore, Task};
use kstate_kafka::{Cluster, TopicSpec, Topics};
use kstate_store_redb::{RedbBackends, RedbOptions};

use crate::{Result, arguments::EngineName};

mod bare;
mod checkpoints;
mod restores;

/// How long the broker may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Measures restores and checkpoints on a real broker.
#[derive(Clone, Debug, Parser)]
pub(crate) struct ChangelogArguments {
    /// The broker's address; `KSTATE_TEST_BROKERS` unless it is given.
    #[arg(long)]
    brokers: Option<String>,
    /// How many records of 116 bytes are restored.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) records: u64,
    /// How many records one checkpoint has.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) staged: u64,
    /// How often each restore takes its turn.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rounds: u64,
    /// How many checkpoints are taken.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) checkpoints: u64,
    /// Only these engines.
    #[arg(long, value_delimiter = ',')]
    only: Vec<EngineName>,
    /// What `cargo bench` adds.
    #[arg(long, hide = true)]
    bench: bool,
}

pub(crate) fn run(arguments: &ChangelogArguments) -> Result<()> {
    let brokers = arguments.brokers.clone().or_else(|| env::var("KSTATE_TEST_BROKERS").ok());
    let cluster = Cluster::new(brokers.ok_or("name a broker: --brokers, or KSTATE_TEST_BROKERS")?);
    let scene = Scene::new(&cluster)?;
    restores::run(arguments, &scene)?;
    checkpoints::run(arguments, &scene)?;
    Ok(scene.topics.delete(&scene.all().each_ref().map(TopicPartition::topic))?)
}

/// The topics of one run, each of one partition.
pub(crate) struct Scene {
    pub(crate) cluster: Cluster,
    topics: Topics,
    /// The changelog that is restored.
    pub(crate) full: TopicPartition,
    /// The changelog that checkpoints are written to.
    pub(crate) changelog: TopicPartition,
    /// Where the bare producer sends.
    pub(crate) bare: TopicPartition,
    pub(crate) source: TopicPartition,
}

impl Scene {
    fn new(cluster: &Cluster) -> Result<Self> {
        let run = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
        let named = |role| TopicPartition::new(format!("bench-{run}-{role}"), 0);
        let scene = Self {
            cluster: cluster.clone(),
            topics: Topics::new(cluster)?,
            full: named("full"),
            changelog: named("changelog"),
            bare: named("bare"),
            source: named("source"),
        };
        for topic in scene.all() {
            scene.topics.ensure(&TopicSpec::changelog(topic.topic(), 1))?;
        }
        Ok(scene)
    }

    fn all(&self) -> [TopicPartition; 4] {
        [&self.full, &self.changelog, &self.bare, &self.source].map(Clone::clone)
    }

    /// The position after `records` of the source.
    pub(crate) fn position(&self, records: u64) -> Result<Position> {
        let next = Offset::new(i64::try_from(records)?).ok_or("a negative offset")?;
        Ok([(self.source.clone(), next)].into_iter().collect())
    }

    /// An open store of `engine` in `directory`, and the task that logs it to `changelog`.
    pub(crate) fn open(
        &self,
        engine: EngineName,
        directory: &Path,
        changelog: &TopicPartition,
    ) -> Result<(Arc<dyn KeyValueStore>, Task)> {
        let partitions = std::slice::from_ref(changelog);
        let store = match engine {
            EngineName::Memory => {
                StagedSupplier::new("bench", kstate_store_memory::MemoryBackends::new())?.open(directory, partitions)?
            }
            EngineName::Redb => {
                StagedSupplier::new("bench", RedbBackends::new(RedbOptions::new()))?.open(directory, partitions)?
            }
            #[cfg(feature = "rocksdb")]
            EngineName::Rocksdb => {
                let backends = kstate_store_rocksdb::RocksDbBackends::new(kstate_store_rocksdb::RocksDbOptions::new());
                StagedSupplier::new("bench", backends)?.open(directory, partitions)?
            }
        };
        let logged = LoggedStore::new(Arc::clone(&store) as _, changelog.clone())?;
        Ok((store, Task::new(TaskId::new(0, 0), vec![self.source.clone()], vec![logged])))
    }
}

impl ChangelogArguments {
    /// The engines that are wanted, with the options that a user has who chooses none.
    pub(crate) fn engines(&self) -> impl Iterator<Item = EngineName> {
        let engines = [
            EngineName::Memory,
            EngineName::Redb,
            #[cfg(feature = "rocksdb")]
            EngineName::Rocksdb,
        ];
        engines.into_iter().filter(|engine| self.only.is_empty() || self.only.contains(engine))
    }
}
