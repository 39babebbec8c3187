//! Where tasks can be now, on their way to where they should be.

use std::collections::BTreeMap;

use kstate_api::TaskId;

use super::group::Group;
use crate::Lag;

/// The members of each task's replicas.
#[derive(Debug, Default)]
pub(super) struct Placement {
    pub(super) actives: BTreeMap<TaskId, usize>,
    pub(super) standbys: BTreeMap<TaskId, Vec<usize>>,
    pub(super) warmups: BTreeMap<TaskId, Vec<usize>>,
    /// The tasks that are not where they should be: the member that has them meanwhile, and the one that should.
    pub(super) movements: Vec<(TaskId, usize, usize)>,
}

/// Lets members that have little to restore stand in for those that have much, which warm up meanwhile.
pub(super) fn plan(
    group: &Group<'_>,
    actives: &BTreeMap<TaskId, usize>,
    standbys: BTreeMap<TaskId, Vec<usize>>,
) -> Placement {
    let placement = Placement { actives: actives.clone(), standbys, ..Placement::default() };
    let mut planner = Planner { group, placement, remaining_warmups: group.options.max_warmup_replicas };
    planner.move_actives();
    planner.move_standbys();
    planner.placement
}

struct Planner<'g> {
    group: &'g Group<'g>,
    placement: Placement,
    remaining_warmups: usize,
}

impl Planner<'_> {
    fn move_actives(&mut self) {
        let pending = self.placement.actives.iter().filter(|(task, target)| self.is_to_wait(**task, **target));
        let pending = self.in_order(pending.map(|(task, target)| (*task, *target)).collect());
        for (task, target) in pending {
            let Some(source) = self.stand_in(task, target) else { continue };
            self.placement.actives.insert(task, source);
            let standbys = self.placement.standbys.entry(task).or_default();
            if let Some(standby) = standbys.iter_mut().find(|standby| **standby == source) {
                // They change places: the target restores as the standby that it stands in for.
                *standby = target;
            } else {
                self.warm_up(task, target);
            }
            self.placement.movements.push((task, source, target));
        }
    }

    fn move_standbys(&mut self) {
        let mut pending = Vec::new();
        for (task, standbys) in &self.placement.standbys {
            // One that changed places with an active replica is on its way already.
            let swapped = self.placement.movements.iter().find(|(moved, ..)| moved == task).map(|(.., target)| *target);
            let standbys = standbys.iter().filter(|standby| Some(**standby) != swapped);
            pending
                .extend(standbys.filter(|standby| self.is_to_wait(*task, **standby)).map(|standby| (*task, *standby)));
        }
        for (task, target) in self.in_order(pending) {
            let lag = self.group.lag(task, target);
            let free = self
                .group
                .copies(task)
                .iter()
                .filter(|(member, copy)| copy.lag < lag && !self.holders(task).any(|holder| holder == *member));
            let best = free.min_by_key(|(member, copy)| {
                (self.group.rounded(copy.lag), !copy.assigned, copy.lag, self.cost(task, *member), *member)
            });
            // Where all better copies are taken, the standby restores in its place.
            let Some(source) = best.map(|(member, _)| *member) else { continue };
            let standbys = self.placement.standbys.entry(task).or_default();
            standbys.iter_mut().filter(|standby| **standby == target).for_each(|standby| *standby = source);
            self.warm_up(task, target);
            self.placement.movements.push((task, source, target));
        }
    }

    /// Whether `target` has much to restore of `task` and another has less.
    fn is_to_wait(&self, task: TaskId, target: usize) -> bool {
        let group = self.group;
        !group.is_caught_up(task, target)
            && group.copies(task).iter().any(|(_, copy)| copy.lag < group.lag(task, target))
    }

    /// First what warms up already, so that what was begun is finished; then what fewest members could run.
    fn in_order(&self, mut pending: Vec<(TaskId, usize)>) -> Vec<(TaskId, usize)> {
        pending.sort_by_cached_key(|(task, target)| {
            let copies = self.group.copies(*task).iter();
            let caught_up = copies.filter(|(member, _)| self.group.is_caught_up(*task, *member)).count();
            let begun = self.group.copy(*task, *target).is_some_and(|copy| copy.assigned);
            (!begun, caught_up, *task, *target)
        });
        pending
    }

    /// The member that runs `task` until `target` is caught up: the one that runs it, else a standby that is caught
    /// up, else any that is, else the one with least to restore.
    fn stand_in(&self, task: TaskId, target: usize) -> Option<usize> {
        let standbys = self.placement.standbys.get(&task);
        let is_standby = |member| standbys.is_some_and(|standbys| standbys.contains(&member));
        let copies = self.group.copies(task).iter().filter(|(member, _)| *member != target);
        let best = copies.min_by_key(|(member, copy)| {
            let runs = copy.lag == Lag::Running;
            let cost = self.group.cost(task, *member, []);
            (!runs, self.group.rounded(copy.lag), !is_standby(*member), !copy.assigned, copy.lag, cost, *member)
        });
        best.map(|(member, _)| *member)
    }

    /// Lets `target` restore beside the replicas of `task`, if the group may warm up another one.
    fn warm_up(&mut self, task: TaskId, target: usize) {
        if let Some(remaining) = self.remaining_warmups.checked_sub(1) {
            self.remaining_warmups = remaining;
            self.placement.warmups.entry(task).or_default().push(target);
        }
    }

    fn holders(&self, task: TaskId) -> impl Iterator<Item = usize> {
        let Placement { actives, standbys, warmups, .. } = &self.placement;
        let others = [standbys, warmups].into_iter().filter_map(move |of| of.get(&task)).flatten().copied();
        actives.get(&task).copied().into_iter().chain(others)
    }

    fn cost(&self, task: TaskId, member: usize) -> u64 {
        self.group.cost(task, member, self.holders(task))
    }
}
