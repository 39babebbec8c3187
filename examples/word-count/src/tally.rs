use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use kstate_api::{Offset, TaskId, TopicPartition};
use kstate_checkpoint::Committed;

use crate::{job::Names, protocol::TaskCommitted};

/// How far the tasks that are here have come in the source.
#[derive(Debug)]
pub(crate) struct Tally {
    names: Names,
    tasks: Mutex<BTreeMap<TaskId, Standing>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    /// How many threads have the task: two, while it moves from one to the other.
    owners: u32,
    restored: bool,
    /// The next source record to count.
    counted: i64,
    /// The same, as the group has committed it.
    committed: i64,
    /// The changelog offset that belongs to it.
    changelog: Option<i64>,
    /// Whether a chunk was counted here.
    counts: bool,
}

impl Tally {
    pub(crate) fn new(names: Names) -> Self {
        Self { names, tasks: Mutex::default() }
    }

    /// A thread has got `task`.
    pub(crate) fn assigned(&self, task: TaskId) {
        self.tasks().entry(task).or_default().owners += 1;
    }

    /// `task` goes on at `next`, with a store that is at the changelog's end.
    pub(crate) fn restored(&self, task: TaskId, next: i64, changelog: Option<i64>) {
        self.tasks().entry(task).and_modify(|standing| {
            *standing = Standing { restored: true, counted: next, committed: next, changelog, ..*standing };
        });
    }

    /// What `task` has counted since the last checkpoint was taken back, and comes again.
    pub(crate) fn taken_back(&self, task: TaskId) {
        self.tasks().entry(task).and_modify(|standing| standing.counted = standing.committed);
    }

    /// `task` has counted the record at `offset`.
    pub(crate) fn counted(&self, task: TaskId, offset: Offset) {
        self.tasks().entry(task).and_modify(|standing| {
            standing.counted = offset.next().get();
            standing.counts = true;
        });
    }

    /// A checkpoint of `tasks` has `committed` so much; how they stand now.
    pub(crate) fn committed(&self, tasks: &[TaskId], committed: &Committed) -> Vec<TaskCommitted> {
        let mut standings = self.tasks();
        let mut all = Vec::with_capacity(tasks.len());
        for task in tasks {
            let Some(standing) = standings.get_mut(task) else { continue };
            if let Some(next) = committed.position.next(&partition_of(*task, &self.names.source)) {
                standing.committed = next.get();
            }
            let changelog = partition_of(*task, &self.names.changelog);
            standing.changelog =
                committed.changelog_offsets.get(&changelog).map_or(standing.changelog, |offset| Some(offset.get()));
            let Standing { committed: source_next, changelog: changelog_offset, .. } = *standing;
            all.push(TaskCommitted { task: task.to_string(), source_next, changelog_offset });
        }
        all
    }

    /// A thread has given `task` up; whether it is not here any more.
    pub(crate) fn closed(&self, task: TaskId) -> bool {
        let mut tasks = self.tasks();
        let gone = tasks.get_mut(&task).is_some_and(|standing| {
            standing.owners -= 1;
            standing.owners == 0
        });
        gone && tasks.remove(&task).is_some()
    }

    /// Whether any chunk was counted.
    pub(crate) fn has_counted(&self) -> bool {
        self.tasks().values().any(|standing| standing.counts)
    }

    /// Whether every task that is here has counted all of its source, and this is not yet committed.
    pub(crate) fn wants_checkpoint(&self, ends: &[i64]) -> bool {
        let tasks = self.tasks();
        let behind = |next: fn(&Standing) -> i64| {
            tasks.iter().any(|(task, standing)| end_of(*task, ends).is_none_or(|end| next(standing) < end))
        };
        !behind(|standing| standing.counted) && behind(|standing| standing.committed)
    }

    /// Whether every task is here and has committed all of its source.
    pub(crate) fn is_done(&self, ends: &[i64]) -> bool {
        let tasks = self.tasks();
        tasks.len() == ends.len()
            && tasks.iter().all(|(task, standing)| {
                standing.restored && end_of(*task, ends).is_some_and(|end| standing.committed >= end)
            })
    }

    fn tasks(&self) -> MutexGuard<'_, BTreeMap<TaskId, Standing>> {
        // Every change is one assignment.
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The partition of `topic` that belongs to `task`.
pub(crate) fn partition_of(task: TaskId, topic: &str) -> TopicPartition {
    TopicPartition::new(topic, task.partition().cast_signed())
}

fn end_of(task: TaskId, ends: &[i64]) -> Option<i64> {
    ends.get(usize::try_from(task.partition()).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two tasks that have come.
    fn tally() -> (Tally, [TaskId; 2]) {
        let tasks = [0, 1].map(|partition| TaskId::new(0, partition));
        let tally = Tally::new(Names::of_run(0));
        for task in tasks {
            tally.assigned(task);
        }
        (tally, tasks)
    }

    fn offset(at: i64) -> Offset {
        Offset::new(at).unwrap()
    }

    fn checkpoint(task: TaskId, next: i64, changelog: Option<i64>) -> Committed {
        let names = Names::of_run(0);
        let mut committed = Committed::default();
        committed.position.set(partition_of(task, &names.source), offset(next));
        if let Some(at) = changelog {
            committed.changelog_offsets.insert(partition_of(task, &names.changelog), offset(at));
        }
        committed
    }

    #[test]
    fn a_checkpoint_is_wanted_once_all_is_counted_and_until_it_is_committed() {
        let (tally, [one, two]) = tally();
        let ends = [3, 2];
        tally.restored(one, 1, None);
        tally.restored(two, 2, Some(7));
        assert!(!tally.wants_checkpoint(&ends) && !tally.has_counted());
        tally.counted(one, offset(2));
        assert!(tally.wants_checkpoint(&ends) && tally.has_counted() && !tally.is_done(&ends));
        tally.taken_back(one);
        assert!(!tally.wants_checkpoint(&ends));
        tally.counted(one, offset(2));
        let told = tally.committed(&[one, two], &checkpoint(one, 3, Some(5)));
        let expected = [("0_0", 3, Some(5)), ("0_1", 2, Some(7))];
        let expected = expected.map(|(task, source_next, changelog_offset)| TaskCommitted {
            task: task.to_owned(),
            source_next,
            changelog_offset,
        });
        assert_eq!(told, expected);
        assert!(!tally.wants_checkpoint(&ends) && tally.is_done(&ends));
    }

    #[test]
    fn it_is_not_done_without_every_task() {
        let (tally, [one, two]) = tally();
        assert!(!tally.is_done(&[0, 0]));
        tally.restored(one, 0, None);
        assert!(!tally.is_done(&[0, 0]));
        tally.restored(two, 0, None);
        assert!(tally.is_done(&[0, 0]) && !tally.is_done(&[0, 1]));
        tally.assigned(one);
        assert!(!tally.closed(one) && tally.is_done(&[0, 0]), "another thread has it");
        assert!(tally.closed(one) && !tally.is_done(&[0, 0]));
    }

    #[test]
    fn a_changelog_offset_stays_when_a_checkpoint_has_no_changes() {
        let (tally, [task, _]) = tally();
        tally.restored(task, 0, Some(4));
        let told = tally.committed(&[task], &checkpoint(task, 1, None));
        assert_eq!(told, [TaskCommitted { task: "0_0".into(), source_next: 1, changelog_offset: Some(4) }]);
    }
}
