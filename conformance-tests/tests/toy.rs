//! The suite on the toy store without a bug, for each durability, and on a modest one that can do less: nothing fails,
//! and what cannot be done is skipped.

#![allow(dead_code, missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod planted;

use kstate_api::Durability;
use kstate_conformance_tests::{BackendHarness, conformance_tests};
use planted::{backend::ToyBackends, bug::Bug, store::ToyHarness};

mod eventual {
    use super::*;

    conformance_tests! {
        harness: BackendHarness::new(ToyBackends::new(Bug::None, Durability::Eventual)),
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
        harness: ToyHarness::new(Bug::None, Durability::Process),
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
        harness: BackendHarness::new(ToyBackends::new(Bug::None, Durability::Sync)),
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

mod short_keys {
    use super::*;

    conformance_tests! {
        harness: BackendHarness::new(ToyBackends {
            short_keys: true,
            ..ToyBackends::new(Bug::None, Durability::Process)
        }),
        persistent: true,
        manages_offsets: true,
        durable_commit: true,
        synced_commit: false,
        snapshots: true,
        reverse_scan: true,
        long_keys: false,
        multi_process_lock: true,
        closed_offsets: true,
        faults: true,
    }
}

mod modest {
    use super::*;

    conformance_tests! {
        harness: ToyHarness { modest: true, ..ToyHarness::new(Bug::None, Durability::Process) },
        persistent: true,
        manages_offsets: false,
        durable_commit: true,
        synced_commit: false,
        snapshots: false,
        reverse_scan: false,
        long_keys: true,
        multi_process_lock: true,
        closed_offsets: false,
        faults: false,
    }
}
