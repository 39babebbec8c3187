//! An in-memory kstate backend: an ordered map with constant-time snapshots.
//!
//! # What it keeps, and what not
//! It is **not persistent**: what it holds goes when it is closed or dropped, and
//! [`durable_offset`](kstate_api::Backend::durable_offset) is always `None`. A task on it restores its whole changelog
//! each time it starts. It never touches the disk, so it is never `Locked`, `Corrupted` or `DiskFull`.
//!
//! # Reads and commits
//! One commit builds the next state beside the current one, sharing with it what did not change, and swaps the two:
//! readers see all of it or nothing, and never wait for it. A snapshot or a cursor is a handle to one state. Making one
//! takes constant time; while it lives, it keeps the rows that were overwritten or deleted since.
//!
//! # Memory
//! A row costs its key and value, plus about 80 bytes. They are copied out of the batches that are applied, so no batch
//! is kept alive.
//!
//! # Licence
//! The map is that of the crate `imbl`, which is under the Mozilla Public License 2.0, unlike this crate. It can be
//! linked into a program under any licence; changes to `imbl` itself have to be published.
//!
//! # Example
//! ```
//! use kstate_api::{
//!     ChangelogOffsets, KeyValueStore, Offset, ReadOnlyKeyValueStoreExt, StagedStore, StateStore, TopicPartition,
//! };
//! use kstate_store_memory::MemoryBackend;
//!
//! # fn main() -> kstate_api::Result<()> {
//! let changelog = TopicPartition::new("counts-changelog", 0);
//! let store = StagedStore::open("counts", MemoryBackend::new(), &[changelog.clone()])?;
//! store.put(b"word", b"1")?;
//! store.commit(&ChangelogOffsets::new().with(changelog.clone(), Offset::ZERO))?;
//!
//! let before = store.snapshot()?;
//! store.put(b"word", b"2")?;
//! store.commit(&ChangelogOffsets::new().with(changelog.clone(), Offset::ZERO.next()))?;
//! assert_eq!(before.get(b"word")?.unwrap(), "1");
//! assert_eq!(before.committed_offset(&changelog)?, Some(Offset::ZERO));
//! # Ok(())
//! # }
//! ```

mod backend;
mod cursor;
mod row;
mod snapshot;
mod state;
mod supplier;

pub use backend::MemoryBackend;
pub use supplier::MemoryBackends;
