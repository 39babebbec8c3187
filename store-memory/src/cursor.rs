use std::{fmt, ops::Bound, sync::Arc, vec};

use kstate_api::{Bytes, Cursor, KeyRange, Order, Result};

use crate::{
    row::Row,
    state::{Rows, Shared},
};

/// How many rows are taken from the map at first, and at most, at a time. The map's iterators borrow from it, so a
/// cursor that owns its map has to look its place up again; this way it does so once for many rows, and a scan that
/// ends after a few does not pay for many.
const FIRST_CHUNK: usize = 8;
const MAX_CHUNK: usize = 64;

/// A cursor over the rows of one state.
pub(crate) struct MemoryCursor {
    shared: Arc<Shared>,
    rows: Rows,
    order: Order,
    /// What is left after `chunk`; `None` once the map has no more.
    left: Option<(Bound<Bytes>, Bound<Bytes>)>,
    chunk: vec::IntoIter<Row>,
    /// How many rows to take next.
    chunk_len: usize,
    row: Option<Row>,
}

impl MemoryCursor {
    pub(crate) fn new(shared: Arc<Shared>, rows: Rows, range: &KeyRange<'_>, order: Order) -> Self {
        let left = (!range.is_inverted())
            .then(|| (range.start().map(Bytes::copy_from_slice), range.end().map(Bytes::copy_from_slice)));
        Self { shared, rows, order, left, chunk: Vec::new().into_iter(), chunk_len: FIRST_CHUNK, row: None }
    }

    /// Takes the next rows from the map.
    fn refill(&mut self) {
        let Some((start, end)) = self.left.take() else { return };
        let range = self.rows.range::<_, [u8]>((as_slice(&start), as_slice(&end)));
        let chunk: Vec<_> = match self.order {
            Order::Ascending => range.take(self.chunk_len).cloned().collect(),
            Order::Descending => range.rev().take(self.chunk_len).cloned().collect(),
        };
        // A chunk that is not full was the last.
        if let Some(last) = chunk.last().filter(|_| chunk.len() == self.chunk_len) {
            let last = Bound::Excluded(Bytes::copy_from_slice(last.key()));
            self.left = match self.order {
                Order::Ascending => Some((last, end)),
                Order::Descending => Some((start, last)),
            }
            // Bounds that have met leave nothing, and the map would panic on them.
            .filter(|(start, end)| !KeyRange::new(as_slice(start), as_slice(end)).is_inverted());
        }
        self.chunk = chunk.into_iter();
        self.chunk_len = MAX_CHUNK.min(2 * self.chunk_len);
    }
}

fn as_slice(bound: &Bound<Bytes>) -> Bound<&[u8]> {
    bound.as_ref().map(|key| &**key)
}

impl Cursor for MemoryCursor {
    fn advance(&mut self) -> Result<bool> {
        // Nothing to be had any more, even while the rows are still here.
        self.row = None;
        self.shared.check_open()?;
        self.row = self.chunk.next();
        if self.row.is_none() {
            self.refill();
            self.row = self.chunk.next();
        }
        Ok(self.row.is_some())
    }

    fn row(&self) -> Option<kstate_api::Row<'_>> {
        self.row.as_ref().map(|row| (row.key(), row.value()))
    }
}

impl fmt::Debug for MemoryCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryCursor").field("order", &self.order).field("row", &self.row()).finish_non_exhaustive()
    }
}
