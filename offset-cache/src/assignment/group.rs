use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use kstate_api::{Error, ErrorKind, Result, TaskId};

use super::{AssignmentOptions, Copy, Member, ReplicaPreference, TaskState};
use crate::Lag;

/// What an assignment is made from, members by their place in the order of their ids.
pub(super) struct Group<'g> {
    pub(super) tasks: &'g BTreeMap<TaskId, TaskState>,
    pub(super) options: &'g AssignmentOptions,
    members: Vec<&'g Member>,
    /// For each task the members that have a copy of it: few, while members are many.
    copies: BTreeMap<TaskId, Vec<(usize, Copy)>>,
    preference: &'g dyn ReplicaPreference,
}

impl<'g> Group<'g> {
    pub(super) fn new(
        tasks: &'g BTreeMap<TaskId, TaskState>,
        members: &'g [Member],
        options: &'g AssignmentOptions,
        preference: &'g dyn ReplicaPreference,
    ) -> Result<Self> {
        let ids: BTreeSet<_> = members.iter().map(Member::id).collect();
        if ids.len() != members.len() {
            return Err(Error::new(ErrorKind::InvalidArgument, "two members of the group have the same id"));
        }
        if members.is_empty() && !tasks.is_empty() {
            return Err(Error::new(ErrorKind::InvalidArgument, "there is no member to assign tasks to"));
        }
        let mut members: Vec<_> = members.iter().collect();
        members.sort_unstable_by_key(|member| member.id());
        let mut copies: BTreeMap<TaskId, Vec<(usize, Copy)>> = BTreeMap::new();
        for (index, member) in members.iter().enumerate() {
            for (task, copy) in member.copies() {
                let Some(state) = tasks.get(&task) else { continue };
                // A copy of which nothing is known is no worse than none.
                let copy = Copy { lag: copy.lag.min(whole_log(*state)), ..copy };
                copies.entry(task).or_default().push((index, copy));
            }
        }
        Ok(Self { tasks, options, members, copies, preference })
    }

    pub(super) fn members(&self) -> &[&'g Member] {
        &self.members
    }

    pub(super) fn copies(&self, task: TaskId) -> &[(usize, Copy)] {
        self.copies.get(&task).map_or(&[], Vec::as_slice)
    }

    pub(super) fn copy(&self, task: TaskId, member: usize) -> Option<Copy> {
        self.copies(task).iter().find(|(owner, _)| *owner == member).map(|(_, copy)| *copy)
    }

    fn whole_log(&self, task: TaskId) -> Lag {
        self.tasks.get(&task).map_or(Lag::Behind(0), |state| whole_log(*state))
    }

    pub(super) fn lag(&self, task: TaskId, member: usize) -> Lag {
        self.copy(task, member).map_or_else(|| self.whole_log(task), |copy| copy.lag)
    }

    pub(super) fn is_caught_up(&self, task: TaskId, member: usize) -> bool {
        self.lag(task, member).is_caught_up(self.options.acceptable_recovery_lag)
    }

    /// How dear it is to run `task` on `member`: what is caught up is all the same, running or not.
    pub(super) fn dearness(&self, task: TaskId, member: usize) -> Lag {
        self.rounded(self.lag(task, member))
    }

    pub(super) fn rounded(&self, lag: Lag) -> Lag {
        if lag.is_caught_up(self.options.acceptable_recovery_lag) { Lag::Behind(0) } else { lag }
    }

    /// The least that a member other than `member` has to restore of `task`; `Unknown` if there is no other.
    pub(super) fn dearness_elsewhere(&self, task: TaskId, member: usize) -> Lag {
        let copies = self.copies(task).iter();
        let elsewhere = copies.filter(|(owner, _)| *owner != member).map(|(_, copy)| self.rounded(copy.lag));
        let without_copy = self.members.len() - self.copies(task).len();
        let others_without = without_copy.saturating_sub(usize::from(self.copy(task, member).is_none()));
        let whole = (others_without > 0).then(|| self.rounded(self.whole_log(task)));
        elsewhere.chain(whole).min().unwrap_or(Lag::Unknown)
    }

    pub(super) fn cost(&self, task: TaskId, member: usize, others: impl IntoIterator<Item = usize>) -> u64 {
        let others: Vec<_> = others.into_iter().filter_map(|other| self.members.get(other).copied()).collect();
        self.members.get(member).map_or(0, |member| self.preference.cost(task, member, &others))
    }

    fn weight(&self, member: usize) -> u64 {
        self.members.get(member).map_or(1, |member| member.weight())
    }

    /// Compares what one more task would be for `a`, which has `load_a`, and for `b`: the lighter comes first.
    ///
    /// Giving each task to the first in this order makes loads proportional to capacities.
    pub(super) fn by_next_load(&self, (a, load_a): (usize, u64), (b, load_b): (usize, u64)) -> Ordering {
        let (load_a, load_b) = (u128::from(load_a) * 2 + 1, u128::from(load_b) * 2 + 1);
        (load_a * u128::from(self.weight(b))).cmp(&(load_b * u128::from(self.weight(a))))
    }

    /// Whether loads are more even after a task went from the member with the one load to the member with the other.
    pub(super) fn evens_out(&self, (from, load_from): (usize, u64), to: (usize, u64)) -> bool {
        load_from > 0 && self.by_next_load((from, load_from - 1), to) == Ordering::Greater
    }
}

/// What a member without a copy has to restore.
const fn whole_log(state: TaskState) -> Lag {
    match state {
        TaskState::Stateful { log } => log,
        TaskState::Stateless => Lag::Behind(0),
    }
}
