//! Lanes alone: which job is next.
#![allow(clippy::unwrap_used, reason = "a test that fails by panicking says so at the right line")]

use std::{
    iter,
    time::{Duration, Instant},
};

use kstate_processing::Lanes;

fn ready(lanes: &mut Lanes<&'static str, u32>) -> Vec<u32> {
    iter::from_fn(|| lanes.next_ready()).collect()
}

#[test]
fn parked_jobs_go_on_in_the_order_in_which_they_are_due_and_of_equal_times_in_that_of_parking() {
    let mut lanes = Lanes::<&str, _>::new();
    let (now, second) = (Instant::now(), Duration::from_secs(1));
    for (job, wait) in [(1, 3), (2, 1), (3, 2), (4, 1)] {
        lanes.park(job, now + wait * second);
    }
    assert_eq!((lanes.next_due(), lanes.parked()), (Some(now + second), 4));
    lanes.wake(now + 2 * second);
    assert_eq!(ready(&mut lanes), [2, 4, 3]);
    assert_eq!(lanes.next_due(), Some(now + 3 * second));
}

#[test]
fn lanes_take_turns_so_that_a_hot_one_starves_no_other() {
    let mut lanes = Lanes::new();
    for job in [("hot", 1), ("hot", 2), ("hot", 3), ("cold", 10), ("warm", 20), ("warm", 21)] {
        lanes.push(Some(job.0), job.1);
    }
    assert_eq!(ready(&mut lanes), [1, 10, 20]);
    lanes.release(&"warm");
    lanes.release(&"hot");
    lanes.release(&"cold");
    assert_eq!(ready(&mut lanes), [21, 2]);
    lanes.release(&"hot");
    assert_eq!(ready(&mut lanes), [3]);
    assert!(!lanes.is_idle());
    lanes.release(&"hot");
    lanes.release(&"warm");
    assert!(lanes.is_idle(), "an empty lane leaves nothing behind");
}

#[test]
fn what_is_removed_is_all_that_waits_and_no_more() {
    let mut lanes = Lanes::new();
    for job in [("gone", 1), ("gone", 2), ("kept", 11), ("kept", 12), ("gone parked", 3), ("gone parked", 4)] {
        lanes.push(Some(job.0), job.1);
    }
    assert_eq!(ready(&mut lanes), [1, 11, 3]);
    lanes.park(3, Instant::now());
    let mut removed = lanes.remove(|lane| lane.starts_with("gone"), |job| *job < 10);
    removed.sort_unstable();
    assert_eq!(removed, [2, 3, 4]);
    lanes.release(&"gone");
    lanes.release(&"kept");
    assert_eq!(ready(&mut lanes), [12], "the one that runs is released into nothing");
}
