//! Single cases of the tracker, some of them named after the failures of others.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that fails by panicking says so at the right line")]

use kstate_api::{ErrorKind, Offset, PartitionPosition};
use kstate_processing::{
    Admission, Finish, MetadataLimit, OffsetTracker, PositionMetadata as _, RangesIgnored, Ticket, TrackerLimits,
};

fn at(offset: i64) -> Offset {
    Offset::new(offset).unwrap()
}

fn assigned(next: i64) -> OffsetTracker {
    let mut tracker = OffsetTracker::new(TrackerLimits::default());
    tracker.resume(PartitionPosition::at(at(next)));
    tracker
}

fn run(tracker: &mut OffsetTracker, offset: i64) -> Ticket {
    match tracker.admit(at(offset)).unwrap() {
        Admission::Run(ticket) => ticket,
        other => panic!("{offset}: {other:?}"),
    }
}

#[test]
fn ho_53_what_was_seen_but_not_done_is_not_committed() {
    let mut tracker = assigned(329_888);
    let ticket = run(&mut tracker, 329_888);
    assert_eq!(tracker.next(), Some(at(329_888)), "still to do");
    assert_eq!(tracker.revoke(), Some(PartitionPosition::at(at(329_888))));
    assert_eq!(tracker.position(), None, "a timer finds nothing to commit");
    assert_eq!(tracker.finish(ticket), Finish::Late);

    let mut new_owner = assigned(329_888);
    assert!(matches!(new_owner.admit(at(329_888)), Ok(Admission::Run(_))));
}

#[test]
fn ho_54_a_record_finished_later_than_its_successors_holds_them_back() {
    for (offsets, end) in [([5, 6, 7], 8), ([5, 7, 9], 10)] {
        let mut tracker = assigned(5);
        let [first, second, third] = offsets.map(|offset| run(&mut tracker, offset));
        tracker.finish(third);
        tracker.finish(second);
        assert_eq!(tracker.next(), Some(at(5)));
        assert_eq!(tracker.finish(first), Finish::Advanced(at(end)));
    }
}

#[test]
fn ho_57_records_that_nobody_wants_move_the_position() {
    let mut tracker = assigned(0);
    for offset in 0..10 {
        let undecodable = run(&mut tracker, offset);
        tracker.finish(undecodable);
    }
    assert_eq!(tracker.next(), Some(at(10)));
}

#[test]
fn a_failed_record_is_not_passed_by_later_successes() {
    let mut tracker = assigned(0);
    let mut tickets: Vec<_> = (0..10).map(|offset| run(&mut tracker, offset)).collect();
    let failed = tickets.remove(2);
    for ticket in tickets {
        assert_eq!(tracker.finish(ticket) == Finish::Held, tracker.held() > 0);
    }
    drop(failed);
    assert_eq!(tracker.next(), Some(at(2)));
    assert_eq!(tracker.held(), 7);
}

#[test]
fn what_finishes_while_a_commit_goes_on_is_still_to_be_committed() {
    let mut tracker = assigned(0);
    let (first, second) = (run(&mut tracker, 0), run(&mut tracker, 1));
    tracker.finish(first);
    let snapshot = tracker.position().unwrap();
    tracker.finish(second);
    tracker.committed(&snapshot);
    assert!(tracker.is_dirty());
    tracker.committed(&tracker.position().unwrap());
    assert!(!tracker.is_dirty());
    tracker.resume(PartitionPosition::at(at(0)));
    let other = run(&mut tracker, 0);
    tracker.finish(other);
    tracker.committed(&snapshot);
    assert!(tracker.is_dirty(), "that was another assignment");
}

#[test]
fn an_idle_partition_follows_the_consumer_over_markers_and_an_active_one_does_not() {
    let mut tracker = assigned(0);
    let ticket = run(&mut tracker, 0);
    tracker.observe(at(7));
    assert_eq!(tracker.next(), Some(at(0)));
    assert_eq!(tracker.finish(ticket), Finish::Advanced(at(7)));
    tracker.observe(at(3));
    assert_eq!(tracker.next(), Some(at(7)), "it never goes back");
}

