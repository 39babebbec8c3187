//! The contract, by the conformance suite: on the backend itself, and through trait objects.

use kstate_conformance_tests::{BackendHarness, DynBackendHarness, conformance_tests};
use kstate_store_memory::MemoryBackends;

mod memory {
    use super::*;

    conformance_tests! {
        harness: BackendHarness::new(MemoryBackends::new()),
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
}

mod through_trait_objects {
    use super::*;

    conformance_tests! {
        harness: DynBackendHarness::new(MemoryBackends::new()),
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
}
