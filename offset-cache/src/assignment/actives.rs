//! Where each task should run.

use std::{cmp::Reverse, collections::BTreeMap};

use kstate_api::TaskId;

use super::{Copy, TaskState, group::Group, quotas::Quotas};
use crate::Lag;

/// For each stateful task the member that should run it.
pub(super) fn of_stateful(group: &Group<'_>) -> BTreeMap<TaskId, usize> {
    let is_stateful = |state: &TaskState| matches!(state, TaskState::Stateful { .. });
    let tasks = group.tasks.iter().filter(|(_, state)| is_stateful(state)).map(|(task, _)| *task);
    let tasks: Vec<_> = tasks.collect();
    let quotas = Quotas::new(group, tasks.len() as u64, &vec![0; group.members().len()]);
    place(group, tasks, quotas.within(group, group.tasks.len() as u64))
}

/// For each stateless task the member that runs it, when the stateful ones should be on `stateful`.
///
/// Their places do not follow where stateful tasks are for the moment, or they would move about with each warm-up.
pub(super) fn of_stateless(group: &Group<'_>, stateful: &BTreeMap<TaskId, usize>) -> BTreeMap<TaskId, usize> {
    let tasks = group.tasks.iter().filter(|(_, state)| **state == TaskState::Stateless).map(|(task, _)| *task);
    let mut loads = vec![0; group.members().len()];
    for member in stateful.values() {
        if let Some(load) = loads.get_mut(*member) {
            *load += 1;
        }
    }
    place(group, tasks.collect(), Quotas::new(group, group.tasks.len() as u64, &loads))
}

/// Places `tasks`: on copies, the best first, while their members have room, and the others where there is most room.
fn place(group: &Group<'_>, tasks: Vec<TaskId>, mut quotas: Quotas) -> BTreeMap<TaskId, usize> {
    let mut placed = BTreeMap::new();

    let copies =
        tasks.iter().flat_map(|task| group.copies(*task).iter().map(move |(member, copy)| (*task, *member, *copy)));
    let mut copies: Vec<_> =
        copies.map(|(task, member, copy)| (rank(group, task, member, copy), task, member)).collect();
    copies.sort_unstable();
    for (_, task, member) in copies {
        if !placed.contains_key(&task) && quotas.take(member) {
            placed.insert(task, member);
        }
    }
    for task in tasks {
        if placed.contains_key(&task) {
            continue;
        }
        // The copies' members are full: everybody else would have to restore all.
        let roomiest = quotas.with_room().min_by(|a, b| {
            let cost = |member| group.cost(task, member, []);
            group.by_next_load(*a, *b).then_with(|| cost(a.0).cmp(&cost(b.0)))
        });
        if let Some((member, _)) = roomiest
            && quotas.take(member)
        {
            placed.insert(task, member);
        }
    }
    placed
}

/// The order in which copies get their tasks.
///
/// What runs stays; then comes what is caught up, then the least to restore. Of those that are alike, first the ones which
/// would be dearest elsewhere: a member with more than its share keeps those, and gives away what others can take
/// over cheapest, copies that warmed up for it among them. So what was begun is finished.
fn rank(group: &Group<'_>, task: TaskId, member: usize, copy: Copy) -> (bool, Lag, Reverse<Lag>, bool, Lag, u64) {
    (
        copy.lag != Lag::Running,
        group.rounded(copy.lag),
        Reverse(group.dearness_elsewhere(task, member)),
        !copy.assigned,
        copy.lag,
        group.cost(task, member, []),
    )
}
