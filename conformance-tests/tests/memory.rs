//! The suite on the in-memory backend: directly, through trait objects, and through a supplier of stores.

#![allow(clippy::unwrap_used, reason = "tests")]

use kstate_api::StagedSupplier;
use kstate_conformance_tests::{BackendHarness, DynBackendHarness, SupplierHarness, conformance_tests};
use kstate_store_memory::MemoryBackends;

mod direct {
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

mod through_a_supplier {
    use super::*;

    conformance_tests! {
        harness: SupplierHarness::new(StagedSupplier::new("counts", MemoryBackends::new()).unwrap()),
        persistent: false,
        manages_offsets: true,
        durable_commit: false,
        synced_commit: false,
        snapshots: true,
        reverse_scan: true,
        long_keys: true,
        multi_process_lock: false,
        closed_offsets: true,
        faults: false,
    }
}
