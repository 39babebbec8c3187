//! Single cases of the ack table: time, room, drops, merges.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that fails by panicking says so at the right line"
)]

use std::{
    thread,
    time::{Duration, Instant},
};

use kstate_api::ErrorKind;
use kstate_processing::{AckSettings, AckTable, Branch, DeadEnd, Failure, FanOut, Full, OnTimeout, Role, Settlement};

type Table = AckTable<u64, &'static str>;

const SECOND: Duration = Duration::from_secs(1);

fn table(settings: AckSettings) -> Table {
    AckTable::new(settings).unwrap()
}

fn required(branches: usize) -> FanOut {
    FanOut::new(vec![Role::Required; branches]).unwrap()
}

fn open(table: &mut Table, root: u64, edge: &FanOut, now: Instant) -> Vec<Branch> {
    table.open(root, edge, now).unwrap().collect()
}

fn settled(table: &mut Table) -> Vec<Settlement<u64, &'static str>> {
    std::iter::from_fn(|| table.next_settlement()).collect()
}

fn failed(root: u64, failure: Failure<&'static str>) -> Settlement<u64, &'static str> {
    Settlement { root, outcome: Err(failure) }
}

#[test]
fn an_entry_expires_at_its_deadline_and_late_answers_are_counted() {
    let mut table = table(AckSettings::default().with_timeout(10 * SECOND, OnTimeout::Fail));
    let now = Instant::now();
    let edge = required(2);
    let mut early = open(&mut table, 1, &edge, now);
    let later = open(&mut table, 2, &edge, now + SECOND);
    table.ack(early.pop().unwrap());
    assert_eq!(table.next_deadline(), Some(now + 10 * SECOND));
    assert_eq!(table.oldest_age(now + 3 * SECOND), Some(3 * SECOND));
    table.expire(now + Duration::from_millis(9_999));
    assert_eq!(settled(&mut table), []);
    table.expire(now + 10 * SECOND);
    assert_eq!(settled(&mut table), [failed(1, Failure::TimedOut)]);
    table.ack(early.pop().unwrap());
    assert_eq!((table.stats().late, table.stats().timed_out), (1, 1));
    for branch in later {
        table.ack(branch);
    }
    assert_eq!(settled(&mut table), [Settlement { root: 2, outcome: Ok(()) }]);
    table.expire(now + 100 * SECOND);
    assert_eq!((settled(&mut table), table.next_deadline()), (vec![], None));
}

#[test]
fn a_timeout_can_be_a_success_that_is_counted() {
    let mut table = table(AckSettings::default().with_timeout(SECOND, OnTimeout::Ack));
    let now = Instant::now();
    let branches = open(&mut table, 1, &required(1), now);
    table.expire(now + SECOND);
    assert_eq!(settled(&mut table), [Settlement { root: 1, outcome: Ok(()) }]);
    assert_eq!((table.stats().acked_by_timeout, table.stats().acked), (1, 1));
    drop(branches);
    assert_eq!(settled(&mut table), []);
    assert_eq!((table.stats().late, table.stats().dropped), (1, 0));
}

#[test]
fn a_nested_entry_expires_and_fails_its_root_with_the_cause() {
    let mut table = table(AckSettings::default().with_timeout(10 * SECOND, OnTimeout::Fail));
    let now = Instant::now();
    let edge = FanOut::new([Role::AnyOf, Role::AnyOf]).unwrap();
    let mut branches = open(&mut table, 1, &edge, now);
    let nested = table.split(branches.pop().unwrap(), &required(1), now).unwrap().next().unwrap();
    table.fail(branches.pop().unwrap(), "no");
    assert_eq!((table.roots(), table.nested()), (1, 1));
    table.expire(now + 20 * SECOND);
    assert_eq!(settled(&mut table).len(), 1);
    assert_eq!((table.roots(), table.nested()), (0, 0), "an orphan is gone with its own deadline");
    table.ack(nested);
    assert_eq!(settled(&mut table), []);
}

#[test]
fn the_cause_goes_up_through_every_level() {
    let mut table = table(AckSettings::default());
    let (now, edge) = (Instant::now(), required(2));
    let mut levels = open(&mut table, 1, &edge, now);
    for _ in 0..1000 {
        let branch = levels.pop().unwrap();
        levels.extend(table.split(branch, &edge, now).unwrap());
    }
    table.fail(levels.pop().unwrap(), "the disk is full");
    assert_eq!(settled(&mut table), [failed(1, Failure::Reported("the disk is full"))]);
    assert_eq!((table.roots(), table.nested()), (0, 0));
}

#[test]
fn a_full_table_gives_back_what_it_does_not_take_and_does_not_grow() {
    let mut table = table(AckSettings::default().with_capacity(2, 1));
    let (now, edge) = (Instant::now(), required(1));
    let mut branches: Vec<_> = [1, 2].into_iter().flat_map(|root| open(&mut table, root, &edge, now)).collect();
    assert_eq!(table.open(3, &edge, now).unwrap_err(), Full(3));
    let nested = table.split(branches.pop().unwrap(), &edge, now).unwrap().next().unwrap();
    let bytes = table.bytes();
    let Full(given_back) = table.split(branches.pop().unwrap(), &edge, now).unwrap_err();
    let Full(given_back) = table.merge(vec![given_back], &edge, now).unwrap_err();
    table.ack(nested);
    let nested = table.split({ given_back }.pop().unwrap(), &edge, now).unwrap().next().unwrap();
    table.ack(nested);
    assert_eq!(settled(&mut table).iter().map(|one| one.root).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(table.stats().full, 3);
    for root in 0..1000 {
        let branches = open(&mut table, root, &edge, now);
        for branch in branches {
            table.ack(branch);
        }
    }
    assert_eq!(table.bytes(), bytes, "what is resolved costs no memory");
}

#[test]
fn a_branch_dropped_on_any_thread_fails_its_root() {
    let mut table = table(AckSettings::default());
    let now = Instant::now();
    let branches = open(&mut table, 1, &required(1), now);
    thread::spawn(move || drop(branches)).join().unwrap();
    drop(table.open(2, &required(3), now).unwrap());
    let optional = FanOut::new([Role::Required, Role::Ignored]).unwrap();
    let mut kept = open(&mut table, 3, &optional, now);
    drop(kept.pop());
    assert_eq!(settled(&mut table), [failed(1, Failure::Dropped), failed(2, Failure::Dropped)]);
    assert_eq!((table.stats().dropped, table.stats().late), (2, 2), "of the three the first decided");
    table.ack(kept.pop().unwrap());
    assert_eq!(settled(&mut table), [Settlement { root: 3, outcome: Ok(()) }]);
}

#[test]
fn a_merge_answers_its_own_inputs_and_no_others() {
    let mut table = table(AckSettings::default());
    let (now, edge) = (Instant::now(), required(1));
    let mut of = |roots: [u64; 2]| -> Vec<Branch> {
        roots.into_iter().flat_map(|root| open(&mut table, root, &edge, now)).collect()
    };
    let (one, two) = (of([1, 9]), of([2, 8]));
    let one = table.merge(one, &edge, now).unwrap().next().unwrap();
    let two = table.merge(two, &required(2), now).unwrap().collect::<Vec<_>>();
    table.ack(one);
    let mut done: Vec<_> = settled(&mut table).into_iter().map(|one| (one.root, one.outcome)).collect();
    done.sort_by_key(|one| one.0);
    assert_eq!(done, [(1, Ok(())), (9, Ok(()))], "interleaved offsets of another batch stay open");
    let mut two = two.into_iter();
    table.ack(two.next().unwrap());
    table.fail(two.next().unwrap(), "refused");
    let mut failures = settled(&mut table);
    failures.sort_by_key(|one| one.root);
    assert_eq!(failures, [2, 8].map(|root| failed(root, Failure::Reported("refused"))));
}

#[test]
fn merges_of_merges_and_an_expired_merge_settle_every_root_once() {
    let mut table = table(AckSettings::default().with_timeout(SECOND, OnTimeout::Fail));
    let (now, edge) = (Instant::now(), required(1));
    let mut merged = Vec::new();
    for group in 0..3 {
        let inputs = (0..4).flat_map(|n| open(&mut table, 4 * group + n, &edge, now)).collect();
        merged.extend(table.merge(inputs, &edge, now).unwrap());
    }
    let last = table.merge(merged, &edge, now).unwrap().next().unwrap();
    table.ack(last);
    let mut roots: Vec<_> = settled(&mut table).into_iter().map(|one| one.root).collect();
    roots.sort_unstable();
    assert_eq!(roots, (0..12).collect::<Vec<_>>());

    let inputs = (0..2).flat_map(|root| open(&mut table, root, &edge, now)).collect();
    let silent = table.merge(inputs, &edge, now + SECOND / 2).unwrap();
    table.expire(now + SECOND);
    assert_eq!(settled(&mut table), [failed(0, Failure::TimedOut), failed(1, Failure::TimedOut)]);
    table.expire(now + 2 * SECOND);
    assert_eq!((settled(&mut table), table.nested()), (vec![], 0));
    drop(silent);
}

#[test]
fn dead_ends_are_done_or_failed_as_their_edge_says() {
    let mut table = table(AckSettings::default());
    let now = Instant::now();
    let dropped_on_purpose = FanOut::new([]).unwrap();
    let errors = FanOut::new([Role::Ignored]).unwrap().with_dead_end(DeadEnd::Fail);
    assert_eq!(table.open(1, &dropped_on_purpose, now).unwrap().len(), 0);
    assert_eq!(table.open(2, &errors, now).unwrap().len(), 1, "the record goes on all the same");
    let branch = open(&mut table, 3, &required(1), now).pop().unwrap();
    drop(table.split(branch, &errors, now).unwrap());
    let batch = open(&mut table, 4, &required(1), now);
    drop(table.merge(batch, &dropped_on_purpose, now).unwrap());
    let done = |root| Settlement { root, outcome: Ok(()) };
    let expected = [done(1), failed(2, Failure::DeadEnd), failed(3, Failure::DeadEnd), done(4)];
    assert_eq!(settled(&mut table), expected);
    assert_eq!((table.roots(), table.nested(), table.stats().late), (0, 0, 0));
}

#[test]
fn a_branch_is_answered_by_its_own_table_only() {
    let (mut one, mut other) = (table(AckSettings::default()), table(AckSettings::default()));
    let (now, edge) = (Instant::now(), required(1));
    let branch = open(&mut one, 1, &edge, now).pop().unwrap();
    let kept = open(&mut other, 2, &edge, now).pop().unwrap();
    other.ack(branch);
    assert_eq!((settled(&mut other), other.stats().late), (vec![], 1));
    assert_eq!(settled(&mut one), [failed(1, Failure::Dropped)], "it was not lost without a word");
    other.ack(kept);
    assert_eq!(settled(&mut other).len(), 1);
}

#[test]
fn a_branch_of_another_table_is_not_split_here_though_its_entry_has_a_number_of_this_one() {
    let (mut one, mut other) = (table(AckSettings::default()), table(AckSettings::default()));
    let (now, edge) = (Instant::now(), required(1));
    let branch = open(&mut one, 1, &edge, now).pop().unwrap();
    let kept = open(&mut other, 2, &edge, now).pop().unwrap();
    for split in other.split(branch, &required(2), now).unwrap() {
        other.fail(split, "no");
    }
    assert_eq!((settled(&mut other), other.nested(), other.stats().late), (vec![], 0, 1));
    assert_eq!(settled(&mut one), [failed(1, Failure::Dropped)], "its own table hears of it");
    other.ack(kept);
    assert_eq!(settled(&mut other), [Settlement { root: 2, outcome: Ok(()) }]);
}

#[test]
fn a_merge_leaves_out_branches_of_another_table_though_their_entries_have_numbers_of_this_one() {
    let (mut one, mut other) = (table(AckSettings::default()), table(AckSettings::default()));
    let (now, edge) = (Instant::now(), required(1));
    let mut inputs = open(&mut one, 1, &edge, now);
    let kept = open(&mut other, 2, &edge, now).pop().unwrap();
    inputs.extend(open(&mut other, 3, &edge, now));
    let merged = other.merge(inputs, &edge, now).unwrap().next().unwrap();
    assert_eq!(settled(&mut one), [failed(1, Failure::Dropped)], "its own table hears of it at once");
    other.fail(merged, "refused");
    assert_eq!(settled(&mut other), [failed(3, Failure::Reported("refused"))], "and not the one of its number here");
    assert_eq!((other.nested(), other.stats().late), (0, 1));
    other.ack(kept);
    assert_eq!(settled(&mut other), [Settlement { root: 2, outcome: Ok(()) }]);
}

#[test]
fn ho_56_closing_waits_for_nobody_and_answers_every_root() {
    let mut table = table(AckSettings::default());
    let now = Instant::now();
    let silent: Vec<_> = (0..3).flat_map(|root| open(&mut table, root, &required(1), now)).collect();
    assert_eq!(table.close(), [0, 1, 2].map(|root| failed(root, Failure::Closed)));
    drop(silent);
}

#[test]
fn impossible_settings_are_refused_at_build() {
    for settings in [
        AckSettings::default().with_capacity(0, 10),
        AckSettings::default().with_capacity(u32::MAX, 1),
        AckSettings::default().with_timeout(Duration::ZERO, OnTimeout::Fail),
    ] {
        assert_eq!(Table::new(settings).unwrap_err().kind(), ErrorKind::Config);
    }
}
