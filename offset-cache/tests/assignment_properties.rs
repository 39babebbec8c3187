//! What holds for the assignment of every group.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::unnecessary_wraps, clippy::panic, reason = "tests")]

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
    time::{Duration, Instant},
};

use kstate_api::TaskId;
use kstate_offset_cache::{
    Lag,
    assignment::{Assignment, AssignmentOptions, Member, NoPreference, ReplicaPreference, TaskState, assign},
};
use proptest::prelude::*;

type Tasks = BTreeMap<TaskId, TaskState>;

#[derive(Clone, Debug)]
struct Case {
    tasks: Tasks,
    members: Vec<Member>,
    options: AssignmentOptions,
    standbys: usize,
    warmups: usize,
    capacities: Vec<u32>,
    /// What somebody prefers, if anybody does.
    whim: Option<Whim>,
}

/// A preference without any sense, but always the same one.
#[derive(Clone, Copy, Debug)]
struct Whim(u64);

impl ReplicaPreference for Whim {
    fn cost(&self, task: TaskId, member: &Member, others: &[&Member]) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.0, task, member.id(), others.iter().map(|other| other.id()).collect::<Vec<_>>()).hash(&mut hasher);
        hasher.finish() % 4
    }
}

impl Case {
    fn assign(&self) -> Assignment {
        let preference = self.whim.as_ref().map_or(&NoPreference as &dyn ReplicaPreference, |whim| whim);
        assign(&self.tasks, &self.members, &self.options, preference).unwrap()
    }

    /// The lag of `task`, whose whole log is `log`, on `member`.
    fn lag(member: &Member, task: TaskId, log: Lag) -> Lag {
        member.copy(task).map_or(log, |copy| copy.lag.min(log))
    }

    fn are_capacities_equal(&self) -> bool {
        self.capacities.iter().all(|capacity| *capacity == self.capacities[0])
    }

    fn stateful(&self) -> impl Iterator<Item = (TaskId, Lag)> {
        self.tasks.iter().filter_map(|(task, state)| match state {
            TaskState::Stateful { log } => Some((*task, *log)),
            TaskState::Stateless => None,
        })
    }
}

fn any_lag() -> impl Strategy<Value = Lag> {
    prop_oneof![
        2 => (0..20_000_u64).prop_map(Lag::Behind),
        2 => (0..2_000_000_u64).prop_map(Lag::Behind),
        1 => Just(Lag::Unknown),
    ]
}

fn any_task() -> impl Strategy<Value = TaskState> {
    prop_oneof![
        1 => Just(TaskState::Stateless),
        4 => any_lag().prop_map(|log| TaskState::Stateful { log }),
    ]
}

/// Up to one copy of each task on each member, of which the first that runs does.
fn any_case(equal: bool) -> impl Strategy<Value = Case> {
    let capacity = if equal { 1..=1_u32 } else { 1..=5 };
    let copy = prop_oneof![
        3 => Just(None),
        1 => any_lag().prop_map(|lag| Some((false, lag))),
        1 => any_lag().prop_map(|lag| Some((true, lag))),
        1 => Just(Some((true, Lag::Running))),
    ];
    let sizes = (1..7_usize, 0..25_usize);
    let of_sizes = move |(members, tasks)| {
        (
            prop::collection::vec(any_task(), tasks),
            prop::collection::vec(capacity.clone(), members),
            prop::collection::vec(prop::collection::vec(copy.clone(), tasks), members),
            0..4_usize,
            1..4_usize,
            prop::option::of(any::<u64>().prop_map(Whim)),
        )
    };
    sizes.prop_flat_map(of_sizes).prop_map(|(states, capacities, copies, standbys, warmups, whim)| {
        let id = |number: usize| TaskId::new(u32::try_from(number % 3).unwrap(), u32::try_from(number / 3).unwrap());
        let tasks: Tasks = states.into_iter().enumerate().map(|(number, state)| (id(number), state)).collect();
        let mut running = BTreeSet::new();
        let members = capacities.iter().zip(copies).enumerate().map(|(number, (capacity, copies))| {
            let member = Member::new(format!("member-{number}")).capacity(*capacity);
            copies.into_iter().enumerate().fold(member, |member, (number, copy)| match copy {
                None => member,
                Some((_, Lag::Running)) if !running.insert(id(number)) => member,
                Some((true, lag)) => member.assigned(id(number), lag),
                Some((false, lag)) => member.stored(id(number), lag),
            })
        });
        let members = members.collect();
        let options = AssignmentOptions::new().num_standby_replicas(standbys).max_warmup_replicas(warmups);
        Case { tasks, members, options, standbys, warmups, capacities, whim }
    })
}

