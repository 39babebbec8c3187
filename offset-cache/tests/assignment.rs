//! Assignment from lags: single cases. What holds for every group is in `assignment_properties.rs`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::unnecessary_wraps, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};

use kstate_api::{ErrorKind, TaskId};
use kstate_offset_cache::{
    Lag,
    assignment::{
        Assignment, AssignmentOptions, Member, MemberTasks, NoPreference, ReplicaPreference, TaskState, assign,
    },
    wire::{OffsetSum, TaskOffsetSum},
};

const WHOLE_LOG: Lag = Lag::Behind(1_000_000);

fn task(partition: u32) -> TaskId {
    TaskId::new(0, partition)
}

fn tasks(partitions: std::ops::Range<u32>) -> BTreeMap<TaskId, TaskState> {
    partitions.map(|partition| (task(partition), TaskState::Stateful { log: WHOLE_LOG })).collect()
}

fn running(id: &str, partitions: impl IntoIterator<Item = u32>) -> Member {
    partitions.into_iter().fold(Member::new(id), |member, partition| member.assigned(task(partition), Lag::Running))
}

fn set(partitions: impl IntoIterator<Item = u32>) -> BTreeSet<TaskId> {
    partitions.into_iter().map(task).collect()
}

fn assigned(tasks: &BTreeMap<TaskId, TaskState>, members: &[Member], options: &AssignmentOptions) -> Assignment {
    assign(tasks, members, options, &NoPreference).unwrap()
}

fn of<'a>(assignment: &'a Assignment, member: &str) -> &'a MemberTasks {
    &assignment.members()[member]
}

#[test]
fn a_new_member_warms_up_two_at_a_time_and_nothing_stops_meanwhile() {
    let members = [running("a", 0..10), Member::new("b")];
    let assignment = assigned(&tasks(0..10), &members, &AssignmentOptions::new());
    assert_eq!(of(&assignment, "a").active, set(0..10));
    assert_eq!(of(&assignment, "b").active, set([]));
    assert_eq!(of(&assignment, "b").warmups.len(), 2);
    // Five are to move; three have to wait for a warm-up.
    assert_eq!(assignment.movements().len(), 5);
    assert!(assignment.probing_rebalance_needed());

    let more = AssignmentOptions::new().max_warmup_replicas(4);
    assert_eq!(of(&assigned(&tasks(0..10), &members, &more), "b").warmups.len(), 4);
}

#[test]
fn what_is_warmed_up_moves_and_the_next_begins() {
    let b = Member::new("b").assigned(task(5), Lag::Behind(3)).assigned(task(6), Lag::Behind(10_000));
    let assignment = assigned(&tasks(0..10), &[running("a", 0..10), b], &AssignmentOptions::new());
    assert_eq!(of(&assignment, "b").active, set([5, 6]));
    assert_eq!(of(&assignment, "a").active, set([0, 1, 2, 3, 4, 7, 8, 9]));
    assert_eq!(of(&assignment, "b").warmups.len(), 2);
}

#[test]
fn a_lag_above_the_acceptable_one_still_warms_up() {
    let b = Member::new("b").assigned(task(1), Lag::Behind(10_001));
    let assignment = assigned(&tasks(0..2), &[running("a", 0..2), b.clone()], &AssignmentOptions::new());
    assert_eq!(of(&assignment, "a").active, set(0..2));
    assert_eq!(of(&assignment, "b").warmups, set([1]));
    let higher = AssignmentOptions::new().acceptable_recovery_lag(10_001);
    let assignment = assigned(&tasks(0..2), &[running("a", 0..2), b], &higher);
    assert_eq!(of(&assignment, "b").active, set([1]));
    assert!(!assignment.probing_rebalance_needed());
}

#[test]
fn a_member_that_comes_back_takes_what_it_has_on_its_disk() {
    let b = Member::new("b").stored(task(0), Lag::Behind(50)).stored(task(2), Lag::Behind(9));
    let assignment = assigned(&tasks(0..4), &[running("a", 0..4), b], &AssignmentOptions::new());
    assert_eq!(of(&assignment, "b").active, set([0, 2]));
    assert_eq!(of(&assignment, "a").active, set([1, 3]));
    assert!(!assignment.probing_rebalance_needed());
}

#[test]
fn after_a_restart_of_all_each_task_goes_to_the_copy_with_the_least_lag() {
    let a = Member::new("a").stored(task(0), Lag::Behind(70_000)).stored(task(1), Lag::Behind(20_000));
    let b = Member::new("b").stored(task(0), Lag::Behind(60_000)).stored(task(1), Lag::Behind(30_000));
    let assignment = assigned(&tasks(0..2), &[a, b], &AssignmentOptions::new());
    assert_eq!(of(&assignment, "a").active, set([1]));
    assert_eq!(of(&assignment, "b").active, set([0]));
    assert!(!assignment.probing_rebalance_needed());
}

