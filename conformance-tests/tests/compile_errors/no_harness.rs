//! A supplier of backends is no harness; `BackendHarness::new` makes one of it.

use kstate_conformance_tests::conformance_tests;
use kstate_store_memory::MemoryBackends;

conformance_tests! {
    harness: MemoryBackends::new(),
    persistent: false,
    manages_offsets: true,
    durable_commit: false,
    synced_commit: false,
    snapshots: true,
    reverse_scan: true,
    long_keys: true,
    multi_process_lock: false,
    closed_offsets: true,
    faults: true,
}

fn main() {}
