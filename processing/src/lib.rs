//! What may be committed when the records of one task fan out, fail, or finish out of order.

mod ack_settings;
mod ack_table;
mod branch;
mod dropped_branches;
mod entries;
mod epoch;
mod fan_out;
mod metadata_limit;
mod offset_metadata;
mod offset_tracker;
mod settlement;
mod ticket;
mod tracked_position;
mod tracker_limits;
mod tracker_stats;

pub use ack_settings::{AckSettings, AckStats, OnTimeout};
pub use ack_table::AckTable;
pub use branch::{Branch, Branches};
pub use epoch::Epoch;
pub use fan_out::{DeadEnd, FanOut, Role};
pub use metadata_limit::MetadataLimit;
pub use offset_metadata::{MetadataTooLong, RangesIgnored};
pub use offset_tracker::{Admission, Finish, OffsetTracker, PositionSnapshot};
pub use settlement::{Failure, Full, Settlement};
pub use ticket::Ticket;
pub use tracked_position::TrackedPosition;
pub use tracker_limits::TrackerLimits;
pub use tracker_stats::TrackerStats;