#[test]
fn a_standby_takes_over_from_a_member_that_is_gone() {
    let one = AssignmentOptions::new().num_standby_replicas(1);
    let a = running("a", [0]).assigned(task(2), Lag::Behind(0));
    let b = running("b", [1]).assigned(task(3), Lag::Behind(12));
    let assignment = assigned(&tasks(0..4), &[a, b], &one);
    assert_eq!(of(&assignment, "a").active, set([0, 2]));
    assert_eq!(of(&assignment, "b").active, set([1, 3]));
    assert_eq!(of(&assignment, "a").standbys, set([1, 3]));
    assert_eq!(of(&assignment, "b").standbys, set([0, 2]));
}

#[test]
fn an_active_replica_that_should_move_swaps_with_a_caught_up_standby() {
    // `c` is new and should have one of the tasks of `a`, which is down; `b` has their standbys.
    let one = AssignmentOptions::new().num_standby_replicas(1);
    let b = running("b", 0..2).assigned(task(2), Lag::Behind(1)).assigned(task(3), Lag::Behind(2));
    let assignment = assigned(&tasks(0..4), &[b, Member::new("c")], &one);
    assert_eq!(of(&assignment, "b").active, set(0..4));
    // `c` restores as the standby that every task has, and no warm-up is spent.
    assert_eq!(of(&assignment, "c").standbys, set(0..4));
    assert_eq!(of(&assignment, "c").warmups, set([]));
    assert!(assignment.probing_rebalance_needed());
}

#[test]
fn capacities_are_heeded() {
    let members = [Member::new("a"), Member::new("b").capacity(2), Member::new("c").capacity(5)];
    let assignment = assigned(&tasks(0..16), &members, &AssignmentOptions::new());
    assert_eq!(["a", "b", "c"].map(|member| of(&assignment, member).active.len()), [2, 4, 10]);
}

#[test]
fn tasks_of_one_sub_topology_are_spread() {
    let all: BTreeMap<_, _> = (0..2)
        .flat_map(|subtopology| (0..4).map(move |partition| TaskId::new(subtopology, partition)))
        .map(|task| (task, TaskState::Stateful { log: WHOLE_LOG }))
        .collect();
    let assignment = assigned(&all, &[Member::new("a"), Member::new("b")], &AssignmentOptions::new());
    for member in ["a", "b"] {
        let of_first = of(&assignment, member).active.iter().filter(|task| task.subtopology() == 0).count();
        assert_eq!(of_first, 2, "{member}");
    }
}

/// In Kafka's order −3 comes before −2 and 0, so the member of which nothing is known passes for the most caught up.
#[test]
fn an_unknown_lag_is_the_last_choice_and_not_the_first() {
    let unknown = TaskOffsetSum::from_wire(-3).unwrap().lag(OffsetSum::new(1_000_000));
    let behind = TaskOffsetSum::from_wire(400_000).unwrap().lag(OffsetSum::new(1_000_000));
    assert_eq!((unknown, behind), (Lag::Unknown, Lag::Behind(600_000)));

    // Nothing runs: the known copy gets the task, whichever comes first by name.
    for (known, other) in [("a", "b"), ("b", "a")] {
        let members = [Member::new(known).stored(task(0), behind), Member::new(other).stored(task(0), unknown)];
        let assignment = assigned(&tasks(0..1), &members, &AssignmentOptions::new());
        assert_eq!(of(&assignment, known).active, set([0]));
        assert!(!assignment.probing_rebalance_needed());
    }
    // It runs somewhere: there it stays.
    let members = [Member::new("a").assigned(task(0), unknown), running("b", [0, 1])];
    let assignment = assigned(&tasks(0..2), &members, &AssignmentOptions::new());
    assert_eq!(of(&assignment, "b").active, set(0..2));
    assert_eq!(of(&assignment, "a").active, set([]));
    assert_eq!(of(&assignment, "a").warmups.len(), 1);
    // Not even a log so short that everybody is caught up makes it better than a copy that runs.
    let short = BTreeMap::from([(task(0), TaskState::Stateful { log: Lag::Behind(5) })]);
    let members = [Member::new("a").assigned(task(0), unknown), running("b", [0])];
    assert_eq!(of(&assigned(&short, &members, &AssignmentOptions::new()), "b").active, set([0]));
}

