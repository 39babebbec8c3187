//! A workload in which the state of a store is a function of its offset: whatever a crash leaves can be judged, with
//! no record of what was written.

use std::collections::BTreeMap;

use bytes::Bytes;
use kstate_api::{ChangelogOffsets, KeyValueStore, Offset, Position, Snapshot, StateStore, TopicPartition, WriteBatch};

use crate::{
    CaseResult, Clause, Violation,
    check::{Rows, dump, ensure_eq},
    ctx::{at, changelog, offset, other_changelog, other_source, source},
};

/// How many keys the workload writes. Few, so that overwrites and deletes meet rows.
const KEYS: u64 = 48;
/// How many operations there are for each offset.
const OPERATIONS: u64 = 7;

/// A key, and its new value or `None` for a delete.
pub(crate) type Operation = (Bytes, Option<Bytes>);

/// The number after `seed` in a sequence that looks random (splitmix64).
pub(crate) fn scramble(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// What the records up to and including `last` do that those before it do not.
pub(crate) fn operations_at(last: i64) -> Vec<Operation> {
    let number = last.unsigned_abs();
    let mut operations: Vec<Operation> = (0..OPERATIONS)
        .map(|n| {
            // Key, kind and length are drawn apart, so that deletes and empty values meet every key.
            let draw = scramble(number * OPERATIONS + n);
            let (key, kind, len) = (scramble(draw) % KEYS, scramble(draw ^ 1) % 8, scramble(draw ^ 2) % 90);
            let len_of_key = usize::try_from(key % 8).unwrap_or_default() + 1;
            let key: Bytes = scramble(key).to_be_bytes().into_iter().take(len_of_key).collect();
            let value = match kind {
                0..=1 => None,
                2 => Some(Bytes::new()),
                _ => Some(Bytes::from(format!("{last}:{}", "v".repeat(usize::try_from(len).unwrap_or(0))))),
            };
            (key, value)
        })
        .collect();
    // Two states are never equal.
    operations.push((Bytes::from_static(b"last"), Some(Bytes::from(last.to_string()))));
    operations
}

/// The offsets that are committed with `last`: those of both changelog partitions, of which the first has `last`.
pub(crate) fn offsets_at(last: i64) -> ChangelogOffsets {
    at(last).with(other_changelog(), offset(2 * last + 1000))
}

/// The position that is committed with `last`: that of both source partitions.
pub(crate) fn position_at(last: i64) -> Position {
    let mut position = Position::new();
    position.set(source(), offset(3 * last + 1));
    position.set(other_source(), offset(5 * last + 2));
    position
}

/// Stages `position`.
pub(crate) fn stage(store: &dyn KeyValueStore, position: &Position) -> Result<(), kstate_api::Error> {
    position.iter().try_for_each(|(partition, position)| store.stage_position(partition, position.clone()))
}

/// The state of the workload at an offset, or before the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    rows: BTreeMap<Bytes, Bytes>,
    last: Option<i64>,
}

impl State {
    /// The state before the first offset.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The state at `last`.
    pub(crate) fn at(last: Option<i64>) -> Self {
        let mut state = Self::new();
        while state.last < last {
            state.advance();
        }
        state
    }

    pub(crate) const fn last(&self) -> Option<i64> {
        self.last
    }

    /// Goes to the next offset, and returns it with its operations.
    pub(crate) fn advance(&mut self) -> (i64, Vec<Operation>) {
        let last = self.last.map_or(0, |last| last + 1);
        let operations = operations_at(last);
        for (key, value) in operations.iter().cloned() {
            match value {
                Some(value) => self.rows.insert(key, value),
                None => self.rows.remove(&key),
            };
        }
        self.last = Some(last);
        (last, operations)
    }

