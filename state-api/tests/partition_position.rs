//! Finished ranges against a naive set of offsets.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::{collections::BTreeSet, ops::Range};

use kstate_api::{Offset, PartitionPosition, Position, TopicPartition};
use proptest::prelude::*;

fn at(offset: i64) -> Offset {
    Offset::new(offset).unwrap()
}

/// Offsets up to here are looked at.
const END: i64 = 24;

fn ranges() -> impl Strategy<Value = Vec<Range<i64>>> {
    prop::collection::vec((0..END, 0..6_i64).prop_map(|(start, len)| start..(start + len).min(END)), 0..8)
}

fn position(next: i64, ranges: &[Range<i64>]) -> (PartitionPosition, BTreeSet<i64>) {
    let mut position = PartitionPosition::at(at(next));
    let mut finished: BTreeSet<i64> = (0..next).collect();
    for range in ranges {
        position.finish(at(range.start)..at(range.end));
        finished.extend(range.clone());
    }
    (position, finished)
}

proptest! {
    #[test]
    fn finished_offsets_are_those_of_a_set(next in 0..END, ranges in ranges()) {
        let (position, finished) = position(next, &ranges);
        for offset in 0..END {
            prop_assert_eq!(position.is_finished(at(offset)), finished.contains(&offset), "{} in {}", offset, position);
        }
        // It is in its one form: sorted, and no two ranges touch.
        let lowest = (0..=END).find(|offset| !finished.contains(offset)).unwrap();
        prop_assert_eq!(position.next(), at(lowest));
        let again = PartitionPosition::new(position.next(), position.finished().to_vec()).unwrap();
        prop_assert_eq!(again, position.clone());
        prop_assert!(position.finished().windows(2).all(|two| two[0].end < two[1].start));
    }

    #[test]
    fn a_position_covers_what_a_superset_covers(a in (0..END, ranges()), b in (0..END, ranges())) {
        let ((a, of_a), (b, of_b)) = (position(a.0, &a.1), position(b.0, &b.1));
        prop_assert_eq!(a.covers(&b), of_a.is_superset(&of_b), "{} and {}", a, b);
        let of = |own: &PartitionPosition| {
            [(TopicPartition::new("lines", 0), own.clone())].into_iter().collect::<Position>()
        };
        prop_assert_eq!(of(&a).covers(&of(&b)), a.covers(&b));
    }
}

#[test]
fn a_position_shows_what_is_finished() {
    let position = PartitionPosition::new(at(5), [at(6)..at(8), at(9)..at(10)]).unwrap();
    assert_eq!(position.to_string(), "5, 6..8 finished, 9..10 finished");
    assert_eq!(PartitionPosition::at(at(5)).to_string(), "5");
}