/// No broker told the ends: everything stays with who has it, and what has no owner goes to who had it.
#[test]
fn without_ends_tasks_stay_with_their_owners() {
    let unknown = |partitions: std::ops::Range<u32>| -> BTreeMap<_, _> {
        partitions.map(|partition| (task(partition), TaskState::Stateful { log: Lag::Unknown })).collect()
    };
    let a = running("a", [3, 5]).stored(task(0), Lag::Unknown);
    let b = running("b", [1, 4]).assigned(task(2), Lag::Unknown).stored(task(3), Lag::Unknown);
    let assignment = assigned(&unknown(0..6), &[a, b], &AssignmentOptions::new());
    assert_eq!(of(&assignment, "a").active, set([0, 3, 5]));
    assert_eq!(of(&assignment, "b").active, set([1, 2, 4]));
    assert!(!assignment.probing_rebalance_needed());
}

#[test]
fn with_every_lag_acceptable_nothing_is_warmed_up() {
    let options = AssignmentOptions::new().acceptable_recovery_lag(u64::MAX);
    let assignment = assigned(&tasks(0..4), &[running("a", 0..4), Member::new("b")], &options);
    assert_eq!(of(&assignment, "b").active.len(), 2);
    assert!(!assignment.probing_rebalance_needed());
}

#[test]
fn stateless_tasks_even_out_what_stateful_ones_leave_uneven_and_stay() {
    let mut all = tasks(0..3);
    all.extend((10..15).map(|partition| (task(partition), TaskState::Stateless)));
    let assignment = assigned(&all, &[Member::new("a"), Member::new("b")], &AssignmentOptions::new());
    assert_eq!(["a", "b"].map(|member| of(&assignment, member).active.len()), [4, 4]);
    // A third member takes its share of them at once: they have nothing to restore.
    let again = |member: &str| running(member, of(&assignment, member).active.iter().map(|task| task.partition()));
    let grown = assigned(&all, &[again("a"), again("b"), Member::new("c")], &AssignmentOptions::new());
    let stateless = of(&grown, "c").active.iter().filter(|task| task.partition() >= 10).count();
    assert_eq!(stateless, of(&grown, "c").active.len());
    assert!((1..=2).contains(&stateless), "{stateless}");
}

#[test]
fn standbys_are_as_many_as_there_are_other_members() {
    let options = AssignmentOptions::new().num_standby_replicas(5);
    let assignment = assigned(&tasks(0..3), &[Member::new("a"), Member::new("b"), Member::new("c")], &options);
    for (member, tasks) in assignment.members() {
        assert_eq!((tasks.active.len(), tasks.standbys.len()), (1, 2), "{member}");
    }
    let alone = assigned(&tasks(0..3), &[Member::new("a")], &options);
    assert_eq!(of(&alone, "a").standbys, set([]));
}

#[test]
fn copies_of_tasks_that_are_no_more_are_ignored() {
    let assignment = assigned(&tasks(0..1), &[running("a", [0, 7])], &AssignmentOptions::new());
    assert_eq!(of(&assignment, "a").active, set([0]));
}

#[test]
fn a_group_without_members_or_with_one_twice_is_refused() {
    let refused = |members: &[Member]| {
        assign(&tasks(0..1), members, &AssignmentOptions::new(), &NoPreference).unwrap_err().kind()
    };
    assert_eq!(refused(&[]), ErrorKind::InvalidArgument);
    assert_eq!(refused(&[Member::new("a"), Member::new("a")]), ErrorKind::InvalidArgument);
    let nothing = assigned(&BTreeMap::new(), &[], &AssignmentOptions::new());
    assert!(nothing.members().is_empty());
}

/// Replicas of a task in racks of their own.
#[derive(Debug)]
struct Apart;

impl ReplicaPreference for Apart {
    fn cost(&self, _task: TaskId, member: &Member, others: &[&Member]) -> u64 {
        others.iter().filter(|other| other.rack_id() == member.rack_id()).map(|_| 1).sum()
    }
}

#[test]
fn a_preference_keeps_replicas_in_racks_of_their_own() {
    let racks = BTreeMap::from([("a", "1"), ("b", "1"), ("c", "2"), ("d", "2")]);
    let members: Vec<_> = racks.iter().map(|(member, rack)| Member::new(*member).rack(*rack)).collect();
    let options = AssignmentOptions::new().num_standby_replicas(1);
    let assignment = assign(&tasks(0..4), &members, &options, &Apart).unwrap();
    for partition in 0..4 {
        let of_role = |role: fn(&MemberTasks) -> &BTreeSet<TaskId>| {
            let mut holders = assignment.members().iter().filter(|(_, tasks)| role(tasks).contains(&task(partition)));
            racks[&**holders.next().unwrap().0]
        };
        assert_ne!(of_role(|tasks| &tasks.active), of_role(|tasks| &tasks.standbys), "task {partition}");
    }
}