    pub(crate) fn rows(&self) -> Rows {
        self.rows.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Goes to the next offset, and `store` with it.
    pub(crate) fn commit_next(&mut self, store: &dyn KeyValueStore) -> Result<(), kstate_api::Error> {
        let (last, operations) = self.advance();
        for (key, value) in operations {
            match value {
                Some(value) => store.put(&key, &value)?,
                None => store.delete(&key)?,
            }
        }
        stage(store, &position_at(last))?;
        store.commit(&offsets_at(last))
    }

    /// Goes to the next offset, and `store` with it by a restored batch. Some batches forget the offsets first, all of
    /// which they bring anew.
    pub(crate) fn restore_next(&mut self, store: &dyn StateStore) -> Result<(), kstate_api::Error> {
        let (last, operations) = self.advance();
        let mut batch = WriteBatch::new();
        for (key, value) in operations {
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        if scramble(last.unsigned_abs()).is_multiple_of(2) {
            batch.forget_offsets();
        }
        batch.set_offsets(&offsets_at(last));
        for (partition, position) in position_at(last).iter() {
            batch.set_position(partition.clone(), position.clone());
        }
        store.restore(&batch)
    }

    /// The state that `store` has by its own offset, if its records, its other offset and its position are those of
    /// that offset.
    #[track_caller]
    pub(crate) fn of(store: &dyn KeyValueStore) -> Result<Self, Violation> {
        let state = Self::at(store.committed_offset(&changelog())?.map(Offset::get));
        state.ensure_rows(&dump(store)?)?;
        state.ensure_offsets(|partition| store.committed_offset(partition), &store.position()?)?;
        Ok(state)
    }

    /// Fails unless `store` has exactly this state, by a store that manages offsets by its offset too.
    #[track_caller]
    pub(crate) fn ensure_is(&self, store: &dyn KeyValueStore) -> CaseResult {
        self.ensure_rows(&dump(store)?)?;
        if store.manages_offsets() {
            self.ensure_offsets(|partition| store.committed_offset(partition), &store.position()?)?;
        }
        Ok(())
    }

    #[track_caller]
    pub(crate) fn ensure_rows(&self, seen: &Rows) -> CaseResult {
        let expected = self.rows();
        if *seen == expected {
            return Ok(());
        }
        let differing = first_difference(seen, &expected);
        let marker = seen.iter().find(|(key, _)| key == "last").map(|(_, value)| value);
        Err(Violation::new(format!(
            "the rows are not those of offset {:?}: {differing}; by the row `last` they are of offset {marker:?}",
            self.last
        ))
        .of(Clause::O2))
    }

    /// Fails unless `snapshot` has exactly this state.
    #[track_caller]
    pub(crate) fn ensure_is_of(&self, snapshot: &dyn Snapshot) -> CaseResult {
        self.ensure_rows(&dump(snapshot)?)?;
        self.ensure_offsets(|partition| snapshot.committed_offset(partition), &snapshot.position()?)
    }

    /// Fails unless both offsets that `committed` tells, and the position, are those of this state.
    #[track_caller]
    pub(crate) fn ensure_offsets(
        &self,
        committed: impl Fn(&TopicPartition) -> kstate_api::Result<Option<Offset>>,
        position: &Position,
    ) -> CaseResult {
        let expected = self.last.map(offsets_at).unwrap_or_default();
        for partition in [changelog(), other_changelog()] {
            let seen = committed(&partition)?;
            ensure_eq!(seen, expected.get(&partition), "the offset of {partition} that belongs to {:?}", self.last);
        }
        let expected = self.last.map(position_at).unwrap_or_default();
        ensure_eq!(*position, expected, "the position that belongs to offset {:?}", self.last);
        Ok(())
    }
}

/// Where two lists of rows part.
fn first_difference(seen: &Rows, expected: &Rows) -> String {
    let place = seen.iter().zip(expected).take_while(|(seen, expected)| seen == expected).count();
    format!("row {place} is {:?} instead of {:?}", seen.get(place), expected.get(place))
}
