use std::{collections::BTreeMap, ops::Bound, sync::RwLock};

use crate::{
    Result,
    data::{self, Key},
    digest::{Contents, Digest},
    store::{Store, decode_count, is_commit_due, last_offset},
};

type Rows = BTreeMap<Box<[u8]>, Box<[u8]>>;

/// An ordered map behind a lock, as one would write it for a store in memory. It has no snapshots and no rollback.
#[derive(Default)]
pub(crate) struct RawMemory(RwLock<State>);

#[derive(Default)]
struct State {
    rows: Rows,
    offset: Option<u64>,
}

fn poisoned<T>(_: T) -> &'static str {
    "the lock is poisoned"
}

impl Store for RawMemory {
    fn load(&mut self, records: u64, commit_every: u64) -> Result<()> {
        let mut batch = Vec::new();
        for index in 0..records {
            batch.push((Box::from(data::key(index)), Box::from(data::value(index))));
            if is_commit_due(index + 1, records, commit_every) {
                let mut state = self.0.write().map_err(poisoned)?;
                for (key, value) in batch.drain(..) {
                    state.rows.insert(key, value);
                }
                state.offset = Some(last_offset(index + 1));
            }
        }
        Ok(())
    }

    fn update(&mut self, keys: &[Key], commit_every: u64) -> Result<()> {
        for (count, key) in (1..).zip(keys) {
            let found = decode_count(self.0.read().map_err(poisoned)?.rows.get(key.as_slice()).map(|value| &**value));
            self.0.write().map_err(poisoned)?.rows.insert(Box::from(*key), Box::from((found + 1).to_be_bytes()));
            if is_commit_due(count, keys.len() as u64, commit_every) {
                self.0.write().map_err(poisoned)?.offset = Some(last_offset(count));
            }
        }
        Ok(())
    }

    fn get(&mut self, keys: &[Key]) -> Result<Digest> {
        let mut digest = Digest::default();
        for key in keys {
            if let Some(value) = self.0.read().map_err(poisoned)?.rows.get(key.as_slice()) {
                digest.look_at_value(value);
            }
        }
        Ok(digest)
    }

    fn range(&mut self, starts: &[Key], rows: usize) -> Result<Digest> {
        let mut digest = Digest::default();
        for start in starts {
            let state = self.0.read().map_err(poisoned)?;
            let range = (Bound::Included(start.as_slice()), Bound::Unbounded);
            for (key, value) in state.rows.range::<[u8], _>(range).take(rows) {
                digest.look_at_row(key, value);
            }
        }
        Ok(digest)
    }

    fn contents(&mut self) -> Result<Contents> {
        let state = self.0.read().map_err(poisoned)?;
        let mut rows = Digest::default();
        for (key, value) in &state.rows {
            rows.read_row(key, value);
        }
        Ok(Contents { rows, offset: state.offset })
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
