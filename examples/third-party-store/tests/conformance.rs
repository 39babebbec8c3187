//! The suite on the backend, directly and behind trait objects: this file is all that it takes.

use kstate_conformance_tests::{BackendHarness, DynBackendHarness, conformance_tests};
use third_party_store::FjallBackends;

mod direct {
    use super::*;

    conformance_tests! {
        harness: BackendHarness::new(FjallBackends),
        persistent: true,
        manages_offsets: true,
        durable_commit: true,
        synced_commit: true,
        snapshots: true,
        reverse_scan: true,
        long_keys: false,
        multi_process_lock: true,
        closed_offsets: true,
        faults: true,
    }
}

mod through_trait_objects {
    use super::*;

    conformance_tests! {
        harness: DynBackendHarness::new(FjallBackends),
        persistent: true,
        manages_offsets: true,
        durable_commit: true,
        synced_commit: true,
        snapshots: true,
        reverse_scan: true,
        long_keys: false,
        multi_process_lock: true,
        closed_offsets: true,
        faults: true,
    }
}
