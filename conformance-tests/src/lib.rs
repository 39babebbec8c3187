//! The conformance suite of kstate: for any store, and any backend of one, of one's own.
//!
//! It checks every clause of [the contract](kstate_api#the-contract), up to and including that a store whose process is
//! killed comes back as exactly one of its commits. Each case is a `#[test]`; one that fails says which clause is
//! violated, and what was seen.
//!
//! # How to use it
//! Add this crate to the `dev-dependencies`, and write one file. For a [`Backend`](kstate_api::Backend) and its
//! [`BackendSupplier`](kstate_api::BackendSupplier) it is `tests/conformance.rs` with
//!
//! ```
//! # use kstate_store_memory::MemoryBackends as MyBackends;
//! use kstate_conformance_tests::{BackendHarness, DynBackendHarness, conformance_tests};
//!
//! mod my_backend {
//!     # use super::{BackendHarness, MyBackends, conformance_tests};
//!     conformance_tests! {
//!         harness: BackendHarness::new(MyBackends::new()),
//!         persistent: false,         // a clean close and reopen keeps what was committed
//!         manages_offsets: true,     // the store keeps offsets itself: so does any backend
//!         durable_commit: false,     // a commit survives a kill: `Durability::Process` or `Sync`
//!         synced_commit: false,      // a commit survives a power loss: `Durability::Sync`
//!         snapshots: true,           // snapshots work
//!         reverse_scan: true,        // descending scans work
//!         multi_process_lock: false, // a second open is `Locked`: so it is for any persistent backend
//!         closed_offsets: true,      // `read_offsets` works: so it does for any backend's supplier
//!         faults: true,              // the suite can make the backend fail: so it can any backend
//!     }
//! }
//!
//! mod my_backend_through_trait_objects {
//!     # use super::{DynBackendHarness, MyBackends, conformance_tests};
//!     conformance_tests! {
//!         harness: DynBackendHarness::new(MyBackends::new()),
//!         # persistent: false, manages_offsets: true, durable_commit: false, synced_commit: false,
//!         # snapshots: true, reverse_scan: true, multi_process_lock: false, closed_offsets: true,
//!         // and so on
//!         faults: true,
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! (each module begins with `use super::*;`). `harness` is an expression: a backend with several durability levels gets
//! a module for each of them. For a store that is no backend, implement [`Harness`]; then `faults` and `closed_offsets`
//! are `false` unless it does more than open the store.
//!
//! Run it with `cargo test` or `cargo nextest run`. `cargo test -- o3_` runs what checks clause O3.
//!
//! # Capabilities
//! Each [`Capability`] has to be declared. A case that needs one which is declared `false` is ignored and says so:
//! `ignored, store declares snapshots: false`. A false word is caught by the case `declaration_matches_the_store`.
//!
//! # Cases
//! [`CASES`] is the table of all of them; their names are stable. Each is a plain function, and [`Suite`] runs them
//! without the macro.
//!
//! Cases may be added in minor versions. A new one that fails a store has found a fault, in the store or in the case.

mod backend_harness;
mod calls;
mod capability;
mod case;
mod cases;
mod check;
mod child;
mod clause;
mod ctx;
mod faults;
mod faulty_backend;
mod harness;
mod macros;
mod model;
mod operation;
mod suite;
mod table;
mod violation;
mod workload;

pub use backend_harness::{BackendHarness, DynBackendHarness, SupplierHarness};
pub use capability::{Capability, Declared};
pub use case::{Case, Need, case};
pub use clause::Clause;
pub use ctx::Ctx;
pub use faults::{Faults, StepFault};
pub use faulty_backend::FaultyBackend;
pub use harness::{Harness, Told};
pub use operation::{Change, Operation};
#[doc(hidden)]
pub use suite::__run_test;
pub use suite::{Outcome, Suite, is_child_process};
pub use table::CASES;
pub use violation::{CaseResult, Violation};