fn actives(assignment: &Assignment) -> BTreeMap<TaskId, Vec<Arc<str>>> {
    let mut owners: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (member, tasks) in assignment.members() {
        for task in &tasks.active {
            owners.entry(*task).or_default().push(member.clone());
        }
    }
    owners
}

/// The group as it is when everybody did what `assignment` says and restored all of it.
fn done(case: &Case, assignment: &Assignment) -> Case {
    done_with(case, assignment, |_| Lag::Behind(3))
}

/// The group when everybody did what `assignment` says, and standbys and warm-ups have of their lags what `rest` says.
fn done_with(case: &Case, assignment: &Assignment, rest: impl Fn(Lag) -> Lag) -> Case {
    let members = case.members.iter().map(|old| {
        let tasks = &assignment.members()[old.id()];
        let capacity = case.capacities[case.members.iter().position(|member| member.id() == old.id()).unwrap()];
        let mut member = Member::new(old.id()).capacity(capacity);
        // What a member had and has no more stays on its disk and falls behind.
        for task in case.tasks.keys() {
            if let Some(copy) = old.copy(*task) {
                let lag = if copy.lag == Lag::Running { Lag::Behind(15_000) } else { copy.lag };
                member = member.stored(*task, lag);
            }
        }
        member = tasks.active.iter().fold(member, |member, task| member.assigned(*task, Lag::Running));
        tasks.standbys.union(&tasks.warmups).fold(member, |member, task| {
            let log = case.stateful().find(|(stateful, _)| stateful == task).unwrap().1;
            member.assigned(*task, rest(Case::lag(old, *task, log)))
        })
    });
    Case { members: members.collect(), ..case.clone() }
}

/// Assigns until nothing is to move, and says how often that was.
fn settle(mut case: Case) -> (Case, Assignment, usize) {
    let limit = 10 + 2 * case.tasks.len() * (1 + case.standbys);
    for round in 1..=limit {
        let assignment = case.assign();
        case = done(&case, &assignment);
        if !assignment.probing_rebalance_needed() {
            return (case, assignment, round);
        }
    }
    panic!("after {limit} rounds there is still something to move: {:?}", case.assign().movements());
}

