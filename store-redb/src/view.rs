use std::{fmt, sync::Arc};

use kstate_api::{Cursor, KeyRange, Offset, Order, Position, Result, TopicPartition};
use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTableMetadata};

use crate::{
    cursor::RedbCursor,
    error::{caught, engine},
    layout::{self, META, OFFSETS, Offsets, RECORDS, ReadTable},
    status::Status,
};

/// Reads of one commit.
pub(crate) struct View {
    records: ReadTable,
    transaction: ReadTransaction,
}

impl View {
    /// The last commit.
    pub(crate) fn begin(database: &Database) -> Result<Self> {
        caught("cannot begin to read", || {
            let transaction = database.begin_read().map_err(|error| engine("cannot begin to read", error))?;
            Ok(Self { records: layout::open(&transaction, RECORDS)?, transaction })
        })
    }

    pub(crate) fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let what = "cannot read a row";
        let found = caught(what, || self.records.get(key).map_err(|error| engine(what, error)))?;
        let Some(found) = found else { return Ok(false) };
        // Apart from the call, for a panic of the caller's is the caller's.
        let value = caught(what, || Ok(found.value()))?;
        read(value);
        Ok(true)
    }

    pub(crate) fn scan(&self, status: &Arc<Status>, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        let rows = if range.is_inverted() {
            None
        } else {
            let what = "cannot begin a scan";
            let bounds = (range.start(), range.end());
            Some(caught(what, || self.records.range::<&[u8]>(bounds).map_err(|error| engine(what, error)))?)
        };
        Ok(Box::new(RedbCursor::new(Arc::clone(status), rows, order)))
    }

    pub(crate) fn len(&self) -> Result<u64> {
        let what = "cannot count the rows";
        caught(what, || self.records.len().map_err(|error| engine(what, error)))
    }

    pub(crate) fn offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        caught("cannot read an offset", || layout::read_offset(&layout::open(&self.transaction, OFFSETS)?, partition))
    }

    pub(crate) fn offsets(&self) -> Result<Offsets> {
        caught("cannot read the offsets", || layout::read_offsets(&layout::open(&self.transaction, OFFSETS)?))
    }

    pub(crate) fn position(&self) -> Result<Position> {
        caught("cannot read the position", || layout::read_position(&layout::open(&self.transaction, META)?))
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").finish_non_exhaustive()
    }
}
