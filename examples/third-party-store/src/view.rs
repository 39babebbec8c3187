use std::sync::Arc;

use fjall::Readable;
use kstate_api::{
    Cursor, KeyRange, Offset, Order, Position, ReadOnlyKeyValueStore, Result, Snapshot, TopicPartition, codec,
};

use crate::{
    cursor::FjallCursor,
    engine::{Engine, Opaque, Open, failed},
    place,
};

pub(crate) const POSITION: &[u8] = b"position";
pub(crate) const OFFSET: &[u8] = b"offset ";

pub(crate) fn offset_key(partition: &TopicPartition) -> Vec<u8> {
    [OFFSET, partition.to_string().as_bytes()].concat()
}

/// One commit, kept. All reads go through one, so that none sees half of another.
#[derive(Debug)]
pub(crate) struct View {
    engine: Arc<Engine>,
    pub(crate) snapshot: Opaque<fjall::Snapshot>,
}

impl View {
    pub(crate) fn new(engine: &Arc<Engine>) -> Result<Self> {
        let snapshot = engine.with(|open| Ok(Opaque(open.database.snapshot())))?;
        Ok(Self { engine: Arc::clone(engine), snapshot })
    }

    /// The rows that share the place of `key`.
    pub(crate) fn rows_beside(&self, key: &[u8]) -> Result<place::Rows> {
        let place = place::of(key);
        let value = self.engine.with(|open| self.snapshot.0.get(&open.rows, &place).map_err(failed))?;
        Ok(value.map(|value| place::decode(&place, &value)).unwrap_or_default())
    }

    fn meta<T>(&self, key: &[u8], decode: fn(&[u8]) -> Result<T>) -> Result<Option<T>> {
        let value = self.engine.with(|open| self.snapshot.0.get(&open.meta, key).map_err(failed))?;
        value.map(|value| decode(&value)).transpose()
    }
}

impl ReadOnlyKeyValueStore for View {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.rows_beside(key)?.get(key).map(|value| read(value)).is_some())
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        let places = |open: &Open| self.snapshot.0.range(&open.rows, place::bounds(range));
        let places = self.engine.with(|open| Ok((!range.is_inverted()).then(|| places(open))))?;
        Ok(Box::new(FjallCursor::new(&self.engine, places, range, order)))
    }

    /// Exact, and as dear as a scan: fjall's own estimate counts deletes.
    fn approximate_num_entries(&self) -> Result<u64> {
        self.engine.with(|open| Ok(self.snapshot.0.len(&open.rows).map_err(failed)? as u64))
    }
}

impl Snapshot for View {
    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.meta(&offset_key(partition), codec::decode_offset)
    }

    fn position(&self) -> Result<Position> {
        Ok(self.meta(POSITION, codec::decode_position)?.unwrap_or_default())
    }
}
