//! A capability is a token: what a test is ignored for has to be known when it is compiled.

use kstate_conformance_tests::{BackendHarness, conformance_tests};
use kstate_store_memory::MemoryBackends;

const SNAPSHOTS: bool = true;

conformance_tests! {
    harness: BackendHarness::new(MemoryBackends::new()),
    persistent: false,
    manages_offsets: true,
    durable_commit: false,
    synced_commit: false,
    snapshots: SNAPSHOTS,
    reverse_scan: true,
    long_keys: true,
    multi_process_lock: false,
    closed_offsets: true,
    faults: true,
}

fn main() {}
