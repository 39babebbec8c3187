//! A store of keys and values is not declared as less.

use kstate_conformance_tests::{BackendHarness, conformance_tests};
use kstate_store_memory::MemoryBackends;

conformance_tests! {
    harness: BackendHarness::new(MemoryBackends::new()),
    state_store_only: true,
    persistent: false,
    manages_offsets: true,
    durable_commit: false,
    synced_commit: false,
    multi_process_lock: false,
    closed_offsets: true,
}

fn main() {}
