//! A kstate backend on `RocksDB`, in the on-disk layout of Kafka Streams.
//!
//! # Example
//! ```
//! use kstate_api::{
//!     ChangelogOffsets, Durability, KeyValueStore, Offset, ReadOnlyKeyValueStoreExt, StagedStore, StateStore,
//!     TopicPartition,
//! };
//! use kstate_store_rocksdb::{RocksDbBackend, RocksDbOptions};
//!
//! # fn main() -> kstate_api::Result<()> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let directory = directory.path();
//! let changelog = TopicPartition::new("counts-changelog", 0);
//! let options = RocksDbOptions::new().durability(Durability::Eventual);
//! let store = StagedStore::open("counts", RocksDbBackend::open(directory, &options)?, &[changelog.clone()])?;
//! store.put(b"word", b"1")?;
//! store.commit(&ChangelogOffsets::new().with(changelog.clone(), Offset::ZERO))?;
//! store.close()?;
//!
//! let store = StagedStore::open("counts", RocksDbBackend::open(directory, &options)?, &[changelog.clone()])?;
//! assert_eq!(store.get(b"word")?.unwrap(), "1");
//! assert_eq!(store.committed_offset(&changelog)?, Some(Offset::ZERO));
//! # Ok(())
//! # }
//! ```
//!
//! To open the stores of many tasks, give [`RocksDbBackends`] to a [`StagedSupplier`](kstate_api::StagedSupplier).
//!
//! # Durability
//! Records, offsets and position of a commit are one write batch over two column families, which are always flushed
//! together. So they agree after any crash, at every level; the level says how late the commit is at least that is left:
//!
//! | level | each commit | the process dies | the power fails | time | a reopen after a crash |
//! | --- | --- | --- | --- | --- | --- |
//! | [`Eventual`](kstate_api::Durability::Eventual) | goes to memory | last flush or later | last flush or later | 0.95 | reads tables |
//! | [`Process`](kstate_api::Durability::Process), the default | goes to the log | every commit | last flush or later | 1 | replays the log |
//! | [`Sync`](kstate_api::Durability::Sync) | goes to the log, which is synchronised | every commit | every commit | 1.35 | replays the log |
//!
//! The times are ratios for commits of 10 000 records (16-byte keys, 100-byte values, in random order), measured on one
//! machine with a fast disk; small commits pay more for `Sync`. At `Eventual` a flush of each commit would cost 1.5. The
//! engine flushes by itself when a write buffer is full. [`flush`](kstate_api::Backend::flush) writes tables at
//! `Eventual` and synchronises the log at the other levels. Closing writes tables, so that an open after it replays
//! nothing.
//!
//! [`durable_offset`](kstate_api::Backend::durable_offset) knows of the engine's own flushes at `Eventual`. At `Process`
//! it knows only of those that were asked for, and so tells less than a power loss would leave.
//!
//! # Threads
//! Any number of threads reads at a time; they share a lock that only `close` takes away from them. One thread at a time
//! applies, flushes, wipes or closes. Cursors and snapshots may go to other threads and may outlive the store; `close`
//! waits for the step or get they are at, and ends them. While a snapshot or cursor lives, the engine keeps what was
//! overwritten since it was made.
//!
//! # Locks
//! The engine locks the directory: another open of it, here or in another process, is `Locked` at once. A link to it is
//! the same directory. The lock is free when `close` returns, or when its process is dead.
//! [`read_offsets`](kstate_api::BackendSupplier::read_offsets) takes no lock and changes no data: it works beside a live
//! owner, and answers what a crash of that owner would leave.
//!
//! # Memory
//! See [`RocksDbMemory`]: one budget for all stores of the process, or of those that share it. Beyond it a store costs
//! some hundred KiB, and each commit its own size while it is applied.
//!
//! # Failures
//! - A write that fails is [`Unknown`](kstate_api::CommitOutcome::Unknown): the log may have it. From then on the
//!   backend only reads; everything else is `Poisoned` until it is closed and opened again. The engine may recover from a
//!   full disk by itself; this crate does not rely on it.
//! - A failed flush leaves everything as it was at `Eventual`, and can be repeated. At the other levels it poisons, for
//!   the system may have dropped what it could not write.
//! - A full disk or quota is `DiskFull`, a damaged or missing file `Corrupted`. A damaged block is found when it is read.
//! - [`wipe`](kstate_api::Backend::wipe) deletes all records in one write, however many there are, and then gives back
//!   their space.
//!
//! # Layout
//! It is that of Kafka Streams 4.3 and later. Records are in the column family `default`, or `keyValueWithTimestamp` for
//! [timestamped](RocksDbOptions::timestamped) stores. The column family `offsets` has these rows, integers of 8 bytes,
//! big-endian:
//!
//! | key | value |
//! | --- | --- |
//! | `<topic>-<partition>` | the offset of the last record applied; −4: not known |
//! | `status` | 0: records and offsets agree; 1: Kafka Streams has the store open, or died with it; 2: as 1, but it is ours by now |
//! | `position` | Kafka Streams' own position; kept, but not read |
//! | `kstate.header` | the header of [`codec`](kstate_api::codec), with the layout `rocksdb` |
//! | `kstate.position` | the source position, as in [`codec`](kstate_api::codec) |
//! | `kstate.position-offsets` | the rows of all partitions at that position, each key and value after its length |
//!
//! The last three are ours. A store with other column families, another status or a newer header, or with tables of a
//! newer engine, is `NewerFormat`, and is not changed. One with records in the other layout's family is `Config`.
//!
//! # From Kafka Streams, and back
//! A directory that Kafka Streams has closed opens here with its offsets. If the application died instead (status 1), its
//! records may be ahead of its offsets: they are taken as under at-least-once, with a warning in the log at each open,
//! and the status never says 0 again before the store is wiped. Stores of versions before 4.3 have no offsets inside;
//! they open with their records, and with no offset.
//!
//! A directory of ours opens in Kafka Streams. It never finds it open, for what a crash of ours leaves is consistent: so
//! under exactly-once it keeps the store. Mind that
//! - its engine must be able to read our tables: they are written for that of Kafka Streams 4.0 and later, unless a table
//!   factory is [configured](RocksDbOptions::configure);
//! - it does not know our position, and drops it with the offsets. If it moves the offsets, the position is dropped at
//!   our next open. Its own position stays as it was, a lower bound;
//! - of window, session and versioned stores it knows the segments only, which this crate does not write.

mod backend;
mod bookkeeping;
mod cursor;
mod directory;
mod durable;
mod engine;
mod error;
mod inspection;
mod layout;
mod memory;
mod options;
mod registry;
mod snapshot;
mod stall;
mod supplier;
mod view;

pub use backend::RocksDbBackend;
pub use memory::RocksDbMemory;
pub use options::{Compression, RocksDbOptions};
pub use rocksdb;
pub use supplier::RocksDbBackends;
