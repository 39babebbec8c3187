//! Positions with finished ranges in the group's offsets (clause A5), on the embedded cluster.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::slice;

use kstate_api::{ErrorKind, Offset, PartitionPosition, Position, TopicPartition};
use kstate_checkpoint::SourceCommitter as _;
use kstate_kafka::{EmbeddedCluster, GroupOffsets, SourceConsumer};

fn at(offset: i64) -> Offset {
    Offset::new(offset).unwrap()
}

fn of(partition: &TopicPartition, position: PartitionPosition) -> Position {
    [(partition.clone(), position)].into_iter().collect()
}

#[test]
fn a5_finished_ranges_are_in_the_groups_offset_and_come_back() {
    let embedded = EmbeddedCluster::start().unwrap();
    embedded.create_topic("lines", 1).unwrap();
    let (cluster, lines) = (embedded.cluster(), TopicPartition::new("lines", 0));
    let assign = || SourceConsumer::assign(&cluster, "group", slice::from_ref(&lines)).unwrap();
    let group = GroupOffsets::new(&cluster, "group").unwrap();
    let committed = || group.committed(slice::from_ref(&lines)).unwrap();

    let position = PartitionPosition::new(at(3), [at(5)..at(9)]).unwrap();
    assign().with_ranges().commit(&of(&lines, position.clone())).unwrap();
    assert_eq!(assign().committed().get(&lines), Some(&position));
    assert_eq!((committed().position, committed().bare.len()), (of(&lines, position), 0));

    // That nothing is finished above is said as well: so it is known who has committed it.
    assign().with_ranges().commit(&of(&lines, at(9).into())).unwrap();
    assert!(committed().bare.is_empty() && assign().bare_offsets().is_empty());
    assert_eq!(assign().committed().get(&lines), Some(&PartitionPosition::at(at(9))));
    // Of one consumer, too: what was bare when it was assigned is its own word afterwards.
    let mut plain = assign();
    plain.commit(&of(&lines, at(10).into())).unwrap();
    assert!(plain.bare_offsets().contains(&lines) && assign().bare_offsets().contains(&lines));
    let mut again = assign().with_ranges();
    again.commit(&of(&lines, at(11).into())).unwrap();
    assert!(again.bare_offsets().is_empty() && assign().bare_offsets().is_empty());
}

#[test]
fn a5_ranges_that_are_too_many_for_the_broker_are_refused_before_anything_is_committed() {
    let embedded = EmbeddedCluster::start().unwrap();
    embedded.create_topic("lines", 1).unwrap();
    let (cluster, lines) = (embedded.cluster(), TopicPartition::new("lines", 0));
    let mut source = SourceConsumer::assign(&cluster, "group", slice::from_ref(&lines)).unwrap().with_ranges();
    let mut position = PartitionPosition::at(at(0));
    // Far apart, so that no bitmap is small either.
    (1..3000).for_each(|n| position.finish(at(n * 1000)..at(n * 1000 + 1)));
    let error = source.commit(&of(&lines, position)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains("4096"), "{error}");
    assert!(GroupOffsets::new(&cluster, "group").unwrap().committed(&[lines]).unwrap().position.is_empty());
}

#[test]
fn a5_a_consumer_without_ranges_does_not_drop_them_silently() {
    let embedded = EmbeddedCluster::start().unwrap();
    embedded.create_topic("lines", 1).unwrap();
    let (cluster, lines) = (embedded.cluster(), TopicPartition::new("lines", 0));
    let mut source = SourceConsumer::assign(&cluster, "group", slice::from_ref(&lines)).unwrap();
    let position = PartitionPosition::new(at(3), [at(5)..at(9)]).unwrap();
    assert_eq!(source.commit(&of(&lines, position)).unwrap_err().kind(), ErrorKind::InvalidArgument);
}
