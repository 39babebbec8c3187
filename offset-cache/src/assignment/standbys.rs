//! Where standbys should be.

use std::collections::BTreeMap;

use kstate_api::TaskId;

use super::{group::Group, rebalancing::Loads};
use crate::Lag;

/// For each stateful task the members that should have a standby of it, when it should run on `actives`.
pub(super) fn targets(group: &Group<'_>, actives: &BTreeMap<TaskId, usize>) -> BTreeMap<TaskId, Vec<usize>> {
    let replicas = group.options.num_standby_replicas.min(group.members().len().saturating_sub(1));
    if replicas == 0 {
        return BTreeMap::new();
    }
    let mut loads = Loads::new(group, actives);
    for (task, active) in actives {
        for _ in 0..replicas {
            let holders: Vec<_> = loads.holders(*task, *active).collect();
            let free = (0..group.members().len()).filter(|member| !holders.contains(member));
            let best = free.min_by(|a, b| {
                let (next_a, next_b) = ((*a, loads.of(*a)), (*b, loads.of(*b)));
                let cost = |member| group.cost(*task, member, holders.iter().copied());
                let kept = fitness(group, *task, *a).cmp(&fitness(group, *task, *b));
                kept.then_with(|| group.by_next_load(next_a, next_b)).then_with(|| cost(*a).cmp(&cost(*b)))
            });
            if let Some(member) = best {
                loads.add(*task, member);
            }
        }
    }
    loads.even_out();
    loads.into_standbys()
}

/// How well a member suits as a standby: the less the better. What is one stays one; then comes the member that runs
/// the task and shall not run it any more; then what lies on disks.
fn fitness(group: &Group<'_>, task: TaskId, member: usize) -> (Lag, u8) {
    let role = match group.copy(task, member) {
        Some(copy) if copy.assigned => u8::from(copy.lag == Lag::Running),
        Some(_) => 2,
        None => 3,
    };
    (group.dearness(task, member), role)
}
