//! What the tests of this crate share. Those of a backend that this crate cannot depend on take [`broker`] and
//! [`scenarios`] from here too.

#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

pub(crate) mod broker;
pub(crate) mod scenarios;

use std::sync::Arc;

use kstate_api::{KeyValueStore, StagedStore};
use kstate_store_memory::MemoryBackend;
use kstate_store_redb::{RedbBackend, RedbOptions, redb::backends::InMemoryBackend};

use broker::changelog;

pub(crate) fn memory_store() -> Arc<dyn KeyValueStore> {
    Arc::new(StagedStore::open("counts", MemoryBackend::new(), &[changelog()]).unwrap())
}

fn redb_store() -> Arc<dyn KeyValueStore> {
    let redb = RedbBackend::open_storage(InMemoryBackend::new(), &RedbOptions::new()).unwrap();
    Arc::new(StagedStore::open("counts", redb, &[changelog()]).unwrap())
}

/// Runs a scenario over each backend that needs no C++: the rules are those of the checkpoint, the store only keeps
/// them.
pub(crate) fn on_each_backend(scenario: fn(scenarios::NewStore<'_>)) {
    for new_store in [memory_store, redb_store] {
        scenario(&new_store);
    }
}
