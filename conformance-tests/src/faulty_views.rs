use std::sync::Arc;

use kstate_api::{
    Cursor, KeyRange, Offset, Order, Position, ReadOnlyKeyValueStore, Result, Row, Snapshot, TopicPartition,
};

use crate::{Faults, faults::injected};

/// Fails after a number of rows, for good.
#[derive(Debug)]
pub(crate) struct FaultyCursor {
    cursor: Box<dyn Cursor>,
    rows_left: usize,
    ended: bool,
    failed: bool,
}

impl FaultyCursor {
    /// `cursor`, which fails if the plan says so.
    pub(crate) fn wrap(cursor: Box<dyn Cursor>, faults: &Faults) -> Box<dyn Cursor> {
        match faults.cursor() {
            Some(rows_left) => Box::new(Self { cursor, rows_left, ended: false, failed: false }),
            None => cursor,
        }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Cursor for FaultyCursor {
    fn advance(&mut self) -> Result<bool> {
        // A closed store is closed, faults or not.
        let more = self.cursor.advance()?;
        match self.rows_left.checked_sub(1) {
            _ if self.ended => Ok(false),
            Some(left) if !self.failed => {
                self.rows_left = left;
                self.ended = !more;
                Ok(more)
            }
            _ => {
                self.failed = true;
                Err(injected())
            }
        }
    }

    fn row(&self) -> Option<Row<'_>> {
        if self.failed { None } else { self.cursor.row() }
    }
}

/// A snapshot whose gets and cursors fail as the plan says.
#[derive(Debug)]
pub(crate) struct FaultySnapshot {
    snapshot: Arc<dyn Snapshot>,
    faults: Faults,
}

impl FaultySnapshot {
    pub(crate) fn wrap(snapshot: Arc<dyn Snapshot>, faults: &Faults) -> Arc<dyn Snapshot> {
        Arc::new(Self { snapshot, faults: faults.clone() })
    }
}

#[deny(clippy::missing_trait_methods)]
impl ReadOnlyKeyValueStore for FaultySnapshot {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.faults.read()?;
        self.snapshot.get_with(key, read)
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        Ok(FaultyCursor::wrap(self.snapshot.scan(range, order)?, &self.faults))
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        self.snapshot.approximate_num_entries()
    }
}

#[deny(clippy::missing_trait_methods)]
impl Snapshot for FaultySnapshot {
    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.snapshot.committed_offset(partition)
    }

    fn position(&self) -> Result<Position> {
        self.snapshot.position()
    }
}
