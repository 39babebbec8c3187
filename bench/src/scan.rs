//! What a start learns from its disk: by the start-up scan, and by opening one store after the other as Kafka Streams
//! does.

use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Parser;
use kstate_api::{KeyValueStoreSupplier, TaskId};
use kstate_offset_cache::{CachedOffset, OffsetCache, StartupScan, StateDirectory, TopologyStores};
use tempfile::TempDir;

use crate::{Result, arguments::EngineName, comparison::interleave, sample::Sample, scan_stores, table::Table};

const APPLICATION: &str = "bench";
/// The name of the store of each task.
pub(crate) const STORE: &str = "counts";

/// Measures the start-up scan beside opening each store read-write, one after the other, and prints a table of both.
#[derive(Clone, Debug, Parser)]
pub(crate) struct ScanArguments {
    /// How many tasks there are, each with one store that was closed cleanly.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    stores: u32,
    /// How many records each store holds.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) records: u64,
    /// How many threads scan.
    #[arg(long, default_value = "2")]
    threads: NonZeroUsize,
    /// How often each side takes its turn.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Where the stores are; a temporary directory in there, or where the system has them.
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Only these engines.
    #[arg(long, value_delimiter = ',')]
    only: Vec<EngineName>,
    /// What `cargo bench` adds.
    #[arg(long, hide = true)]
    bench: bool,
}

impl ScanArguments {
    fn wants(&self, engine: EngineName) -> bool {
        self.only.is_empty() || self.only.contains(&engine)
    }
}

pub(crate) fn run(arguments: &ScanArguments) -> Result<()> {
    let ScanArguments { stores, records, threads, rounds, .. } = arguments;
    let title = format!(
        "{stores} stores of {records} records, closed cleanly; {rounds} rounds. `raw` opens each read-write, reads its \
         offset and closes it, one after the other; `kstate` scans them with {threads} threads. Medians per store in \
         microseconds; ratios of medians kstate/raw, with those of single rounds."
    );
    let mut table = Table::titled(title);
    for (engine, supplier, aim) in scan_stores::suppliers()? {
        if arguments.wants(engine) {
            compare(arguments, &format!("{engine:?}").to_lowercase(), &supplier, aim, &mut table)?;
        }
    }
    print!("{table}");
    Ok(())
}

/// Lets both sides learn the same, in turns.
fn compare(
    arguments: &ScanArguments,
    name: &str,
    supplier: &Arc<dyn KeyValueStoreSupplier>,
    aim: f64,
    table: &mut Table,
) -> Result<()> {
    let temporary = match &arguments.directory {
        Some(directory) => TempDir::new_in(directory)?,
        None => TempDir::new()?,
    };
    let topology = TopologyStores::new(APPLICATION)?.with_logged(0, Arc::clone(supplier))?;
    let directory = StateDirectory::open(temporary.path(), APPLICATION)?;
    let tasks: Vec<_> = (0..arguments.stores).map(|partition| TaskId::new(0, partition)).collect();
    scan_stores::make(arguments, &**supplier, &topology, &directory, &tasks, &temporary.path().join("template"))?;
    let comparison = interleave(
        arguments.rounds,
        || Sample::of(|| open_one_by_one(&**supplier, &topology, &directory, &tasks)),
        || Sample::of(|| scan(arguments, &topology, &directory, &tasks)),
    )?;
    table.push(name.to_owned(), "scan", tasks.len(), comparison, Some(aim));
    Ok(())
}

/// The offset of each task's store, in the tasks' order.
type Offsets = Vec<Option<i64>>;

fn open_one_by_one(
    supplier: &dyn KeyValueStoreSupplier,
    topology: &TopologyStores,
    directory: &StateDirectory,
    tasks: &[TaskId],
) -> Result<Offsets> {
    let offset_of = |task: &TaskId| {
        let changelogs = topology.changelogs(*task);
        let store = supplier.open(&directory.layout().store_directory(*task, STORE)?, &changelogs)?;
        let changelog = changelogs.first().ok_or("no changelog")?;
        let offset = store.committed_offset(changelog)?;
        store.close()?;
        Ok(offset.map(i64::from))
    };
    tasks.iter().map(offset_of).collect()
}

fn scan(
    arguments: &ScanArguments,
    topology: &TopologyStores,
    directory: &StateDirectory,
    tasks: &[TaskId],
) -> Result<Offsets> {
    let cache = OffsetCache::new();
    StartupScan::new(topology).threads(arguments.threads).run(directory, &cache)?;
    let snapshot = cache.snapshot();
    let offset_of = |task: &TaskId| {
        let changelogs = topology.changelogs(*task);
        let known = changelogs.first().and_then(|changelog| snapshot.get(*task, changelog));
        known.and_then(CachedOffset::offset).map(i64::from)
    };
    Ok(tasks.iter().map(offset_of).collect())
}

/// Copies the files of the directory `from` into the directory `to`.
pub(crate) fn copy_files(from: &Path, to: &Path) -> Result<()> {
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}
