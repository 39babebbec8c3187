//! What one process of the matrix is told.

use std::{path::Path, slice, sync::Arc};

use kstate_api::{Durability, KeyValueStore, KeyValueStoreSupplier, Result, StagedSupplier, TopicPartition};
use kstate_kafka::ChangelogConsumer;
use kstate_store_redb::{RedbBackends, RedbOptions};
use kstate_store_rocksdb::{RocksDbBackends, RocksDbOptions};

use crate::broker_support::cluster;

/// Where a process dies: at the n-th time that it comes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Append,
    Flush,
    /// Every delivery was acknowledged; before the source commit or the transaction's.
    SourceCommit,
    /// The source commit has happened; before the commit of the stores.
    StoreCommit,
    /// The first of the two stores has its commit; before that of the second (clause P6).
    SecondStoreCommit,
    CheckpointEnd,
    RestorePoll,
    RestoreApplied,
}

/// In the third checkpoint, for its first two are what a restart can build on. Each writes a record for each key and one
/// for the total: 38, or 37 where the workers leave the slow key out.
pub(crate) const CHECKPOINT_STEPS: [(Step, u32); 8] = [
    (Step::Append, 77),
    (Step::Append, 90),
    (Step::Append, 111),
    (Step::Flush, 3),
    (Step::SourceCommit, 3),
    (Step::StoreCommit, 3),
    (Step::SecondStoreCommit, 3),
    (Step::CheckpointEnd, 3),
];
pub(crate) const RESTORE_STEPS: [(Step, u32); 3] =
    [(Step::RestorePoll, 1), (Step::RestorePoll, 30), (Step::RestoreApplied, 2)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guarantee {
    AtLeastOnce,
    ExactlyOnce,
}

/// Who processes the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The task's own thread, one after the other.
    InOrder,
    /// Several workers, whose positions have holes.
    Workers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Redb,
    RocksDb,
}

/// The names of one run's topics and group; a word of the environment.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) guarantee: Guarantee,
    pub(crate) engine: Engine,
    pub(crate) mode: Mode,
    pub(crate) run: String,
    pub(crate) source: String,
    pub(crate) death: Option<(Step, u32)>,
}

impl Job {
    pub(crate) fn words(&self) -> String {
        let Self { guarantee, engine, mode, run, source, death } = self;
        let death = death.map_or("None 0".into(), |(step, count)| format!("{step:?} {count}"));
        format!("{guarantee:?} {engine:?} {mode:?} {run} {source} {death}")
    }

    pub(crate) fn read(words: &str) -> Self {
        let [guarantee, engine, mode, run, source, step, count] =
            words.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let steps = CHECKPOINT_STEPS.iter().chain(&RESTORE_STEPS);
        let step = steps.map(|(step, _)| *step).find(|known| format!("{known:?}") == step);
        Self {
            guarantee: if guarantee == "ExactlyOnce" { Guarantee::ExactlyOnce } else { Guarantee::AtLeastOnce },
            engine: if engine == "Redb" { Engine::Redb } else { Engine::RocksDb },
            mode: if mode == "Workers" { Mode::Workers } else { Mode::InOrder },
            run: run.into(),
            source: source.into(),
            death: step.map(|step| (step, count.parse().unwrap())),
        }
    }

    pub(crate) fn source(&self) -> TopicPartition {
        TopicPartition::new(self.source.as_str(), 0)
    }

    pub(crate) fn changelog(&self, store: &str) -> TopicPartition {
        TopicPartition::new(format!("{}-{store}-changelog", self.run), 0)
    }

    pub(crate) fn output(&self) -> TopicPartition {
        TopicPartition::new(format!("{}-output", self.run), 0)
    }

    pub(crate) fn reader(&self) -> Result<ChangelogConsumer> {
        match self.guarantee {
            Guarantee::AtLeastOnce => ChangelogConsumer::new(&cluster()),
            Guarantee::ExactlyOnce => ChangelogConsumer::read_committed(&cluster()),
        }
    }

    /// What the stores keep when they are killed: the least that they may, for the log has to have the rest; or else
    /// everything, so that the one has what the other lacks.
    fn durability(&self) -> Durability {
        match self.death {
            Some((Step::SecondStoreCommit, _)) => Durability::Process,
            _ => Durability::Eventual,
        }
    }

    pub(crate) fn open(&self, directory: &Path, name: &str) -> Result<Arc<dyn KeyValueStore>> {
        let changelog = self.changelog(name);
        let (directory, partitions) = (directory.join(name), slice::from_ref(&changelog));
        match self.engine {
            Engine::Redb => {
                let options = RedbOptions::new().durability(self.durability()).flush_every(2, u64::MAX);
                StagedSupplier::new(name, RedbBackends::new(options))?.open(&directory, partitions)
            }
            Engine::RocksDb => {
                let options = RocksDbOptions::new().durability(self.durability());
                StagedSupplier::new(name, RocksDbBackends::new(options))?.open(&directory, partitions)
            }
        }
    }
}
