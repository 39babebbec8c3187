//! `snapshot` is no capability; `snapshots` is.

use kstate_conformance_tests::{BackendHarness, conformance_tests};
use kstate_store_memory::MemoryBackends;

conformance_tests! {
    harness: BackendHarness::new(MemoryBackends::new()),
    persistent: false,
    manages_offsets: true,
    durable_commit: false,
    synced_commit: false,
    snapshot: true,
    reverse_scan: true,
    long_keys: true,
    multi_process_lock: false,
    closed_offsets: true,
    faults: true,
}

fn main() {}
