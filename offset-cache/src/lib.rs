//! How far each task on this machine's disk has come, known before any of them is owned.
//!
//! - A state directory has one owner, and each task in it at most one.
//! - A scan at start reads the offsets of every store, in parallel, into one cache that all threads share.
//! - Lags are made from the cache and the changelogs' ends; assignments are made from lags.

mod cached_offset;

pub use cached_offset::CachedOffset;
