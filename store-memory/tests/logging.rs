//! What the store logs.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../store-redb/tests/common/events.rs"]
mod events;
#[path = "../../store-redb/tests/common/inverted_bounds.rs"]
mod inverted_bounds;

use kstate_api::StagedStore;
use kstate_store_memory::MemoryBackend;

#[test]
fn ho_43_each_inverted_range_is_warned_of_once() {
    let store = StagedStore::open("counts", MemoryBackend::new(), &[]).unwrap();
    inverted_bounds::each_inverted_range_is_warned_of_once(&store);
}
