//! What may be committed when the records of one task fan out, fail, or finish out of order.
//!
//! There is no input or output here, and no clock: time is an argument.
//!
//! | clause | about | where |
//! | --- | --- | --- |
//! | A1 | the offset to commit is the lowest that is not finished | [`OffsetTracker`] |
//! | A2 | one outcome for a record that fans out | [`AckTable`] |
//! | A3 | order, retries and dead letters with several workers | [`Executor`], [`Lanes`] |
//! | A4 | what cannot be had is refused when it is built | [`ExecutorSettings::check`] |
//! | A5 | a position is `next` and the finished ranges above it | [`PartitionPosition`](kstate_api::PartitionPosition), [`CheckpointMode`] |

mod ack_settings;
mod ack_table;
mod admission;
mod admissions;
mod assigned;
mod branch;
mod checkpoint_mode;
mod completion;
mod dropped_branches;
mod effect;
mod entries;
mod epoch;
mod exchange;
mod executor;
mod executor_settings;
mod executor_stats;
mod fan_out;
mod finish;
mod job;
mod lanes;
mod metadata_limit;
mod notices;
mod offset_metadata;
mod offset_tracker;
mod position_snapshot;
mod process_error;
mod processor;
mod record_order;
mod retry_policy;
mod settlement;
mod submission;
mod sync;
mod ticket;
mod tracker_limits;
mod tracker_stats;
mod waited;
mod work;
mod workers;

pub use ack_settings::{AckSettings, AckStats, OnTimeout};
pub use ack_table::AckTable;
pub use admission::Admission;
pub use branch::{Branch, Branches};
pub use checkpoint_mode::CheckpointMode;
pub use completion::{Completion, Outcome};
pub use effect::Effect;
pub use epoch::Epoch;
pub use executor::{Drained, Executor};
pub use executor_settings::{ExecutorSettings, OnExhausted, StoreAbilities};
pub use executor_stats::ExecutorStats;
pub use fan_out::{DeadEnd, FanOut, Role};
pub use finish::Finish;
pub use lanes::Lanes;
pub use metadata_limit::MetadataLimit;
pub use offset_metadata::{MetadataTooLong, PositionMetadata, RangesIgnored};
pub use offset_tracker::OffsetTracker;
pub use position_snapshot::PositionSnapshot;
pub use process_error::{ProcessError, RecordFailure};
pub use processor::{Processor, ProcessorFn, Sink, Source};
pub use record_order::{Apply, RecordOrder};
pub use retry_policy::RetryPolicy;
pub use settlement::{Failure, Full, Settlement};
pub use submission::{Submission, Submitted};
pub use ticket::Ticket;
pub use tracker_limits::TrackerLimits;
pub use tracker_stats::TrackerStats;
pub use waited::Waited;
pub use work::Work;
