use std::{
    ops::{Bound, RangeBounds},
    sync::Arc,
};

use kstate_api::{Bytes, Cursor, Error, ErrorKind, KeyRange, Order, Result, Row};

use crate::{
    engine::{Engine, Opaque, failed},
    place,
};

#[derive(Debug)]
pub(crate) struct FjallCursor {
    engine: Arc<Engine>,
    /// `None` at the end.
    places: Opaque<Option<fjall::Iter>>,
    range: (Bound<Bytes>, Bound<Bytes>),
    order: Order,
    /// What is left of the last place, the next row last.
    rows: Vec<(Bytes, Bytes)>,
    row: Option<(Bytes, Bytes)>,
    failed: bool,
}

impl FjallCursor {
    pub(crate) fn new(engine: &Arc<Engine>, places: Option<fjall::Iter>, range: &KeyRange<'_>, order: Order) -> Self {
        let range = (range.start().map(Bytes::copy_from_slice), range.end().map(Bytes::copy_from_slice));
        let (engine, places) = (Arc::clone(engine), Opaque(places));
        Self { engine, places, range, order, rows: Vec::new(), row: None, failed: false }
    }

    fn step(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        while self.rows.is_empty() {
            let next = self.places.0.as_mut().and_then(|places| match self.order {
                Order::Ascending => places.next(),
                Order::Descending => places.next_back(),
            });
            let Some(next) = next else {
                self.places.0 = None;
                return Ok(None);
            };
            let (place, value) = next.into_inner().map_err(failed)?;
            let rows = place::decode(&place, &value).into_iter();
            self.rows = rows.filter(|(key, _)| self.range.contains(key)).collect();
            if self.order == Order::Ascending {
                self.rows.reverse();
            }
        }
        Ok(self.rows.pop())
    }
}

impl Cursor for FjallCursor {
    fn advance(&mut self) -> Result<bool> {
        self.row = None;
        self.engine.with(|_| Ok(()))?;
        if self.failed {
            return Err(Error::new(ErrorKind::Io, "the cursor has failed before"));
        }
        self.row = self.step().inspect_err(|_| self.failed = true)?;
        Ok(self.row.is_some())
    }

    fn row(&self) -> Option<Row<'_>> {
        self.row.as_ref().map(|(key, value)| (&**key, &**value))
    }
}
