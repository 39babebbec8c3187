//! What a toy holds, and what a step makes of it.

use std::collections::BTreeMap;

use bytes::Bytes;
use kstate_api::{Offset, Position, TopicPartition};

use super::{bug::Bug, log::Entry};

/// The rows, offsets and position after one commit.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub(crate) rows: BTreeMap<Bytes, Bytes>,
    pub(crate) offsets: BTreeMap<TopicPartition, Offset>,
    pub(crate) position: Position,
    /// For the bug of offsets that only grow.
    pub(crate) greatest: BTreeMap<TopicPartition, Offset>,
}

/// Applies an entry of the log at an open.
pub(crate) fn replay(state: &mut State, entry: &Entry, bug: Bug) {
    apply(state, entry, bug);
    match bug {
        Bug::OffsetsAreNotStored => state.offsets.clear(),
        Bug::PositionIsNotStored => state.position = Position::new(),
        _ => {}
    }
}

pub(crate) fn apply(state: &mut State, entry: &Entry, bug: Bug) {
    let batch = match entry {
        Entry::Batch(batch) => batch,
        Entry::Wipe => {
            let old = std::mem::take(state);
            state.greatest = old.greatest;
            match bug {
                Bug::WipeMissesTheGreatestKeys => {
                    state.rows = old.rows.into_iter().filter(|(key, _)| key.starts_with(b"\xFF\xFF\xFF")).collect();
                }
                Bug::WipeKeepsOffsets => state.offsets = old.offsets,
                Bug::WipeKeepsThePosition => state.position = old.position,
                _ => {}
            }
            return;
        }
    };
    if bug == Bug::CommitWithoutRecordsIsSkipped && batch.records().next().is_none() && !batch.forgets_offsets() {
        return;
    }
    let forget = |state: &mut State| {
        state.offsets.clear();
        if bug != Bug::ForgettingKeepsThePosition {
            state.position = Position::new();
        }
        if bug == Bug::ForgettingDropsTheRows {
            state.rows.clear();
        }
    };
    let forgets = batch.forgets_offsets()
        || (bug == Bug::EmptyCommitForgetsOffsets && batch.offsets().is_empty())
        || (bug == Bug::CommitReplacesOffsets && !batch.offsets().is_empty());
    if forgets {
        forget(state);
    }
    for (key, value) in batch.records() {
        match value {
            _ if bug == Bug::EmptyKeyIsIgnored && key.is_empty() => {}
            Some(value) if bug == Bug::EmptyValueDeletesInTheEngine && value.is_empty() => drop(state.rows.remove(key)),
            Some(value) if bug == Bug::ZeroByteIsATombstone && *value == [0][..] => drop(state.rows.remove(key)),
            Some(value) if bug == Bug::LengthHas24Bits => {
                state.rows.insert(Bytes::copy_from_slice(key), value.slice(..value.len() & 0xFF_FFFF));
            }
            Some(value) => {
                if bug == Bug::LongKeysAreComparedShort && key.len() > 1 << 16 {
                    state.rows.retain(|other, _| other.len() != key.len() || other[..1 << 16] != key[..1 << 16]);
                }
                let len = if bug == Bug::LargeValueIsCut { value.len().min(1 << 16) } else { value.len() };
                state.rows.insert(Bytes::copy_from_slice(key), value.slice(..len));
            }
            None if bug == Bug::DeletesAreDropped => {}
            None => drop(state.rows.remove(key)),
        }
    }
    for (partition, offset) in batch.offsets().iter() {
        let greatest = state.greatest.entry(partition.clone()).or_insert(offset);
        *greatest = offset.max(*greatest);
        let offset = match bug {
            Bug::OffsetIsTheNext => offset.next(),
            Bug::OffsetIsTheGreatest => *greatest,
            Bug::OffsetIsCutTo32Bits => Offset::new(offset.get() & 0xFFFF_FFFF).unwrap(),
            _ => offset,
        };
        state.offsets.insert(stored_as(partition, bug), offset);
    }
    if bug == Bug::PositionIsReplaced && !batch.position().is_empty() {
        state.position = Position::new();
    }
    if bug == Bug::PositionIsCutTo32Bits {
        for (partition, next) in batch.position().iter() {
            state.position.set(partition.clone(), Offset::new(next.next().get() & 0xFFFF_FFFF).unwrap());
        }
    } else if bug == Bug::FinishedRangesAddUp {
        for (partition, position) in batch.position().iter() {
            let mut position = position.clone();
            let earlier = state.position.get(partition).map_or(&[][..], |earlier| earlier.finished());
            for range in earlier {
                position.finish(range.clone());
            }
            state.position.set(partition.clone(), position);
        }
    } else {
        state.position.merge(batch.position());
    }
    if bug == Bug::OffsetsAreCutAt100 {
        while state.offsets.len() > 100 {
            state.offsets.pop_last();
        }
    }
    if bug == Bug::ForgettingTakesTheBatchsOwn && batch.forgets_offsets() {
        forget(state);
    }
}

pub(crate) fn stored_as(partition: &TopicPartition, bug: Bug) -> TopicPartition {
    let (topic, number) = (partition.topic(), partition.partition());
    match bug {
        Bug::OffsetKeysRunTogether => TopicPartition::new(format!("{topic}{number}").replace('-', ""), 0),
        Bug::TopicsIgnoreCase => TopicPartition::new(topic.to_lowercase(), number),
        Bug::PartitionsAreCutTo16Bits => TopicPartition::new(topic, number & 0xFFFF),
        _ => partition.clone(),
    }
}
