//! The tracker against a set of offsets that is searched from its start.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails by panicking says so at the right line"
)]

use std::collections::BTreeMap;

use kstate_api::{Offset, PartitionPosition};
use kstate_processing::{
    Admission, Finish, MetadataLimit, OffsetTracker, PositionMetadata as _, Ticket, TrackerLimits,
};
use proptest::prelude::*;

fn at(offset: i64) -> Offset {
    Offset::new(offset).unwrap()
}

/// Every record that was ever delivered, and whether it is finished.
#[derive(Default)]
struct Naive {
    records: BTreeMap<i64, bool>,
    consumer: i64,
}

impl Naive {
    fn next(&self) -> i64 {
        self.records.iter().find(|(_, finished)| !**finished).map_or(self.consumer, |(offset, _)| *offset)
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// A record after a gap of so many missing offsets.
    Deliver { gap: i64 },
    /// The n-th of those in flight.
    Finish { nth: usize },
    /// So many missing offsets, and nothing after them yet.
    Observe { gap: i64 },
    /// A new owner takes over from the position; the old one's tickets are finished late.
    Move { through_metadata: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (0..4_i64).prop_map(|gap| Step::Deliver { gap: gap / 2 }),
        12 => any::<usize>().prop_map(|nth| Step::Finish { nth }),
        2 => (0..3_i64).prop_map(|gap| Step::Observe { gap }),
        1 => any::<bool>().prop_map(|through_metadata| Step::Move { through_metadata }),
    ];
    prop::collection::vec(step, 0..300)
}

struct Run {
    limits: TrackerLimits,
    tracker: OffsetTracker,
    naive: Naive,
    in_flight: Vec<(i64, Ticket)>,
    /// Where the consumer goes on after a move, and what it will deliver again.
    again: Vec<i64>,
    skipped: u64,
    late: u64,
}

impl Run {
    fn new(limits: TrackerLimits) -> Self {
        let mut tracker = OffsetTracker::new(limits);
        tracker.resume(PartitionPosition::at(at(0)));
        let (naive, in_flight, again) = (Naive::default(), Vec::new(), Vec::new());
        Self { limits, tracker, naive, in_flight, again, skipped: 0, late: 0 }
    }

    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            self.step(step);
            self.check();
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Deliver { gap } => self.deliver(gap),
            Step::Finish { nth } if !self.in_flight.is_empty() => {
                let (offset, ticket) = self.in_flight.remove(nth % self.in_flight.len());
                let before = self.tracker.next();
                self.naive.records.insert(offset, true);
                match self.tracker.finish(ticket) {
                    Finish::Advanced(next) => assert_eq!(Some(next), self.tracker.next()),
                    Finish::Held => assert_eq!(self.tracker.next(), before),
                    Finish::Late => panic!("{offset} belongs to this assignment"),
                }
            }
            Step::Observe { gap } if self.again.is_empty() => {
                self.naive.consumer += gap;
                self.tracker.observe(at(self.naive.consumer));
            }
            Step::Move { through_metadata } => self.move_away(through_metadata),
            Step::Finish { .. } | Step::Observe { .. } => {}
        }
    }

    fn deliver(&mut self, gap: i64) {
        let offset = self.again.first().copied().unwrap_or(self.naive.consumer + gap);
        let admission = self.tracker.admit(at(offset)).unwrap();
        match admission {
            Admission::Full => return assert!(self.tracker.in_flight() > 0, "there is always room for one"),
            Admission::Finished => {
                assert!(self.naive.records[&offset], "{offset} was never finished");
                self.skipped += 1;
            }
            Admission::Run(ticket) => {
                let before = self.naive.records.insert(offset, false);
                assert_ne!(before, Some(true), "{offset} runs twice");
                self.in_flight.push((offset, ticket));
            }
        }
        if self.again.is_empty() {
            self.naive.consumer = offset + 1;
        } else {
            self.again.remove(0);
        }
    }

    fn move_away(&mut self, through_metadata: bool) {
        let position = self.tracker.revoke().unwrap();
        assert_eq!((self.tracker.position(), self.tracker.window_bytes()), (None, 0));
        for (_, ticket) in self.in_flight.drain(..) {
            assert_eq!(self.tracker.finish(ticket), Finish::Late);
            self.late += 1;
        }
        let next = position.next().get();
        if through_metadata {
            let metadata = position.to_metadata(self.limits.metadata().unwrap_or_default()).unwrap();
            self.tracker.resume_committed(at(next), &metadata).unwrap();
        } else {
            self.tracker.resume(position);
        }
        self.again = self.naive.records.range(next..).map(|(offset, _)| *offset).collect();
        // The new consumer does not know yet what the old one passed over.
        self.naive.consumer = self.again.last().map_or(next, |last| last + 1);
    }

    fn check(&self) {
        let snapshot = self.tracker.position().unwrap();
        let position = snapshot.position();
        assert_eq!(position.next(), self.tracker.next().unwrap(), "one value");
        // Before the consumer has come again to where it was, the records in between are known from the position only.
        for (offset, finished) in &self.naive.records {
            assert_eq!(position.is_finished(at(*offset)), *finished, "{offset} in {position:?}");
        }
        if self.again.is_empty() {
            assert_eq!(position.next(), at(self.naive.next()));
        }
        let rebuilt = PartitionPosition::new(position.next(), position.finished().to_vec()).unwrap();
        assert_eq!(&rebuilt, position, "the ranges are in their normal form");
        let stats = self.tracker.stats();
        assert_eq!((stats.skipped, stats.late), (self.skipped, self.late));
        assert_eq!(self.tracker.in_flight(), self.in_flight.len());
        assert_eq!(self.tracker.lowest_in_flight(), self.in_flight.iter().map(|(offset, _)| at(*offset)).min());
        if let Some(limit) = self.limits.metadata() {
            assert!(position.to_metadata(limit).is_ok(), "the brake came too late: {position:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn it_agrees_with_a_search_from_the_start(window in 1..40_usize, steps in steps()) {
        let mut run = Run::new(TrackerLimits::default().with_window(window));
        run.steps(&steps);
    }

    #[test]
    fn the_brake_keeps_the_metadata_below_its_limit(limit in 30..80_usize, steps in steps()) {
        let mut run = Run::new(TrackerLimits::default().with_metadata(MetadataLimit::new(limit)));
        run.steps(&steps);
    }

    #[test]
    fn a_restart_from_any_position_runs_exactly_what_was_not_done(
        gaps in prop::collection::vec(0..3_i64, 1..60),
        order in prop::collection::vec(any::<usize>(), 0..60),
    ) {
        let mut offset = 0;
        let offsets: Vec<_> = gaps.iter().map(|gap| { offset += gap + 1; offset }).collect();
        let mut run = Run::new(TrackerLimits::default());
        let mut first = OffsetTracker::new(TrackerLimits::default());
        first.resume(PartitionPosition::at(at(0)));
        for offset in &offsets {
            let Admission::Run(ticket) = first.admit(at(*offset)).unwrap() else { panic!("new") };
            run.in_flight.push((*offset, ticket));
        }
        let mut done = Vec::new();
        for nth in order.iter().take(offsets.len()) {
            let (offset, ticket) = run.in_flight.remove(nth % run.in_flight.len());
            first.finish(ticket);
            done.push(offset);
            let mut second = OffsetTracker::new(TrackerLimits::default());
            let position = first.position().unwrap().position().clone();
            let next = position.next();
            second.resume(position);
            let fetched = offsets.iter().filter(|offset| at(**offset) >= next);
            let ran = fetched.filter(|offset| matches!(second.admit(at(**offset)).unwrap(), Admission::Run(_)));
            let left = offsets.iter().filter(|offset| !done.contains(*offset));
            prop_assert_eq!(ran.collect::<Vec<_>>(), left.collect::<Vec<_>>());
        }
    }
}
