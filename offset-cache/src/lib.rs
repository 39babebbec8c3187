//! How far each task on this machine's disk has come, known before any of them is owned.
//!
//! - A state directory has one owner, and each task in it at most one.
//! - A scan at start reads the offsets of every store, in parallel, into one cache that all threads share.
//! - Lags are made from the cache and the changelogs' ends; assignments are made from lags.

mod cached_offset;
mod lag;
mod log_ends;
mod task_lag;
mod task_lags;

pub use cached_offset::CachedOffset;
pub use lag::{Lag, PartitionLag};
pub use log_ends::{AllLogEnds, LogEnds, LogEndsReader};
pub use task_lag::TaskLag;
pub use task_lags::TaskLags;
