use std::path::Path;

use kstate_store_memory::MemoryBackends;

use crate::{
    Result,
    arguments::{Arguments, EngineName, Workload},
    kstate::KstateStore,
    raw_memory::RawMemory,
    redb_engine::RedbEngine,
    store::Store,
};

/// The slowest that kstate's reads may be, as a ratio to the raw engine's.
const READ_AIM: f64 = 1.15;
/// A third of the raw engine's time.
const ZIPF_AIM: f64 = 1.0 / 3.0;

/// An engine at one level of durability, of which a raw store and one of kstate's can be opened, with equal options.
pub(crate) trait Engine {
    /// The engine and its level.
    fn name(&self) -> String;

    /// Whether stores can be opened again where they were closed.
    fn persistent(&self) -> bool {
        true
    }

    /// Whether it says something about this engine at this level.
    fn has(&self, workload: Workload) -> bool;

    /// How many of the `rounds` asked for one can wait for.
    fn load_rounds(&self, rounds: u64) -> u64 {
        rounds
    }

    /// The largest ratio of kstate's time of a load to the raw engine's that is good enough.
    fn load_aim(&self) -> Option<f64>;

    fn open_raw(&self, directory: &Path) -> Result<Box<dyn Store>>;

    fn open_kstate(&self, directory: &Path) -> Result<KstateStore>;

    /// Ends what the engine would do in the background of later reads of the closed store in `directory`.
    fn settle(&self, _directory: &Path) -> Result<()> {
        Ok(())
    }

    fn aim(&self, workload: Workload) -> Option<f64> {
        match workload {
            Workload::Load => self.load_aim(),
            Workload::Get | Workload::Range => Some(READ_AIM),
            Workload::Zipf => Some(ZIPF_AIM),
        }
    }
}

/// The engines that `arguments` ask for.
pub(crate) fn all(arguments: &Arguments) -> Vec<Box<dyn Engine>> {
    let mut engines: Vec<Box<dyn Engine>> = Vec::new();
    if arguments.wants_engine(EngineName::Memory) {
        engines.push(Box::new(MemoryEngine));
    }
    if arguments.wants_engine(EngineName::Redb) {
        engines.extend(RedbEngine::levels(arguments.cache_bytes()).map(|engine| Box::new(engine) as _));
    }
    #[cfg(feature = "rocksdb")]
    if arguments.wants_engine(EngineName::Rocksdb) {
        use crate::rocksdb_engine::RocksDbEngine;
        engines.extend(RocksDbEngine::levels(arguments.cache_bytes()).map(|engine| Box::new(engine) as _));
    }
    engines
}

/// kstate's memory store beside an ordered map of the standard library behind a lock.
struct MemoryEngine;

impl Engine for MemoryEngine {
    fn name(&self) -> String {
        "memory".into()
    }

    fn persistent(&self) -> bool {
        false
    }

    fn has(&self, _: Workload) -> bool {
        true
    }

    fn load_aim(&self) -> Option<f64> {
        None
    }

    fn open_raw(&self, _: &Path) -> Result<Box<dyn Store>> {
        Ok(Box::new(RawMemory::default()))
    }

    fn open_kstate(&self, directory: &Path) -> Result<KstateStore> {
        KstateStore::open(MemoryBackends::new(), directory)
    }
}
