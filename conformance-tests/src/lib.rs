//! The conformance suite of kstate: for any store, and any backend of one, of one's own.
//!
//! It checks every clause of [the contract](kstate_api#the-contract), up to and including that a store whose process is
//! killed comes back as exactly one of its commits. Each case is a `#[test]`; one that fails says which clause is
//! violated, and what was seen.
//!
//! # How to use it
//! Add this crate to the `dev-dependencies`, and write one file, say `tests/conformance.rs`. For a
//! [`Backend`](kstate_api::Backend) with its [`BackendSupplier`](kstate_api::BackendSupplier) this is the whole of it:
//!
//! ```
//! # use kstate_store_memory::MemoryBackends as MyBackends;
//! use kstate_conformance_tests::{BackendHarness, DynBackendHarness, conformance_tests};
//!
//! mod my_backend {
//!     use super::*;
//!
//!     conformance_tests! {
//!         harness: BackendHarness::new(MyBackends::new()),
//!         persistent: false,         // a clean close and reopen keeps what was committed
//!         manages_offsets: true,     // the store keeps offsets itself: any backend does
//!         durable_commit: false,     // a commit survives a kill: `Durability::Process` or `Sync`
//!         synced_commit: false,      // a commit survives a power loss: `Durability::Sync`
//!         snapshots: true,           // snapshots work: in any backend they do
//!         reverse_scan: true,        // descending scans work: in any backend they do
//!         long_keys: true,           // keys of 1 MiB are stored
//!         multi_process_lock: false, // a second open is `Locked`: in any persistent backend it is
//!         closed_offsets: true,      // `read_offsets` works: any backend's supplier has it
//!         faults: true,              // the suite can make the store fail: over any backend it can
//!     }
//! }
//!
//! /// What an application does that chooses its engine at run time.
//! mod my_backend_through_trait_objects {
//!     use super::*;
//!
//!     conformance_tests! {
//!         harness: DynBackendHarness::new(MyBackends::new()),
//!         persistent: false,
//!         manages_offsets: true,
//!         durable_commit: false,
//!         synced_commit: false,
//!         snapshots: true,
//!         reverse_scan: true,
//!         long_keys: true,
//!         multi_process_lock: false,
//!         closed_offsets: true,
//!         faults: true,
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! `harness` is an expression: a backend with several levels of durability gets a module for each of them. For a store
//! that is not made of a backend implement [`Harness`]; then `faults` and `closed_offsets` are `false`, unless the
//! harness does more than open the store.
//!
//! For a store whose users know it by an interface of its own implement [`StateStoreHarness`], which says what a record
//! is in the store's words, and declare `state_store_only: true`: cases about ranges, cursors and snapshots are ignored.
//!
//! Run it with `cargo test` or `cargo nextest run`. `cargo test -- o3_` runs what checks clause O3.
//!
//! # Capabilities
//! Each [`Capability`] has to be declared. A case that needs one which is declared `false` is ignored and says so:
//! `ignored, store declares snapshots: false`. A false word is caught by the case `declaration_matches_the_store`.
//!
//! # Cases
//! [`CASES`] is the table of all of them. Their names are stable, and begin with the clause they check, or with the id
//! of a failure that people have met (`ho_40_...`). Each is a plain function, and a [`Suite`] runs them without the
//! macro.
//!
//! - **Model.** Random operations are compared with a sorted map; a sequence that fails is made shorter and printed as a
//!   test to paste. `PROPTEST_CASES` sets how many sequences are tried.
//! - **Kills.** A case starts its own test again as another process, which commits until it is killed. What a store
//!   holds is a function of its offset there, so whatever the kill left can be judged. `SIGKILL` is not a power loss:
//!   what the operating system has not written yet survives it.
//! - **Threads.** Stress tests with readers beside a writer. They find a race with some probability, not always.
//!
//! A case that takes longer than five minutes fails: it has met a deadlock.
//!
//! That each case can fail is proven by a table of stores with one bug each, in this crate's own tests.
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
mod compare;
mod ctx;
mod faults;
mod faulty;
mod faulty_backend;
mod faulty_views;
mod harness;
mod macros;
mod model;
mod operation;
mod state_store_harness;
mod suite;
mod table;
mod violation;
mod workload;

pub use backend_harness::{BackendHarness, DynBackendHarness, SupplierHarness};
pub use capability::{Capability, Declared};
pub use case::{Case, Need, case};
pub use clause::Clause;
pub use compare::{Compare, Mismatch};
pub use ctx::Ctx;
pub use faults::{FaultRates, Faults, Injected, StepFault};
pub use faulty::Faulty;
pub use faulty_backend::FaultyBackend;
pub use harness::{Harness, Told};
pub use operation::{Change, Operation};
pub use state_store_harness::{RecordStore, StateStoreHarness, StateStoreOnly};
#[doc(hidden)]
pub use suite::{__run_state_store_test, __run_test};
pub use suite::{Outcome, Suite, is_child_process};
pub use table::CASES;
pub use violation::{CaseResult, Violation};
