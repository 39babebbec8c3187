//! An app that runs tasks: it reads source topics, keeps state, and writes outputs, at least once or exactly once.
//!
//! ```
//! use std::{num::NonZeroUsize, time::Duration};
//!
//! use kstate_api::{ReadOnlyKeyValueStoreExt as _, StagedSupplier};
//! use kstate_kafka::{EmbeddedCluster, app::{App, AppState, Guarantee, SourceRecord, TaskContext}};
//! # use kstate_store_memory::MemoryBackends;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let state = tempfile::tempdir()?;
//! # let embedded = EmbeddedCluster::start()?;
//! # let cluster = embedded.cluster();
//! # embedded.create_topic("words", 4)?;
//! # embedded.create_topic("my-app-counts-changelog", 4)?;
//! let app = App::new(&cluster, "my-app", state.path())
//!     .source("words")
//!     .store(StagedSupplier::new("counts", MemoryBackends::new())?)
//!     .threads(NonZeroUsize::new(2).unwrap())
//!     .guarantee(Guarantee::AtLeastOnce)
//!     .start(|record: &SourceRecord<'_>, context: &TaskContext<'_>| {
//!         let counts = context.store("counts")?;
//!         let word = record.key().unwrap_or_default();
//!         let count = match counts.get(word)? {
//!             Some(count) => u64::from_be_bytes(count.as_ref().try_into()?),
//!             None => 0,
//!         };
//!         counts.put(word, &(count + 1).to_be_bytes())?;
//!         Ok(())
//!     })?;
//!
//! let queries = app.queries();
//! let stop = app.stop_handle();
//! // From any thread: what is committed.
//! for (task, counts) in queries.snapshots("counts")? {
//!     println!("{task}: {:?}", counts.get(b"word")?);
//! }
//! stop.stop();
//! app.join()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Tasks, threads and members
//! The partitions of one number, one of each source, are one *task* with stores of its own. Each *thread* is a member of
//! the consumer group with the app's id, and owns the tasks that the group gives it: it alone calls their processors and
//! writes their stores. Any number of processes with the same id share the tasks; each has a state directory of its own.
//!
//! A task that comes is restored from its changelog first. Its thread goes on with its other tasks meanwhile and polls,
//! so that the group does not take it for dead.
//!
//! With [`App::standbys`] a process keeps copies of the tasks that run in other ones, and a task that comes is restored
//! from its copy.
//!
//! # Several workers
//! [`App::start_workers`] gives each task several workers, for records that wait: for a look-up in another system, or for
//! their next attempt. Order is kept by key, by partition or not at all; a record that fails for good becomes a dead
//! letter, or the app ends and goes on at it later. A checkpoint waits for what is in flight, or commits positions with
//! holes. See [`kstate_processing`].
//!
//! # Several outputs
//! Nothing is committed unless all outputs are delivered. At least once, [`App::output_role`] makes exceptions: of some
//! outputs of a record one is enough, and others are not waited for at all.
//!
//! # What is committed when
//! Between two records, when [`App::commit_interval`] or another limit says so, a thread takes one checkpoint of all its
//! tasks: see [`checkpoint`](kstate_checkpoint::checkpoint). Partitions that are given up are committed before they are;
//! of partitions that were lost nothing is committed (clause P5). An app that is told to [`Stop`] takes a last checkpoint
//! and closes its stores, so its next start restores nothing.
//!
//! # When something fails
//! | what | at least once | exactly once |
//! | --- | --- | --- |
//! | a processor | [`App::on_error`] decides: skip, or the app ends | the same |
//! | a checkpoint, before the group's commit | it is tried again; no records are taken in meanwhile | the transaction is aborted, the stores roll back, the records come again |
//! | the group's commit, outcome unknown | it is tried again with everything still staged | the thread begins anew: tasks are closed and restored |
//! | the group has gone on without this member | nothing is committed; the thread begins anew | the same; the transaction is fenced |
//! | an output that is not delivered, by its role | the thread begins anew, and the records come again | the same |
//! | a store | the thread begins anew; a damaged store is restored from its changelog | the same |
//! | all of it, for longer than [`App::retry_timeout`] | the app ends with the error | the same |
//!
//! An app that ends with an error commits nothing more; [`RunningApp::join`] returns the error. It never goes on with
//! a part of its threads.
//!
//! # Back-pressure
//! Everything between two checkpoints is bounded: the client's queue of records, the staged bytes
//! ([`App::max_uncommitted_bytes`]), and the outputs under way, of which a processor waits for room. While checkpoints
//! fail, and while the app is [paused](RunningApp::pause), no records are taken in.
//!
//! # Numbers
//! [`RunningApp::stats`] tells what an app has done and what it is at. With the feature `metrics` it tells the same to the
//! recorder of the facade of that name, under names like Kafka's.
#![cfg_attr(feature = "metrics", doc = "See [its list](mod@metrics).")]

mod absence;
mod active_task;
mod app_stats;
mod builder;
mod cancellable;
mod control;
mod definition;
mod effects;
mod guarantee;
mod listener;
#[cfg(feature = "metrics")]
pub mod metrics;
mod output_record;
mod outputs;
mod owned_record;
mod processing;
mod processor;
mod queries;
mod restorer;
mod roles;
mod running_app;
mod session;
mod source_record;
mod standby_keeper;
mod standbys;
mod task_context;
mod task_processing;
mod task_stores;
mod task_workers;
mod worker;

pub use app_stats::AppStats;
pub use builder::App;
pub use guarantee::{Guarantee, RebalanceProtocol};
pub use listener::{AppState, Listener, TaskState};
pub use output_record::OutputRecord;
pub use owned_record::OwnedRecord;
pub use processor::{OnError, ProcessingFailure, ProcessingResult, Processor, ProcessorSupplier};
pub use queries::Queries;
pub use running_app::{RunningApp, Stop};
pub use source_record::SourceRecord;
pub use task_context::TaskContext;
