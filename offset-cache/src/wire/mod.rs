//! What is known of tasks, in the numbers and bytes that Kafka's protocols carry.
//!
//! Inside this crate lags and offsets are types; the numbers below are made here, at the edge, and nowhere else. They are
//! Kafka's own, as its classic and its streams group protocol (KIP-1071) send them:
//!
//! | number | Kafka's name | here |
//! | --- | --- | --- |
//! | ≥ 0 | the sum of `offset + 1` over a task's changelogs, `i64::MAX` if it overflows | [`TaskOffsetSum::Sum`] |
//! | −2 | `Task.LATEST_OFFSET` | [`TaskOffsetSum::Latest`] |
//! | −3 | `SubscriptionInfo.UNKNOWN_OFFSET_SUM` | [`TaskOffsetSum::Unknown`] |
//!
//! Another negative number is refused. No sentinel ever becomes an [`Offset`](kstate_api::Offset) or enters a sum.
//!
//! Kafka's −4 (`OFFSET_UNKNOWN`) is a mark in its stores, not on the wire; a partition with nothing stored counts 0.
//!
//! ```
//! use kstate_api::Offset;
//! use kstate_offset_cache::{CachedOffset, wire::TaskOffsetSum};
//!
//! let at = |number| Some(CachedOffset::At(Offset::new(number).unwrap()));
//! assert_eq!(TaskOffsetSum::new([at(39), Some(CachedOffset::Unknown), None]).to_wire(), 40);
//! assert_eq!(TaskOffsetSum::new([Some(CachedOffset::Running)]).to_wire(), -2);
//! ```

mod bytes;
mod heartbeat;
mod offset_sum;
mod subscription;
mod task_offset_sum;

pub use heartbeat::{HeartbeatOffsets, decode_task_offsets, encode_task_offsets};
pub use offset_sum::OffsetSum;
pub use subscription::{decode_task_offset_sums, encode_task_offset_sums};
pub use task_offset_sum::TaskOffsetSum;
