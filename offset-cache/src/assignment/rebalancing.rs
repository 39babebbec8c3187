use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, VecDeque},
};

use kstate_api::TaskId;

use super::group::Group;

/// The replicas of stateful tasks on each member while standbys are placed.
pub(super) struct Loads<'g> {
    group: &'g Group<'g>,
    actives: &'g BTreeMap<TaskId, usize>,
    /// The number of active tasks and standbys of each member.
    of_member: Vec<u64>,
    standbys_of_task: BTreeMap<TaskId, Vec<usize>>,
    standbys_of_member: Vec<BTreeSet<TaskId>>,
}

impl<'g> Loads<'g> {
    pub(super) fn new(group: &'g Group<'g>, actives: &'g BTreeMap<TaskId, usize>) -> Self {
        let count = group.members().len();
        let mut loads = vec![0; count];
        for active in actives.values() {
            if let Some(load) = loads.get_mut(*active) {
                *load += 1;
            }
        }
        let standbys_of_member = vec![BTreeSet::new(); count];
        Self { group, actives, of_member: loads, standbys_of_task: BTreeMap::new(), standbys_of_member }
    }

    pub(super) fn of(&self, member: usize) -> u64 {
        self.of_member.get(member).copied().unwrap_or(0)
    }

    /// The members that have `task`, whose active replica is on `active`.
    pub(super) fn holders(&self, task: TaskId, active: usize) -> impl Iterator<Item = usize> {
        [active].into_iter().chain(self.standbys_of_task.get(&task).into_iter().flatten().copied())
    }

    pub(super) fn add(&mut self, task: TaskId, member: usize) {
        if let (Some(load), Some(tasks)) = (self.of_member.get_mut(member), self.standbys_of_member.get_mut(member)) {
            *load += 1;
            tasks.insert(task);
            self.standbys_of_task.entry(task).or_default().push(member);
        }
    }

    fn remove(&mut self, task: TaskId, member: usize) {
        if let (Some(load), Some(tasks)) = (self.of_member.get_mut(member), self.standbys_of_member.get_mut(member)) {
            *load -= 1;
            tasks.remove(&task);
            self.standbys_of_task.entry(task).or_default().retain(|holder| *holder != member);
        }
    }

    pub(super) fn into_standbys(self) -> BTreeMap<TaskId, Vec<usize>> {
        self.standbys_of_task
    }

    /// Moves standbys until no move makes loads more even.
    ///
    /// The member with most load may have nothing that the one with least lacks, while a third can take from the one and
    /// give to the other. So chains of moves are looked for; where none is left, loads are as even as can be.
    pub(super) fn even_out(&mut self) {
        while let Some(chain) = self.find_chain() {
            for (task, from, to) in chain {
                self.remove(task, from);
                self.add(task, to);
            }
        }
    }

    /// Moves that even out the loads of the first member and the last, and leave those between as they are.
    fn find_chain(&self) -> Option<Vec<(TaskId, usize, usize)>> {
        let mut heaviest_first: Vec<_> = self.of_member.iter().copied().enumerate().collect();
        heaviest_first.sort_by(|a, b| self.group.by_next_load(*b, *a));
        heaviest_first.into_iter().find_map(|start| self.find_chain_from(start))
    }

    fn find_chain_from(&self, start: (usize, u64)) -> Option<Vec<(TaskId, usize, usize)>> {
        let can_end = |member: usize| self.group.evens_out(start, (member, self.of(member)));
        if !(0..self.of_member.len()).any(can_end) {
            return None;
        }
        let mut came_from: BTreeMap<usize, (TaskId, usize)> = BTreeMap::new();
        let mut queue = VecDeque::from([start.0]);
        while let Some(from) = queue.pop_front() {
            // The lightest first, so that of the ends of equally short chains the neediest is found.
            let mut next: Vec<_> = self.of_member.iter().copied().enumerate().collect();
            next.sort_by(|a, b| self.group.by_next_load(*a, *b));
            for (to, _) in next {
                if to == start.0 || came_from.contains_key(&to) {
                    continue;
                }
                let Some(task) = self.cheapest_to_move(from, to) else { continue };
                came_from.insert(to, (task, from));
                if can_end(to) {
                    return Some(trace(&came_from, to));
                }
                queue.push_back(to);
            }
        }
        None
    }

    /// The standby of `from` that `to` has least to restore of, if there is one that it does not have.
    fn cheapest_to_move(&self, from: usize, to: usize) -> Option<TaskId> {
        let tasks = self.standbys_of_member.get(from)?.iter().copied();
        let lacking = tasks.filter(|task| {
            let active = self.actives.get(task).copied().unwrap_or(to);
            self.holders(*task, active).all(|holder| holder != to)
        });
        lacking.min_by_key(|task| (self.group.dearness(*task, to), Reverse(self.group.dearness(*task, from))))
    }
}

fn trace(came_from: &BTreeMap<usize, (TaskId, usize)>, end: usize) -> Vec<(TaskId, usize, usize)> {
    let mut chain = Vec::new();
    let mut to = end;
    while let Some((task, from)) = came_from.get(&to) {
        chain.push((*task, *from, to));
        to = *from;
    }
    chain
}
