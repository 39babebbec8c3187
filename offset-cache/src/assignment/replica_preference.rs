use std::fmt::Debug;

use kstate_api::TaskId;

use super::Member;

/// Where replicas had better be, such as in the rack of their partitions' leaders, or apart from each other.
///
/// It chooses among members that are equally good otherwise: it never makes a member restore more, carry more than its
/// share, or keep a task waiting. To ensure correctness, the same question gets the same answer.
///
/// ```
/// use kstate_api::TaskId;
/// use kstate_offset_cache::assignment::{Member, ReplicaPreference};
///
/// /// Replicas of a task in different racks.
/// #[derive(Debug)]
/// struct Apart;
///
/// impl ReplicaPreference for Apart {
///     fn cost(&self, _task: TaskId, member: &Member, others: &[&Member]) -> u64 {
///         let same = |other: &&&Member| other.rack_id() == member.rack_id();
///         others.iter().filter(same).count() as u64
///     }
/// }
///
/// let (near, far) = (Member::new("a").rack("eu-1"), Member::new("b").rack("eu-2"));
/// assert_eq!(Apart.cost(TaskId::new(0, 0), &near, &[&near]), 1);
/// assert_eq!(Apart.cost(TaskId::new(0, 0), &far, &[&near]), 0);
/// ```
pub trait ReplicaPreference: Debug {
    /// What it costs to have a replica of `task` on `member` when the members `others` have the task's replicas that are
    /// placed already, the active one first. Less is better.
    fn cost(&self, task: TaskId, member: &Member, others: &[&Member]) -> u64;
}

/// Every member is as good as every other.
///
/// ```
/// use kstate_api::TaskId;
/// use kstate_offset_cache::assignment::{Member, NoPreference, ReplicaPreference};
///
/// assert_eq!(NoPreference.cost(TaskId::new(0, 0), &Member::new("a"), &[]), 0);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPreference;

impl ReplicaPreference for NoPreference {
    fn cost(&self, _task: TaskId, _member: &Member, _others: &[&Member]) -> u64 {
        0
    }
}
