//! How far each task on this machine's disk has come, known before any of them is owned.
//!
//! - A state directory has one owner, and each task in it at most one.
//! - A scan at start reads the offsets of every store, in parallel, into one cache that all threads share.
//! - Lags are made from the cache and the changelogs' ends; assignments are made from lags.

pub mod assignment;
mod cached_offset;
mod cancellation;
mod clean_up;
mod cleaner;
mod in_order;
mod known_offsets;
mod lag;
mod layout;
mod listing;
mod lock_table;
mod log_ends;
mod offset_cache;
mod offset_snapshot;
mod permissions;
mod process_id;
mod process_lock;
mod removal;
mod scan_report;
mod startup_scan;
mod state_directory;
mod sync;
mod task_contents;
mod task_lag;
mod task_lags;
mod task_lock;
mod task_offsets;
mod task_scan;
mod topology_stores;
mod wait;
pub mod wire;

pub use cached_offset::CachedOffset;
pub use cancellation::Cancellation;
pub use clean_up::CleanUp;
pub use cleaner::Cleaner;
pub use lag::{Lag, PartitionLag};
pub use layout::StateLayout;
pub use listing::Listing;
pub use log_ends::{AllLogEnds, LogEnds, LogEndsReader};
pub use offset_cache::OffsetCache;
pub use offset_snapshot::OffsetSnapshot;
pub use scan_report::{ScanProgress, ScanReport};
pub use startup_scan::StartupScan;
pub use state_directory::StateDirectory;
pub use task_contents::TaskContents;
pub use task_lag::TaskLag;
pub use task_lags::TaskLags;
pub use task_lock::TaskLock;
pub use task_offsets::TaskOffsets;
pub use task_scan::{LeftOut, StoreScan, TaskScan};
pub use topology_stores::TopologyStores;
pub use uuid::Uuid;
pub use wait::Wait;
