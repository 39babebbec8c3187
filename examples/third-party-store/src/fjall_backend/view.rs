use std::{iter, sync::Arc};

use fjall::Readable;
use kstate_api::{
    Bytes, Cursor, Error, ErrorKind, KeyRange, Offset, Order, Position, ReadOnlyKeyValueStore, Result, Row, Snapshot,
    TopicPartition, codec,
};

use super::{
    engine::{Engine, Opaque, Shared, failed},
    long_keys,
};

/// One commit, kept. All reads go through one, so that none sees half of another.
#[derive(Debug)]
pub(super) struct View {
    pub(super) shared: Arc<Shared>,
    pub(super) snapshot: Opaque<fjall::Snapshot>,
}

impl View {
    pub(super) fn read<T>(&self, read: impl FnOnce(&Engine, &fjall::Snapshot) -> fjall::Result<T>) -> Result<T> {
        self.shared.with(|engine| read(engine, &self.snapshot.0).map_err(failed))
    }

    /// The `offsets` or the `position`: both are a map from partitions to numbers.
    pub(super) fn partitions(&self, name: &str) -> Result<Position> {
        let bytes = self.read(|engine, snapshot| snapshot.get(&engine.meta, name))?;
        bytes.map_or(Ok(Position::new()), |bytes| codec::decode_position(&bytes))
    }
}

impl ReadOnlyKeyValueStore for View {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let stored = self.read(|engine, snapshot| snapshot.get(&engine.rows, long_keys::place(key)))?;
        Ok(stored.and_then(|stored| long_keys::find(key, stored)).map(|value| read(&value)).is_some())
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        let places = self.read(|engine, snapshot| Ok(snapshot.range(&engine.rows, long_keys::places(range))))?;
        let rows = long_keys::rows(places, range, order);
        Ok(Box::new(FjallCursor { shared: Arc::clone(&self.shared), rows: Opaque(rows), row: None }))
    }

    /// Exact, and as dear as a scan: fjall's own estimate counts deletes.
    fn approximate_num_entries(&self) -> Result<u64> {
        Ok(self.read(|engine, snapshot| snapshot.len(&engine.rows))? as u64)
    }
}

impl Snapshot for View {
    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        Ok(self.partitions("offsets")?.next(partition))
    }

    fn position(&self) -> Result<Position> {
        self.partitions("position")
    }
}

pub(super) type Rows = Box<dyn Iterator<Item = Result<(Bytes, Bytes)>> + Send>;

#[derive(Debug)]
struct FjallCursor {
    shared: Arc<Shared>,
    rows: Opaque<Rows>,
    row: Option<(Bytes, Bytes)>,
}

impl Cursor for FjallCursor {
    fn advance(&mut self) -> Result<bool> {
        self.row = None;
        self.shared.with(|_| Ok(()))?;
        let row = self.rows.0.next().transpose();
        if row.is_err() {
            // It fails for good: rows after a gap would look complete.
            let again = || Err(Error::new(ErrorKind::Io, "the cursor has failed before"));
            self.rows.0 = Box::new(iter::repeat_with(again));
        }
        self.row = row?;
        Ok(self.row.is_some())
    }

    fn row(&self) -> Option<Row<'_>> {
        self.row.as_ref().map(|(key, value)| (&**key, &**value))
    }
}
