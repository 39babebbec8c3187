//! Steps of the toy backend that are taken in two, each of which is stored and shown.

use kstate_api::WriteBatch;

use super::{backend::split, bug::Bug, log::Entry, state::State};

/// A batch is large from so many records on.
const MANY: usize = 1000;
/// A batch is large from so many bytes on.
const MIB: usize = 1 << 20;

/// What `entry` is taken as: itself alone, but for the bugs that tear it.
pub(crate) fn parts(bug: Bug, state: &State, entry: &Entry, restoring: bool) -> Option<[Entry; 2]> {
    let (first, second) = match (bug, entry) {
        (Bug::SecondOffsetLater, Entry::Batch(batch)) if batch.offsets().len() > 1 => {
            let (offsets, mut first) = split(batch);
            let mut second = WriteBatch::new();
            take_rest(&offsets, &mut first);
            for (n, (partition, offset)) in batch.offsets().iter().enumerate() {
                if n == 0 { &mut first } else { &mut second }.set_offset(partition.clone(), offset);
            }
            (first, second)
        }
        (Bug::SecondPositionLater, Entry::Batch(batch)) if batch.position().iter().len() > 1 => {
            let (_, mut first) = split(batch);
            let mut second = WriteBatch::new();
            if batch.forgets_offsets() {
                first.forget_offsets();
            }
            first.set_offsets(batch.offsets());
            for (n, (partition, position)) in batch.position().iter().enumerate() {
                if n == 0 { &mut first } else { &mut second }.set_position(partition.clone(), position.clone());
            }
            (first, second)
        }
        (Bug::CommitOfAMebibyteIsTakenInTwo, Entry::Batch(batch)) if !restoring && batch.byte_size() > MIB => {
            halves(batch)
        }
        (Bug::LargeRestoreIsTakenInTwo, Entry::Batch(batch)) if restoring && batch.len() > MANY => halves(batch),
        (Bug::ForgettingIsAStepOfItsOwn, Entry::Batch(batch))
            if batch.forgets_offsets() && batch.records().next().is_some() =>
        {
            let (offsets, mut second) = split(batch);
            second.set_offsets(offsets.offsets());
            for (partition, position) in offsets.position().iter() {
                second.set_position(partition.clone(), position.clone());
            }
            let mut first = WriteBatch::new();
            first.forget_offsets();
            (first, second)
        }
        (Bug::ForgettingTakesThePositionLater, Entry::Batch(batch)) if batch.forgets_offsets() => {
            let mut first = WriteBatch::new();
            first.forget_offsets();
            for (partition, position) in state.position.iter() {
                first.set_position(partition.clone(), position.clone());
            }
            return Some([Entry::Batch(first), Entry::Batch(batch.clone())]);
        }
        (Bug::WipeIsTakenInTwo, Entry::Wipe) => return Some([Entry::Batch(deletes(state, usize::MAX)), Entry::Wipe]),
        (Bug::LargeWipeIsTakenInTwo, Entry::Wipe) if state.rows.len() > MANY => {
            return Some([Entry::Batch(deletes(state, state.rows.len() / 2)), Entry::Wipe]);
        }
        (Bug::WipeRemovesTenThousandRows, Entry::Wipe) if state.rows.len() > 10_000 => {
            let mut left = WriteBatch::new();
            state.rows.iter().skip(10_000).for_each(|(key, value)| left.put(key, value.clone()));
            return Some([Entry::Wipe, Entry::Batch(left)]);
        }
        _ => return None,
    };
    Some([Entry::Batch(first), Entry::Batch(second)])
}

/// The first half of the records, and the rest of `batch`.
fn halves(batch: &WriteBatch) -> (WriteBatch, WriteBatch) {
    let (mut second, _) = split(batch);
    let mut first = WriteBatch::new();
    for (n, (key, value)) in batch.records().enumerate() {
        let half = if n < batch.len() / 2 { &mut first } else { &mut second };
        match value {
            Some(value) => half.put(key, value.clone()),
            None => half.delete(key),
        }
    }
    (first, second)
}

/// Gives `to` what `offsets` has beside offsets.
fn take_rest(offsets: &WriteBatch, to: &mut WriteBatch) {
    if offsets.forgets_offsets() {
        to.forget_offsets();
    }
    for (partition, position) in offsets.position().iter() {
        to.set_position(partition.clone(), position.clone());
    }
}

/// Deletes of the first `most` rows.
fn deletes(state: &State, most: usize) -> WriteBatch {
    let mut rows = WriteBatch::new();
    state.rows.keys().take(most).for_each(|key| rows.delete(key));
    rows
}
