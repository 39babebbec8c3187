use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Measures kstate's stores beside the raw engines doing the same work, and prints a table of both and their ratios.
#[derive(Clone, Debug, Parser)]
pub(crate) struct Arguments {
    /// How many records the stores hold. Counts of gets, scans and updates go with it.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) records: u64,
    /// How often each side takes its turn. Loads of redb, which take long, have half as many rounds.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rounds: u64,
    /// How many records one commit has.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) commit_every: u64,
    /// The cache of each store on a disk, in MiB.
    #[arg(long, default_value_t = 256)]
    pub(crate) cache_mib: usize,
    /// Where the stores are; a temporary directory in there, or where the system has them.
    #[arg(long)]
    pub(crate) directory: Option<PathBuf>,
    /// Only these engines.
    #[arg(long, value_delimiter = ',')]
    only: Vec<EngineName>,
    /// Only these workloads.
    #[arg(long, value_delimiter = ',')]
    workload: Vec<Workload>,
    /// What `cargo bench` adds.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    Memory,
    Redb,
    #[cfg(feature = "rocksdb")]
    Rocksdb,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    /// Puts in the order of arrival, and commits.
    Load,
    /// Gets of single keys.
    Get,
    /// Scans of 100 rows.
    Range,
    /// Read, add one, write; few keys are many of the updates.
    Zipf,
}

impl Arguments {
    pub(crate) fn wants_engine(&self, name: EngineName) -> bool {
        self.only.is_empty() || self.only.contains(&name)
    }

    pub(crate) fn wants(&self, workload: Workload) -> bool {
        self.workload.is_empty() || self.workload.contains(&workload)
    }

    pub(crate) fn cache_bytes(&self) -> usize {
        self.cache_mib << 20
    }
}