fn check_balance(case: &Case, assignment: &Assignment) {
    let capacity: u64 = case.capacities.iter().map(|capacity| u64::from(*capacity)).sum();
    let stateful: BTreeSet<_> = case.stateful().map(|(task, _)| task).collect();
    let members = case.members.iter().zip(&case.capacities);
    let loads = members.map(|(member, capacity)| {
        let tasks = &assignment.members()[member.id()];
        let actives = tasks.active.intersection(&stateful).count();
        (actives as u64, tasks.active.len() as u64, (actives + tasks.standbys.len()) as u64, u64::from(*capacity))
    });
    let loads: Vec<_> = loads.collect();
    for (stateful_load, load, _, weight) in &loads {
        let share = stateful.len() as u64 * weight;
        assert!((share / capacity..=share.div_ceil(capacity)).contains(stateful_load), "{loads:?}");
        // Both kinds together: within one of even.
        let share = case.tasks.len() as u64 * weight;
        assert!(load * capacity <= share + capacity && share <= (load + 1) * capacity, "{loads:?}");
    }
    if case.are_capacities_equal() {
        let replicas = loads.iter().map(|(_, _, replicas, _)| *replicas);
        assert!(replicas.clone().max().unwrap() - replicas.min().unwrap() <= 1, "{loads:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn every_task_has_exactly_one_active_replica(case in any_case(false)) {
        let actives = actives(&case.assign());
        prop_assert_eq!(actives.keys().collect::<Vec<_>>(), case.tasks.keys().collect::<Vec<_>>());
        prop_assert!(actives.values().all(|owners| owners.len() == 1));
    }

    #[test]
    fn no_member_has_two_replicas_of_a_task(case in any_case(false)) {
        for tasks in case.assign().members().values() {
            prop_assert!(tasks.active.is_disjoint(&tasks.standbys));
            prop_assert!(tasks.active.is_disjoint(&tasks.warmups));
            prop_assert!(tasks.standbys.is_disjoint(&tasks.warmups));
        }
    }

    #[test]
    fn every_stateful_task_has_its_standbys_and_warm_ups_are_bounded(case in any_case(false)) {
        let assignment = case.assign();
        let expected = case.standbys.min(case.members.len() - 1);
        for task in case.tasks.keys() {
            let is_stateful = case.stateful().any(|(stateful, _)| stateful == *task);
            let standbys = assignment.members().values().filter(|tasks| tasks.standbys.contains(task)).count();
            prop_assert_eq!(standbys, if is_stateful { expected } else { 0 });
        }
        let warmups: usize = assignment.members().values().map(|tasks| tasks.warmups.len()).sum();
        prop_assert!(warmups <= case.warmups);
        prop_assert!(warmups <= assignment.movements().len());
    }

    /// A task runs where its lag is acceptable, or where nobody has less.
    #[test]
    fn a_task_runs_where_it_is_caught_up_or_on_the_best_copy(case in any_case(false)) {
        let actives = actives(&case.assign());
        for (task, log) in case.stateful() {
            let lag = |member: &Member| Case::lag(member, task, log);
            let least = case.members.iter().map(lag).min().unwrap();
            let owner = case.members.iter().find(|member| member.id() == &*actives[&task][0]).unwrap();
            prop_assert!(lag(owner).is_caught_up(10_000) || lag(owner) == least, "{}: {} of {}", task, lag(owner), least);
        }
    }

    /// Nothing is taken from a member that runs it for one that is not caught up.
    #[test]
    fn what_runs_goes_on_running_until_another_is_caught_up(case in any_case(false)) {
        let actives = actives(&case.assign());
        for (task, log) in case.stateful() {
            let runs = |member: &&Member| member.copy(task).is_some_and(|copy| copy.lag == Lag::Running);
            let Some(runner) = case.members.iter().find(runs) else { continue };
            let owner = case.members.iter().find(|member| member.id() == &*actives[&task][0]).unwrap();
            let lag = Case::lag(owner, task, log);
            prop_assert!(owner.id() == runner.id() || lag.is_caught_up(10_000));
        }
    }

    #[test]
    fn the_answer_does_not_depend_on_the_order_of_members(case in any_case(false), turn in 0..7_usize) {
        let mut turned = case.clone();
        turned.members.rotate_left(turn % case.members.len());
        turned.members.reverse();
        prop_assert_eq!(case.assign(), turned.assign());
        prop_assert_eq!(case.assign(), case.assign());
    }

    /// Probed again and again, every group comes to rest, evenly loaded, and then nothing changes any more.
    #[test]
    fn movements_converge_on_an_even_assignment_that_is_stable(case in any_case(false)) {
        let (settled, assignment, rounds) = settle(case.clone());
        check_balance(&case, &assignment);
        prop_assert_eq!(settled.assign(), assignment);
        prop_assert!(rounds <= 2 + case.tasks.len() * (1 + case.standbys), "{} rounds", rounds);
    }

    /// A restore may take longer than the time between two probes: in the end all are where they should be nevertheless.
    #[test]
    fn movements_converge_however_slowly_restores_go_on(case in any_case(false)) {
        let slower = |lag| match lag {
            Lag::Running => Lag::Behind(3),
            Lag::Behind(offsets) => Lag::Behind(offsets / 3),
            Lag::Unknown => Lag::Behind(500_000),
        };
        let mut case = case;
        let limit = 10 + 8 * case.tasks.len() * (1 + case.standbys);
        for round in 0.. {
            prop_assert!(round < limit, "after {} rounds there is still something to move", limit);
            let assignment = case.assign();
            case = done_with(&case, &assignment, slower);
            if !assignment.probing_rebalance_needed() {
                prop_assert_eq!(case.assign(), assignment);
                break;
            }
        }
    }

    /// Lags go up and down with the load. As long as what is caught up stays so, nothing moves.
    #[test]
    fn what_is_caught_up_stays_where_it_is_whatever_its_lag(case in any_case(false), lags in prop::collection::vec(0..=10_000_u64, 1..20)) {
        let (settled, assignment, _) = settle(case);
        let lags = std::cell::RefCell::new(lags.iter().cycle());
        let varied = done_with(&settled, &assignment, |_| Lag::Behind(*lags.borrow_mut().next().unwrap()));
        prop_assert_eq!(varied.assign(), assignment);
    }

    /// Nobody knows what an unknown copy has, so it is no reason to run a task there. In Kafka's order of numbers it
    /// passes for the most caught up.
    #[test]
    fn an_unknown_lag_is_never_better_than_a_known_one(case in any_case(false)) {
        let mut case = case;
        // As long as it matters: nobody is caught up without a copy.
        for state in case.tasks.values_mut() {
            *state = TaskState::Stateful { log: Lag::Unknown };
        }
        let actives = actives(&case.assign());
        for task in case.tasks.keys() {
            let is_known = |member: &&Member| member.copy(*task).is_some_and(|copy| copy.lag != Lag::Unknown);
            let known = case.members.iter().filter(is_known).count();
            let owner = case.members.iter().find(|member| member.id() == &*actives[task][0]).unwrap();
            prop_assert!(known == 0 || is_known(&owner), "{} runs on {}", task, owner.id());
        }
    }

    #[test]
    fn replicas_are_within_one_of_even_among_equals(case in any_case(true)) {
        let (_, assignment, _) = settle(case.clone());
        check_balance(&case, &assignment);
    }

    /// A member that goes takes only its own tasks with it; the others' stay, but for what evens out loads.
    #[test]
    fn a_member_that_leaves_moves_no_more_than_its_own_tasks(case in any_case(true)) {
        let (mut settled, before, _) = settle(case);
        prop_assume!(settled.members.len() > 1);
        settled.members.pop();
        settled.capacities.pop();
        let after = settled.assign();
        for member in &settled.members {
            let (before, after) = (&before.members()[member.id()].active, &after.members()[member.id()].active);
            let stateful: BTreeSet<_> = settled.stateful().map(|(task, _)| task).collect();
            prop_assert!(before.intersection(&stateful).all(|task| after.contains(task)), "{:?} {:?}", before, after);
        }
    }
}

/// A large group after one of its members came back; the time is printed.
#[test]
#[ignore = "measures: cargo test --release -p kstate-offset-cache --test assignment_properties -- --ignored --nocapture"]
fn ten_thousand_tasks_on_fifty_members() {
    let tasks: Tasks = (0..10_000)
        .map(|number| (TaskId::new(0, number), TaskState::Stateful { log: Lag::Behind(1_000_000) }))
        .collect();
    let members: Vec<_> = (0..50).map(|number| Member::new(format!("member-{number:02}"))).collect();
    let options = AssignmentOptions::new().num_standby_replicas(1);
    let capacities = vec![1; 50];
    let mut case = Case { tasks, members, options, standbys: 1, warmups: 2, capacities, whim: None };
    for what in ["from nothing", "the same again", "one member more", "and again"] {
        if what == "one member more" {
            case.members.push(Member::new("member-50"));
            case.capacities.push(1);
        }
        let started = Instant::now();
        let assignment = case.assign();
        println!("10 000 tasks, {}: {:?}, {} to move", what, started.elapsed(), assignment.movements().len());
        assert!(started.elapsed() < Duration::from_secs(60));
        case = done(&case, &assignment);
    }
}
