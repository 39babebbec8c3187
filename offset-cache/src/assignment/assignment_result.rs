use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kstate_api::TaskId;

use super::{group::Group, movements::Placement};

/// The tasks of one member.
///
/// ```
/// assert!(kstate_offset_cache::assignment::MemberTasks::default().active.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberTasks {
    /// What the member runs.
    pub active: BTreeSet<TaskId>,
    /// What it keeps a copy of.
    pub standbys: BTreeSet<TaskId>,
    /// What it restores to run or to keep later on.
    pub warmups: BTreeSet<TaskId>,
}

/// A task that is not yet where it should be.
///
/// ```
/// use kstate_api::TaskId;
/// use kstate_offset_cache::assignment::Movement;
///
/// let movement = Movement { task: TaskId::new(0, 0), from: "old".into(), to: "new".into() };
/// assert_eq!(&*movement.to, "new");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Movement {
    /// The task.
    pub task: TaskId,
    /// The member that has it meanwhile, for it has less to restore.
    pub from: Arc<str>,
    /// The member that should have it.
    pub to: Arc<str>,
}

/// Who has which tasks, and what is still to move.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use kstate_api::TaskId;
/// use kstate_offset_cache::assignment::{AssignmentOptions, Member, NoPreference, TaskState, assign};
///
/// let tasks = BTreeMap::from([(TaskId::new(0, 0), TaskState::Stateless)]);
/// let assignment = assign(&tasks, &[Member::new("a")], &AssignmentOptions::new(), &NoPreference).unwrap();
/// assert!(assignment.members()["a"].active.contains(&TaskId::new(0, 0)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    members: BTreeMap<Arc<str>, MemberTasks>,
    movements: Vec<Movement>,
}

impl Assignment {
    pub(super) fn new(group: &Group<'_>, placement: &Placement) -> Self {
        let mut tasks = vec![MemberTasks::default(); group.members().len()];
        let mut put = |task: TaskId, member: usize, role: fn(&mut MemberTasks) -> &mut BTreeSet<TaskId>| {
            if let Some(of_member) = tasks.get_mut(member) {
                role(of_member).insert(task);
            }
        };
        for (task, member) in &placement.actives {
            put(*task, *member, |of_member| &mut of_member.active);
        }
        for (task, members) in &placement.standbys {
            for member in members {
                put(*task, *member, |of_member| &mut of_member.standbys);
            }
        }
        for (task, members) in &placement.warmups {
            for member in members {
                put(*task, *member, |of_member| &mut of_member.warmups);
            }
        }
        let id = |member: usize| group.members().get(member).map(|member| member.shared_id());
        let movements = placement.movements.iter();
        let movements =
            movements.filter_map(|(task, from, to)| Some(Movement { task: *task, from: id(*from)?, to: id(*to)? }));
        let ids = group.members().iter().map(|member| member.shared_id());
        Self { movements: movements.collect(), members: ids.zip(tasks).collect() }
    }

    /// The tasks of each member, by its id. A member without tasks is there too.
    ///
    /// ```
    /// assert!(kstate_offset_cache::assignment::Assignment::default().members().is_empty());
    /// ```
    #[must_use]
    pub const fn members(&self) -> &BTreeMap<Arc<str>, MemberTasks> {
        &self.members
    }

    /// The replicas that are not where they should be, those being warmed up among them.
    ///
    /// ```
    /// assert!(kstate_offset_cache::assignment::Assignment::default().movements().is_empty());
    /// ```
    #[must_use]
    pub fn movements(&self) -> &[Movement] {
        &self.movements
    }

    /// Whether to assign again after a while (Kafka's `probing.rebalance.interval.ms`, 10 minutes by default), since
    /// something is still to move.
    ///
    /// ```
    /// assert!(!kstate_offset_cache::assignment::Assignment::default().probing_rebalance_needed());
    /// ```
    #[must_use]
    pub fn probing_rebalance_needed(&self) -> bool {
        !self.movements.is_empty()
    }
}
