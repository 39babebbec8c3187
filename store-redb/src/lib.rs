//! A kstate backend on redb, a B-tree engine in pure Rust.

mod backend;
mod cache;
mod commit;
mod current;
mod cursor;
mod error;
mod held;
mod layout;
mod options;
mod snapshot;
mod status;
mod supplier;
mod view;

pub use backend::RedbBackend;
pub use cache::CacheBudget;
pub use options::RedbOptions;
pub use redb;
pub use supplier::RedbBackends;
