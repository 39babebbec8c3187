//! Which member runs which task, which keep copies, and what has to be restored first: made from lags.
//!
//! [`assign`] is a pure function: the same members, tasks and options give the same answer, in whatever order they come.
//!
//! - Each task is **active** on exactly one member.
//! - `num_standby_replicas` further members keep a **standby** of a stateful task, as far as there are members.
//! - No member has two replicas of one task.
//!
//! # How it decides
//! 1. *Where each task should be.* Every member gets its share of the tasks by its capacity, rounded down or up. Within
//!    that, a task stays where it runs; else it goes to the copy with the least lag; else where there is most room. Who
//!    has to give tasks away gives those that others can take over cheapest.
//! 2. *Standbys*, in the same spirit: kept where they are, evened out over all members' loads.
//! 3. *Where each task can be now.* A task whose new member still has more than `acceptable_recovery_lag` to restore
//!    runs on a member that has less, and the new member warms up: at most `max_warmup_replicas` at a time.
//!    Until all are where they should be, [`Assignment::probing_rebalance_needed`] asks for another rebalance after a
//!    while; each brings it nearer, and the last one asks for no other.
//!
//! These are the aims of Kafka's high-availability assignor, which differs in two ways. It deals tasks out anew each time,
//! so that a new member can move tasks between two old ones. And it sorts lags by numbers, in which an unknown lag (−3)
//! comes before one of a running task (−2): the member of which nothing is known passes for the most caught up. Here
//! [`Lag::Unknown`] is the last choice.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use kstate_api::TaskId;
//! use kstate_offset_cache::{
//!     Lag,
//!     assignment::{AssignmentOptions, Member, NoPreference, TaskState, assign},
//! };
//!
//! let (first, second) = (TaskId::new(0, 0), TaskId::new(0, 1));
//! let tasks = BTreeMap::from([first, second].map(|task| (task, TaskState::Stateful { log: Lag::Behind(1_000_000) })));
//! let old = Member::new("old").assigned(first, Lag::Running).assigned(second, Lag::Running);
//!
//! // A new member should have one of the two, and restores it first.
//! let assignment = assign(&tasks, &[old, Member::new("new")], &AssignmentOptions::new(), &NoPreference).unwrap();
//! let (old, new) = (&assignment.members()["old"], &assignment.members()["new"]);
//! assert_eq!(old.active.len(), 2);
//! assert_eq!(new.warmups.len(), 1);
//! assert!(assignment.probing_rebalance_needed());
//! ```
//!
//! [`Lag::Unknown`]: crate::Lag::Unknown

mod actives;
mod assignment_options;
mod assignment_result;
mod group;
mod member;
mod movements;
mod quotas;
mod rebalancing;
mod replica_preference;
mod standbys;

use std::collections::BTreeMap;

use kstate_api::{Result, TaskId};

pub use assignment_options::AssignmentOptions;
pub use assignment_result::{Assignment, MemberTasks, Movement};
pub use member::{Copy, Member};
pub use replica_preference::{NoPreference, ReplicaPreference};

use crate::Lag;
use group::Group;

/// What a task has to restore on a member that has nothing of it.
///
/// ```
/// use kstate_offset_cache::{Lag, assignment::TaskState};
///
/// let counts = TaskState::Stateful { log: Lag::Behind(1_000_000) };
/// assert_ne!(counts, TaskState::Stateless);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// Nothing: it has no changelogged store and may be anywhere at once.
    Stateless,
    /// Its changelogs.
    Stateful {
        /// The length of its retained changelogs in sum, `Unknown` if the brokers did not tell.
        log: Lag,
    },
}

/// Assigns `tasks` to `members`.
///
/// A copy of a task that is not among `tasks` is ignored: it is left from an older topology.
///
/// # Errors
/// `InvalidArgument` if there are tasks and no members, or two members of one id.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use kstate_api::TaskId;
/// use kstate_offset_cache::assignment::{AssignmentOptions, Member, NoPreference, TaskState, assign};
///
/// let tasks = (0..4).map(|partition| (TaskId::new(0, partition), TaskState::Stateless)).collect();
/// let members = [Member::new("small"), Member::new("large").capacity(3)];
/// let assignment = assign(&tasks, &members, &AssignmentOptions::new(), &NoPreference).unwrap();
/// assert_eq!(assignment.members()["small"].active.len(), 1);
/// assert_eq!(assignment.members()["large"].active.len(), 3);
/// assert!(!assignment.probing_rebalance_needed());
/// ```
pub fn assign(
    tasks: &BTreeMap<TaskId, TaskState>,
    members: &[Member],
    options: &AssignmentOptions,
    preference: &dyn ReplicaPreference,
) -> Result<Assignment> {
    let group = Group::new(tasks, members, options, preference)?;
    let stateful = actives::of_stateful(&group);
    let mut placement = movements::plan(&group, &stateful, standbys::targets(&group, &stateful));
    placement.actives.extend(actives::of_stateless(&group, &stateful));
    Ok(Assignment::new(&group, &placement))
}
