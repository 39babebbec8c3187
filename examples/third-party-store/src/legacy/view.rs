use std::{
    fs::File,
    sync::{Arc, Weak},
    vec,
};

use kstate_api::{
    Bytes, Cursor, Error, ErrorKind, KeyRange, Offset, Order, Position, ReadOnlyKeyValueStore, Result, Row, Snapshot,
    TopicPartition,
};

use super::Rows;

/// Rows that no later write changes. They can be read as long as the store holds its lock: until it is closed.
#[derive(Debug)]
pub(super) struct View {
    pub(super) rows: Arc<Rows>,
    pub(super) lock: Weak<File>,
}

fn check_open(lock: &Weak<File>) -> Result<()> {
    if lock.strong_count() > 0 { Ok(()) } else { Err(Error::new(ErrorKind::Closed, "the store is closed")) }
}

impl ReadOnlyKeyValueStore for View {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        check_open(&self.lock)?;
        Ok(self.rows.get(key).map(|value| read(value)).is_some())
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        check_open(&self.lock)?;
        let mut rows = Vec::new();
        if !range.is_inverted() {
            let found = self.rows.range::<[u8], _>((range.start(), range.end()));
            rows.extend(found.map(|(key, value)| (key.clone(), value.clone())));
        }
        if order == Order::Descending {
            rows.reverse();
        }
        Ok(Box::new(RowsCursor { rows: rows.into_iter(), lock: Weak::clone(&self.lock), row: None }))
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        check_open(&self.lock)?;
        Ok(self.rows.len() as u64)
    }
}

impl Snapshot for View {
    fn committed_offset(&self, _: &TopicPartition) -> Result<Option<Offset>> {
        check_open(&self.lock).map(|()| None)
    }

    fn position(&self) -> Result<Position> {
        check_open(&self.lock).map(|()| Position::new())
    }
}

#[derive(Debug)]
struct RowsCursor {
    rows: vec::IntoIter<(Bytes, Bytes)>,
    lock: Weak<File>,
    row: Option<(Bytes, Bytes)>,
}

impl Cursor for RowsCursor {
    fn advance(&mut self) -> Result<bool> {
        self.row = None;
        check_open(&self.lock)?;
        self.row = self.rows.next();
        Ok(self.row.is_some())
    }

    fn row(&self) -> Option<Row<'_>> {
        self.row.as_ref().map(|(key, value)| (&**key, &**value))
    }
}
