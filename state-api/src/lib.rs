//! The vocabulary and the contract of kstate: state stores that know their changelog offsets.
//!
//! A stateful consumer on Kafka keeps its state in a local store and logs every change of it to a changelog topic.
//! After a crash the store must be made whole from that topic, so the store has to know, exactly, how much of the
//! changelog it holds. Here it does: records and changelog offset are committed in one atomic step, always.
//!
//! # Who uses what
//! - To **use a store**: open a [`StagedStore`] over a bundled backend (through a [`KeyValueStoreSupplier`], if there
//!   is one for each task), and work with it through [`KeyValueStore`] and [`StateStore`].
//! - To **bring your own engine**: implement [`Backend`], and a [`BackendSupplier`] that opens it; staging,
//!   read-your-writes, rollback and isolation come with [`StagedStore`].
//! - To **bring your own store**: implement [`StateStore`] and [`KeyValueStore`].
//!
//! Either way, run the suite of `kstate-conformance-tests` on it. Its cases are named after the clauses below.
//!
//! # The contract
//! Each clause stands in full on the item that keeps it.
//!
//! | clause | about | where |
//! | --- | --- | --- |
//! | O1 | a committed offset is that of the last record in the store | [`Offset`] |
//! | O2 | records, offsets and position: one atomic step | [`StateStore::commit`] |
//! | O3 | an offset is stored exactly as given | [`StateStore::commit`] |
//! | O4 | nothing committed is `None` | [`StateStore::committed_offset`] |
//! | O5 | a store commits only partitions it owns | [`StagedStore::open`] |
//! | O6 | consistency is unconditional, durability is chosen | [`Durability`] |
//! | O7 | a failed commit says what became of it | [`CommitOutcome`] |
//! | R1 | keys are ordered as unsigned bytes; ranges | [`KeyRange`] |
//! | R2 | the owner reads its own writes, others committed data | [`KeyValueStore`], [`Snapshot`] |
//! | R3 | a cursor is a stable view, and fails for good | [`Cursor`] |
//! | R4 | an empty value is a value | [`KeyValueStore::put`] |
//! | R5 | rollback, close and drop discard what is staged | [`StateStore::rollback`] |
//!
//! # Example
//! ```
//! use kstate_api::{
//!     ChangelogOffsets, CursorExt, KeyValueStore, Offset, ReadOnlyKeyValueStoreExt, StagedStore, StateStore,
//!     TopicPartition,
//! };
//! use kstate_store_memory::MemoryBackend;
//!
//! # fn main() -> kstate_api::Result<()> {
//! let changelog = TopicPartition::new("counts-changelog", 0);
//! let store = StagedStore::open("counts", MemoryBackend::new(), &[changelog.clone()])?;
//!
//! store.put(b"a", b"1")?;
//! store.put(b"b", b"2")?;
//! store.commit(&ChangelogOffsets::new().with(changelog.clone(), Offset::new(1).unwrap()))?;
//!
//! store.delete(b"a")?;
//! let mut rows = store.all()?;
//! assert_eq!(rows.next_row()?, Some((b"b".as_slice(), b"2".as_slice())));
//! assert_eq!(rows.next_row()?, None);
//!
//! store.rollback()?;
//! assert_eq!(store.get(b"a")?.unwrap(), "1");
//! # Ok(())
//! # }
//! ```
//!
//! Everything is synchronous, as the engines are: the thread that owns a task calls its stores.

mod backend;
mod capabilities;
mod changelog_offsets;
pub mod codec;
mod cursor;
mod durability;
mod durable_path;
mod error;
mod forward;
mod key_range;
mod key_value_store;
mod lifecycle;
mod merge_cursor;
mod name;
mod offset;
mod partition_position;
mod position;
mod read_only;
mod staged_rows;
mod staged_store;
mod state_store;
mod supplier;
mod task_id;
mod topic_partition;
mod write_batch;

pub use backend::{Backend, Snapshot};
pub use bytes::Bytes;
pub use capabilities::Capabilities;
pub use changelog_offsets::ChangelogOffsets;
pub use cursor::{Cursor, CursorExt, EmptyCursor, Entries, Row};
pub use durability::Durability;
pub use durable_path::sync_path;
pub use error::{CommitOutcome, Error, ErrorKind, Result};
pub use key_range::{KeyRange, Order};
pub use key_value_store::{KeyValueStore, KeyValueStoreExt};
pub use name::{MAX_NAME_LEN, validate as validate_name};
pub use offset::Offset;
pub use partition_position::PartitionPosition;
pub use position::Position;
pub use read_only::{ReadOnlyKeyValueStore, ReadOnlyKeyValueStoreExt};
pub use staged_store::{MAX_KEY_LEN, MAX_VALUE_LEN, StagedStore};
pub use state_store::{StateStore, VisitChange};
pub use supplier::{BackendSupplier, KeyValueStoreSupplier, StagedSupplier};
pub use task_id::TaskId;
pub use topic_partition::TopicPartition;
pub use write_batch::WriteBatch;
