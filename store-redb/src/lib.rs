//! A kstate backend on redb, a B-tree engine in pure Rust.
//!
//! ```
//! use kstate_api::{KeyValueStore, KeyValueStoreSupplier, ReadOnlyKeyValueStoreExt, StagedSupplier, StateStore};
//! use kstate_store_redb::{RedbBackends, RedbOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let temporary = tempfile::tempdir()?;
//! # let state = temporary.path();
//! let supplier = StagedSupplier::new("counts", RedbBackends::new(RedbOptions::new()))?;
//! let store = supplier.open(&state.join("0_0/counts"), &[])?;
//! store.put(b"word", b"1")?;
//! store.commit(&Default::default())?;
//! store.close()?;
//!
//! let store = supplier.open(&state.join("0_0/counts"), &[])?;
//! assert_eq!(store.get(b"word")?.unwrap(), "1");
//! # Ok(())
//! # }
//! ```
//!
//! # When to choose it
//! It needs nothing but a Rust compiler, opens in a millisecond, reads fast, and recovers from a crash in about the time
//! of an open. It **loads slowly**: a B-tree rewrites a page for nearly every random key. Measured on one machine (two
//! cores, a million records of 116 bytes, 10 000 for each commit):
//!
//! | against `RocksDB` with its log | time |
//! | --- | --- |
//! | puts in random order, commits included | about 15 times as long; half that with `Eventual` |
//! | puts in ascending order, commits included | about 2.4 times as long |
//! | gets of rows in the cache | about a quarter |
//! | scans of 100 rows | a sixth (all cached) to four tenths |
//!
//! So: state that is read more than it is written, or fits in the cache, or comes in the order of its keys. Where each
//! checkpoint writes tens of thousands of scattered keys, use the `RocksDB` backend.
//!
//! # Durability
//! Records, offsets and position of a commit are one transaction of redb, so at every level they agree after any crash.
//! The level says which commit that is:
//!
//! | [`Durability`](kstate_api::Durability) | a kill loses | a power loss loses | loading in random order takes |
//! | --- | --- | --- | --- |
//! | `Sync` (default) | nothing | nothing | 1 |
//! | `Process` | served by `Sync`, and reported as `Sync` | | 1 |
//! | `Eventual` | what was committed since the last durable commit | the same | 0.5 to 0.7 |
//!
//! The last column was measured on one machine with cheap syncs (5 to 8 ms); small commits on a slow disk gain far
//! more. redb keeps commits that are not synced in the process, so it has nothing between the two levels. With
//! `Eventual`, each flush and close makes all commits durable, and so does every 64th commit and every 64 MiB of
//! records ([`flush_every`](RedbOptions::flush_every)); the changelog has what a crash loses.
//!
//! Each durable commit also saves what redb needs to open the file without reading all of it: after a kill, an open
//! takes about as long as after a close.
//!
//! # Memory
//! Each store has a cache of 32 MiB ([`cache_size`](RedbOptions::cache_size)); redb's own default would be 1 GiB. redb
//! cannot share a cache among stores nor resize one that is open: [`CacheBudget`] shares out one budget for the
//! process as stores are opened.
//!
//! # Threads, views and the file
//! Readers never wait for a commit. A snapshot or a cursor costs nothing to keep but room: redb cannot use again the
//! pages that it still needs, so while one lives each commit makes the file grow. The file shrinks in part when the
//! store is closed. A [`wipe`](kstate_api::Backend::wipe) leaves its size, and what comes next uses that room.
//! A store takes two to three times the size of its records; with `Eventual`, up to five.
//!
//! The store is one file, `store.redb`, in a directory of its own, locked while it is open. It has three tables, from
//! bytes to bytes: `records`; `offsets`, from `topic-partition` to an offset; `meta`, with the `header` and the
//! `position`. All but the records are in the forms of [`kstate_api::codec`].
//!
//! # Errors
//! - **A failed commit** says [`NotApplied`](kstate_api::CommitOutcome::NotApplied) if it failed before redb began to
//!   commit, else [`Unknown`](kstate_api::CommitOutcome::Unknown), and everything but close is `Poisoned` from then on.
//! - **After any failed read or write** of the file redb refuses to write, and to read what is not cached: those calls
//!   are `Poisoned`. Close the store and open it again; if the disk was full, make room first.
//! - **Damage** is `Corrupted`. redb verifies checksums when it recovers, not when it reads: damage done by something
//!   else is found where a page makes no sense, or not at all. [`check_integrity`](RedbOptions::check_integrity)
//!   verifies the file at each open. Where redb panics over damage, this crate makes it `Corrupted`; the
//!   panic hook still reports it, and a program built with `panic = "abort"` ends.
//! - **A newer version's store** is `NewerFormat`. It is not touched: until the header was read, what redb would write
//!   is held back.
//!
//! # The engine
//! [`redb`] is re-exported: [`RedbOptions::configure`] hands out its builder, and
//! [`RedbBackend::open_storage`] takes a [`StorageBackend`](redb::StorageBackend) of your own.

mod backend;
mod cache;
mod commit;
mod current;
mod cursor;
mod error;
mod held;
mod layout;
mod open;
mod options;
mod snapshot;
mod status;
mod supplier;
mod view;

/// The project's front page: its example is compiled and run with this crate's.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct FrontPage;

pub use backend::RedbBackend;
pub use cache::CacheBudget;
pub use options::RedbOptions;
pub use redb;
pub use supplier::RedbBackends;
