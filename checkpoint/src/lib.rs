//! A task's changelog, checkpoint and restore, without a Kafka client.
//!
//! A *checkpoint* makes what a task has done since the last one permanent, in an order that every crash respects
//! (clause P1):
//!
//! ```text
//! staged changes ─▶ changelog.append ─▶ flush: every delivery acknowledged ─▶ offsets as the broker gave them
//!                                                                                  │
//!                        store.commit(those offsets) ◀── source commit, checked ◀──┘
//! ```
//!
//! A *restore* brings a store from its last commit to the end of its changelog (clause P4), leaving out what belongs to
//! a checkpoint whose source commit never happened (clause P3): those source records come again. The next checkpoint
//! *heals* what was left out, by writing what is committed after it: once the group has come as far as that checkpoint
//! meant to, nobody could tell its records from committed ones.
//!
//! A *standby* follows the changelog of a task that runs elsewhere, as far as its group has committed.
//!
//! The broker is behind three traits: [`ChangelogWriter`], [`SourceCommitter`] and [`ChangelogReader`].
//! `kstate-kafka` implements them.

mod changelog;
mod changes;
mod checkpoint;
mod commit_log;
mod file_checkpoint;
mod restore;
mod source_header;
mod standby;
mod task;
mod trigger;
mod unsettled;

pub use changelog::{ChangelogReader, ChangelogRecord, ChangelogWriter, LogBounds, SourceCommitter};
pub use checkpoint::{Committed, checkpoint};
pub use file_checkpoint::{FileCheckpoint, read_checkpoint_file};
pub use restore::{LogRetention, RestoreOptions, RestoreProgress, Restored, WipeReason, restore};
pub use source_header::{SOURCE_POSITION_HEADER, decode_source_position, encode_source_position};
pub use standby::{StandbyUpdate, update_standby};
pub use task::{LoggedStore, Task};
pub use trigger::{Trigger, TriggerOptions};
