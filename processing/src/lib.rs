//! What may be committed when the records of one task fan out, fail, or finish out of order.

mod epoch;
mod metadata_limit;
mod offset_metadata;
mod offset_tracker;
mod ticket;
mod tracked_position;
mod tracker_limits;
mod tracker_stats;

pub use epoch::Epoch;
pub use metadata_limit::MetadataLimit;
pub use offset_metadata::{MetadataTooLong, RangesIgnored};
pub use offset_tracker::{Admission, Finish, OffsetTracker, PositionSnapshot};
pub use ticket::Ticket;
pub use tracked_position::TrackedPosition;
pub use tracker_limits::TrackerLimits;
pub use tracker_stats::TrackerStats;