#[test]
fn a_consumer_that_went_back_is_an_error_and_changes_nothing() {
    let mut tracker = assigned(5);
    for (offset, admitted) in [(4, false), (5, true), (5, false), (3, false), (6, true)] {
        let admission = tracker.admit(at(offset));
        assert_eq!(admission.is_ok(), admitted, "{offset}: {admission:?}");
        assert!(admission.map_or_else(|error| error.kind() == ErrorKind::InvalidArgument, |_| true));
    }
    assert_eq!(tracker.in_flight(), 2);
    tracker.revoke();
    assert_eq!(tracker.admit(at(7)).unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_ticket_of_another_partition_is_never_taken_for_one_of_this() {
    let (mut one, mut other) = (assigned(0), assigned(0));
    let (ticket, kept) = (run(&mut one, 0), run(&mut other, 0));
    assert_eq!(other.finish(ticket), Finish::Late);
    assert_eq!(other.finish(kept), Finish::Advanced(at(1)));
}

#[test]
fn a_full_window_takes_the_same_record_later() {
    let mut tracker = OffsetTracker::new(TrackerLimits::default().with_window(2));
    tracker.resume(PartitionPosition::at(at(0)));
    let (first, second) = (run(&mut tracker, 1000), run(&mut tracker, 2000));
    assert_eq!(tracker.admit(at(3000)).unwrap(), Admission::Full);
    tracker.finish(second);
    assert_eq!(tracker.admit(at(3000)).unwrap(), Admission::Full, "the window counts what is held");
    tracker.finish(first);
    assert!(matches!(tracker.admit(at(3000)), Ok(Admission::Run(_))));
}

#[test]
fn a_stuck_record_in_a_dense_partition_is_stopped_by_the_window_not_by_the_metadata() {
    let limit = MetadataLimit::default();
    let mut tracker = OffsetTracker::new(TrackerLimits::default().with_metadata(limit));
    tracker.resume(PartitionPosition::at(at(0)));
    let mut tickets: Vec<_> = (0..16_384).map(|offset| run(&mut tracker, offset)).collect();
    assert_eq!(tracker.admit(at(16_384)).unwrap(), Admission::Full);
    // Every second one: as bad as it gets.
    while let Some(ticket) = tickets.pop() {
        tracker.finish(ticket);
        tickets.pop();
    }
    let metadata = tracker.position().unwrap().position().to_metadata(limit).unwrap();
    assert!(metadata.len() <= limit.brake(), "{}", metadata.len());
}

#[test]
fn metadata_of_a_restart_is_used_or_counted() {
    let mut tracker = OffsetTracker::new(TrackerLimits::default());
    let position = PartitionPosition::new(at(5), [at(6)..at(9)]).unwrap();
    let metadata = position.to_metadata(MetadataLimit::default()).unwrap();
    tracker.resume_committed(at(5), &metadata).unwrap();
    assert_eq!(tracker.position().unwrap().position(), &position);
    let ignored = tracker.resume_committed(at(6), &metadata).unwrap_err();
    assert_eq!(ignored, RangesIgnored::OtherBase { base: at(5), committed: at(6) });
    assert_eq!(tracker.position().unwrap().position(), &PartitionPosition::at(at(6)), "`next` alone, nothing skipped");
    assert_eq!(tracker.stats().ranges_ignored, 1);
}

#[test]
fn a_record_in_flight_takes_sixteen_bytes_at_most() {
    assert!(size_of::<Ticket>() <= 16);
    let mut tracker = OffsetTracker::new(TrackerLimits::default().with_window(100_000));
    tracker.resume(PartitionPosition::at(at(0)));
    for offset in 0..100_000 {
        drop(run(&mut tracker, offset));
        let in_flight = usize::try_from(offset + 1).unwrap();
        assert!(tracker.window_bytes() <= (16 * in_flight).max(64), "{} for {in_flight}", tracker.window_bytes());
    }
}
