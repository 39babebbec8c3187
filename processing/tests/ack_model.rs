//! The ack table against a whole evaluation of the tree after each answer.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that fails by panicking says so at the right line"
)]

use std::time::Instant;

use kstate_processing::{AckSettings, AckTable, Branch, DeadEnd, Failure, FanOut, Role};
use proptest::prelude::*;

const ROLES: [Role; 3] = [Role::Required, Role::AnyOf, Role::Ignored];

/// The rule, said once more: the outcome of branches with such roles and answers, `None` if it is open.
fn evaluate(branches: &[(Role, Option<bool>)], dead_end: DeadEnd) -> Option<bool> {
    let of = |role| branches.iter().filter(move |branch| branch.0 == role).map(|branch| branch.1);
    let any_of = || of(Role::AnyOf);
    if of(Role::Required).count() == 0 && any_of().count() == 0 {
        return Some(dead_end == DeadEnd::Ack);
    }
    if of(Role::Required).any(|answer| answer == Some(false)) {
        return Some(false);
    }
    if any_of().count() > 0 && any_of().all(|answer| answer == Some(false)) {
        return Some(false);
    }
    let is_done = of(Role::Required).all(|answer| answer == Some(true));
    let has_any = any_of().count() == 0 || any_of().any(|answer| answer == Some(true));
    (is_done && has_any).then_some(true)
}

#[test]
fn every_fan_out_of_up_to_four_branches_with_every_answer_in_every_order() {
    let mut table = AckTable::new(AckSettings::default()).unwrap();
    let now = Instant::now();
    let mut cases = 0;
    for count in 0..=4_u32 {
        for (roles, answers, dead_end) in (0..3_usize.pow(count))
            .flat_map(|roles| (0..2_usize.pow(count)).map(move |answers| (roles, answers)))
            .flat_map(|(roles, answers)| [DeadEnd::Ack, DeadEnd::Fail].map(|dead_end| (roles, answers, dead_end)))
        {
            let roles: Vec<_> = (0..count).map(|n| ROLES[roles / 3_usize.pow(n) % 3]).collect();
            let answers: Vec<_> = (0..count).map(|n| answers >> n & 1 == 1).collect();
            let edge = FanOut::new(roles.clone()).unwrap().with_dead_end(dead_end);
            for first in 0..count.max(1) as usize {
                let mut seen: Vec<_> = roles.iter().map(|role| (*role, None)).collect();
                let mut branches: Vec<_> = table.open(cases, &edge, now).unwrap().enumerate().collect();
                if count > 0 {
                    branches.rotate_left(first);
                }
                let mut outcome = table.next_settlement();
                assert_eq!(outcome.as_ref().map(|one| one.outcome.is_ok()), evaluate(&seen, dead_end));
                for (index, branch) in branches {
                    seen[index].1 = Some(answers[index]);
                    if answers[index] {
                        table.ack(branch);
                    } else {
                        table.fail(branch, index);
                    }
                    let settled = table.next_settlement();
                    assert!(outcome.is_none() || settled.is_none(), "one outcome");
                    if let Some(settlement) = settled {
                        assert_eq!(settlement.root, cases);
                        if let Err(failure) = &settlement.outcome {
                            assert_eq!(failure, &Failure::Reported(index), "the cause is that of the decisive answer");
                        }
                        outcome = Some(settlement);
                    }
                    let expected = evaluate(&seen, dead_end);
                    assert_eq!(outcome.as_ref().map(|one| one.outcome.is_ok()), expected, "{seen:?}");
                }
                assert!(outcome.is_some());
                cases += 1;
            }
        }
    }
    assert_eq!((table.roots(), table.nested()), (0, 0));
    assert_eq!(table.stats().acked + table.stats().failed, cases);
}

/// A record's way: either its end, or a further fan-out.
#[derive(Clone, Debug)]
enum Way {
    End { succeeds: bool },
    Split { branches: Vec<(Role, Way)> },
}

