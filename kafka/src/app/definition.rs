use std::{
    fmt,
    num::NonZeroUsize,
    sync::Arc,
    time::{Duration, Instant},
};

use kstate_api::{Error, ErrorKind, KeyValueStoreSupplier, Result, TaskId, TopicPartition, validate_name};
use kstate_checkpoint::{RestoreOptions, Trigger, TriggerOptions};
use kstate_offset_cache::{OffsetCache, StateDirectory};

use crate::{ChangelogConsumer, Cluster, TopicSpec, Topics};

use super::{Guarantee, Listener, OnError, ProcessingFailure, RebalanceProtocol, processing::Processing, roles::Roles};

/// Decides about a record whose processing failed.
pub(crate) type ErrorHandler = dyn Fn(&ProcessingFailure<'_>) -> OnError + Send + Sync;

/// All that the threads of an app have in common and never change.
pub(crate) struct Definition {
    pub(crate) cluster: Cluster,
    pub(crate) id: String,
    pub(crate) sources: Vec<String>,
    pub(crate) suppliers: Vec<Arc<dyn KeyValueStoreSupplier>>,
    pub(crate) changelogs: Vec<String>,
    pub(crate) processing: Processing,
    pub(crate) roles: Roles,
    /// Where records go that failed for good.
    pub(crate) dead_letters: Option<String>,
    pub(crate) on_error: Box<ErrorHandler>,
    pub(crate) listener: Arc<dyn Listener>,
    pub(crate) guarantee: Guarantee,
    pub(crate) protocol: RebalanceProtocol,
    pub(crate) instance: Option<String>,
    /// How many threads share the tasks among themselves, if no group deals them out.
    pub(crate) alone: Option<NonZeroUsize>,
    pub(crate) trigger: TriggerOptions,
    pub(crate) commit_interval: Duration,
    pub(crate) timeouts: Timeouts,
    pub(crate) directory: StateDirectory,
    pub(crate) cache: Arc<OffsetCache>,
    /// How many tasks there are.
    pub(crate) tasks: u32,
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// The delivery of a checkpoint's records.
    pub(crate) delivery: Duration,
    /// The last checkpoint of an app that stops, and that of partitions that are revoked.
    pub(crate) stop: Duration,
    /// What fails again and again.
    pub(crate) retry: Duration,
}

impl Definition {
    /// The suppliers of the stores, each with the topic that logs them.
    pub(crate) fn stores(&self) -> impl Iterator<Item = (&dyn KeyValueStoreSupplier, &str)> {
        self.suppliers.iter().zip(&self.changelogs).map(|(supplier, changelog)| (&**supplier, changelog.as_str()))
    }

    /// The source partitions of `task`.
    pub(crate) fn sources_of(&self, task: TaskId) -> Vec<TopicPartition> {
        let partition = task.partition().cast_signed();
        self.sources.iter().map(|source| TopicPartition::new(source.as_str(), partition)).collect()
    }

    /// What `thread` reads, if no group deals it out.
    pub(crate) fn own_partitions(&self, thread: usize) -> Option<Vec<TopicPartition>> {
        let threads = self.alone?;
        let tasks = (0..self.tasks).skip(thread).step_by(threads.get());
        Some(tasks.flat_map(|partition| self.sources_of(TaskId::new(0, partition))).collect())
    }

    /// A new reader of changelogs, which sees what the guarantee lets it see.
    pub(crate) fn changelog_reader(&self) -> Result<ChangelogConsumer> {
        match self.guarantee {
            Guarantee::AtLeastOnce => ChangelogConsumer::new(&self.cluster),
            Guarantee::ExactlyOnce => ChangelogConsumer::read_committed(&self.cluster),
        }
    }

    pub(crate) fn restore_options(&self) -> RestoreOptions {
        RestoreOptions::new().retention(self.cluster.log_retention())
    }

    pub(crate) fn new_trigger(&self) -> Trigger {
        Trigger::new(self.trigger.clone(), Instant::now())
    }

    /// After this long without a word the group takes a member for dead.
    pub(crate) fn session_timeout(&self) -> Duration {
        let set = self.cluster.property("session.timeout.ms").and_then(|ms| ms.parse().ok());
        Duration::from_millis(set.unwrap_or(DEFAULT_SESSION_TIMEOUT_MS))
    }

    /// The producer of a thread has this id as long as its directory is the same, so that it ends what its predecessor
    /// in a process that died has left open.
    pub(crate) fn transactional_id(&self, thread: usize) -> String {
        format!("{}-{}-{thread}", self.id, self.directory.process_id())
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Definition").field("id", &self.id).field("sources", &self.sources).finish_non_exhaustive()
    }
}

/// The client's default of `session.timeout.ms`.
const DEFAULT_SESSION_TIMEOUT_MS: u64 = 45_000;

/// The changelog of `store`: the name that Kafka Streams has for it.
pub(crate) fn changelog_topic(application_id: &str, store: &str) -> String {
    format!("{application_id}-{store}-changelog")
}

/// Checks everything that can be checked by its name alone.
pub(crate) fn check_names(
    id: &str,
    sources: &[String],
    changelogs: &[String],
    protocol: RebalanceProtocol,
) -> Result<()> {
    let config = |message: String| Err(Error::new(ErrorKind::Config, message));
    validate_name("application", id)?;
    sources.iter().try_for_each(|source| validate_name("topic", source))?;
    changelogs.iter().try_for_each(|changelog| validate_name("topic", changelog))?;
    if sources.is_empty() {
        return config(format!("the app {id} has no source"));
    }
    if let Some(twice) = first_twice(sources) {
        return config(format!("the app {id} has the source {twice} twice"));
    }
    if let Some(twice) = first_twice(changelogs) {
        return config(format!("the app {id} has two stores with the changelog {twice}"));
    }
    if sources.len() > 1 && protocol == RebalanceProtocol::Cooperative {
        return config(format!(
            "the app {id} has {} sources, whose partitions of one number belong to one task; cooperative-sticky would \
             deal them out one by one: use RebalanceProtocol::Eager",
            sources.len()
        ));
    }
    Ok(())
}

/// Checks the topics at the brokers, and creates the changelogs that are not there. Nothing is created unless all that
/// is there is as it should be.
///
/// Returns the number of partitions.
pub(crate) fn check_topics(cluster: &Cluster, sources: &[String], changelogs: &[String]) -> Result<u32> {
    let config = |message: String| Err(Error::new(ErrorKind::Config, message));
    let topics = Topics::new(cluster)?;
    let mut partitions: Option<(&str, u32)> = None;
    for source in sources {
        let Some(found) = topics.partitions(source)? else {
            return config(format!("the source topic {source} does not exist"));
        };
        match partitions {
            None => partitions = Some((source, found)),
            Some((first, expected)) if expected != found => {
                return config(format!(
                    "the source topic {source} has {found} partitions and {first} has {expected}; a task is one \
                     partition of each"
                ));
            }
            Some(_) => {}
        }
    }
    let count = partitions.map_or(0, |(_, count)| count);
    for changelog in changelogs {
        if let Some(found) = topics.partitions(changelog)?
            && found != count
        {
            return config(format!("the changelog {changelog} has {found} partitions, and its source {count}"));
        }
    }
    changelogs.iter().try_for_each(|changelog| topics.ensure(&TopicSpec::changelog(changelog, count)))?;
    Ok(count)
}

fn first_twice(names: &[String]) -> Option<&String> {
    names
        .iter()
        .enumerate()
        .find(|(index, name)| names.iter().skip(index + 1).any(|other| other == *name))
        .map(|(_, name)| name)
}
