//! The conformance suite, at each level of durability and in each layout.

use kstate_api::Durability;
use kstate_conformance_tests::{BackendHarness, DynBackendHarness, conformance_tests};
use kstate_store_rocksdb::{RocksDbBackends, RocksDbOptions};

fn backends(durability: Durability) -> RocksDbBackends {
    RocksDbBackends::new(RocksDbOptions::new().durability(durability))
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

mod process {
    use super::*;

    conformance_tests! {
        harness: BackendHarness::new(backends(Durability::Process)),
        persistent: true,
        manages_offsets: true,
        durable_commit: true,
        synced_commit: false,
        snapshots: true,
        reverse_scan: true,
        long_keys: true,
        multi_process_lock: true,
        closed_offsets: true,
        faults: true,
    }
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

mod timestamped_through_trait_objects {
    use super::*;

    conformance_tests! {
        harness: DynBackendHarness::new(RocksDbBackends::new(RocksDbOptions::new().timestamped(true))),
        persistent: true,
        manages_offsets: true,
        durable_commit: true,
        synced_commit: false,
        snapshots: true,
        reverse_scan: true,
        long_keys: true,
        multi_process_lock: true,
        closed_offsets: true,
        faults: true,
    }
}