fn ways() -> impl Strategy<Value = Way> {
    any::<bool>().prop_map(|succeeds| Way::End { succeeds }).prop_recursive(4, 40, 4, |inner| {
        let role = prop::sample::select(&ROLES[..]);
        prop::collection::vec((role, inner), 1..5).prop_map(|branches| Way::Split { branches })
    })
}

/// A node of the tree as far as it has come.
struct Node {
    parent: Option<(usize, usize)>,
    branches: Vec<(Role, Option<bool>)>,
    ignored: bool,
}

struct Model {
    nodes: Vec<Node>,
    late: u64,
}

impl Model {
    fn is_decided(&self, node: usize) -> bool {
        evaluate(&self.nodes[node].branches, DeadEnd::Ack).is_some()
    }

    fn answer(&mut self, (node, branch): (usize, usize), answer: bool) {
        if self.nodes[node].ignored || self.nodes[node].branches[branch].0 == Role::Ignored {
            return;
        }
        if self.is_decided(node) {
            self.late += 1;
            return;
        }
        self.nodes[node].branches[branch].1 = Some(answer);
        if let (Some(outcome), Some(parent)) =
            (evaluate(&self.nodes[node].branches, DeadEnd::Ack), self.nodes[node].parent)
        {
            self.answer(parent, outcome);
        }
    }
}

proptest! {
    #[test]
    fn any_tree_in_any_order(way in ways(), order in prop::collection::vec(any::<usize>(), 100)) {
        let mut table = AckTable::new(AckSettings::default()).unwrap();
        let now = Instant::now();
        let root_edge = FanOut::new([Role::Required]).unwrap();
        let mut model = Model {
            nodes: vec![Node { parent: None, branches: vec![(Role::Required, None)], ignored: false }],
            late: 0,
        };
        let first = table.open((), &root_edge, now).unwrap().next().unwrap();
        let mut going: Vec<(Branch, (usize, usize), Way)> = vec![(first, (0, 0), way)];
        let mut outcome = None;
        let mut order = order.into_iter().cycle();
        while !going.is_empty() {
            let (branch, place, way) = going.remove(order.next().unwrap() % going.len());
            match way {
                Way::End { succeeds } => {
                    model.answer(place, succeeds);
                    if succeeds { table.ack(branch) } else { table.fail(branch, place) }
                }
                Way::Split { branches } => {
                    let ignored = model.nodes[place.0].ignored || model.nodes[place.0].branches[place.1].0 == Role::Ignored;
                    let was_late = !ignored && model.is_decided(place.0);
                    let edge = FanOut::new(branches.iter().map(|branch| branch.0)).unwrap();
                    let node = model.nodes.len();
                    let roles: Vec<_> = branches.iter().map(|branch| (branch.0, None)).collect();
                    let dead_end = evaluate(&roles, DeadEnd::Ack);
                    if was_late {
                        // Its branches answer to nobody; each answer is late.
                        model.nodes.push(Node { parent: None, branches: vec![(Role::Required, Some(false)); roles.len()], ignored });
                        for (own, (role, _)) in model.nodes[node].branches.iter_mut().zip(&roles) {
                            own.0 = if *role == Role::Ignored { Role::Ignored } else { Role::Required };
                        }
                        if dead_end.is_some() {
                            model.nodes[node].ignored = true;
                        }
                    } else {
                        model.nodes.push(Node { parent: Some(place), branches: roles, ignored });
                        if let (Some(outcome), false) = (dead_end, ignored) {
                            model.answer(place, outcome);
                        }
                    }
                    let made = table.split(branch, &edge, now).unwrap();
                    going.extend(made.zip(branches).enumerate().map(|(n, (branch, (_, way)))| (branch, (node, n), way)));
                }
            }
            if let Some(settlement) = table.next_settlement() {
                prop_assert!(outcome.is_none(), "one outcome");
                outcome = Some(settlement.outcome.is_ok());
            }
            prop_assert_eq!(outcome, model.nodes[0].branches[0].1);
        }
        prop_assert!(outcome.is_some());
        prop_assert_eq!((table.roots(), table.nested()), (0, 0), "nothing stays behind");
        prop_assert_eq!(table.stats().late, model.late);
    }
}
