//! The contract, by the conformance suite: in every level of durability, and through trait objects.

use kstate_api::Durability;
use kstate_conformance_tests::{BackendHarness, DynBackendHarness, conformance_tests};
use kstate_store_redb::{RedbBackends, RedbOptions};

fn backends(durability: Durability) -> RedbBackends {
    RedbBackends::new(RedbOptions::new().durability(durability))
}

mod sync {
    use super::*;

    conformance_tests! {
        harness: BackendHarness::new(backends(Durability::Sync)),
        persistent: true,
        manages_offsets: true,
        durable_commit: true,
        synced_commit: true,
        snapshots: true,
        reverse_scan: true,
        long_keys: true,
        multi_process_lock: true,
        closed_offsets: true,
        faults: true,
    }
}

/// Served by `Sync`.
mod process {
    use super::*;

    conformance_tests! {
        harness: BackendHarness::new(backends(Durability::Process)),
        persistent: true,
        manages_offsets: true,
        durable_commit: true,
        synced_commit: true,
        snapshots: true,
        reverse_scan: true,
        long_keys: true,
        multi_process_lock: true,
        closed_offsets: true,
        faults: true,
    }
}

mod eventual {
    use super::*;

    conformance_tests! {
        harness: BackendHarness::new(backends(Durability::Eventual)),
        persistent: true,
        manages_offsets: true,
        durable_commit: false,
        synced_commit: false,
        snapshots: true,
        reverse_scan: true,
        long_keys: true,
        multi_process_lock: true,
        closed_offsets: true,
        faults: true,
    }
}

mod through_trait_objects {
    use super::*;

    conformance_tests! {
        harness: DynBackendHarness::new(backends(Durability::Sync)),
        persistent: true,
        manages_offsets: true,
        durable_commit: true,
        synced_commit: true,
        snapshots: true,
        reverse_scan: true,
        long_keys: true,
        multi_process_lock: true,
        closed_offsets: true,
        faults: true,
    }
}
