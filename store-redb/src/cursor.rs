use std::{fmt, sync::Arc};

use kstate_api::{Cursor, Error, ErrorKind, Order, Result, Row};
use redb::{AccessGuard, Range};

use crate::{
    error::{caught, engine},
    status::Status,
};

type Bytes = &'static [u8];

/// A cursor over the rows of one commit. It keeps its read transaction, and with it the commit's pages, alive.
pub(crate) struct RedbCursor {
    status: Arc<Status>,
    // Before `range`, whose transaction keeps the row's page.
    row: Option<(AccessGuard<'static, Bytes>, AccessGuard<'static, Bytes>)>,
    /// `None` once it is exhausted.
    range: Option<Range<'static, Bytes, Bytes>>,
    order: Order,
    failed: Option<(ErrorKind, String)>,
}

impl RedbCursor {
    /// `None` is an empty range.
    pub(crate) fn new(status: Arc<Status>, range: Option<Range<'static, Bytes, Bytes>>, order: Order) -> Self {
        Self { status, row: None, range, order, failed: None }
    }

    fn step(&mut self) -> Result<bool> {
        let Self { row, range, order, .. } = self;
        let Some(rows) = range else { return Ok(false) };
        let found = caught("cannot read the next row", || {
            let next = match order {
                Order::Ascending => rows.next(),
                Order::Descending => rows.next_back(),
            };
            match next {
                Some(Ok((key, value))) => {
                    // In here, so that a row which its page does not hold is an error and no panic later.
                    let _ = (key.value(), value.value());
                    // Not by way of the result: the guards are large, and would be copied once more for each layer.
                    *row = Some((key, value));
                    Ok(true)
                }
                Some(Err(error)) => Err(engine("cannot read the next row", error)),
                None => Ok(false),
            }
        })?;
        if !found {
            // Lets the engine free the commit's pages.
            *range = None;
        }
        Ok(found)
    }
}

impl Cursor for RedbCursor {
    fn advance(&mut self) -> Result<bool> {
        self.row = None;
        self.status.check_not_closed()?;
        if let Some((kind, message)) = &self.failed {
            return Err(Error::new(*kind, message.clone()));
        }
        self.step().inspect_err(|error| {
            self.failed = Some((error.kind(), error.to_string()));
        })
    }

    fn row(&self) -> Option<Row<'_>> {
        self.row.as_ref().map(|(key, value)| (key.value(), value.value()))
    }
}

impl fmt::Debug for RedbCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbCursor").field("order", &self.order).field("row", &self.row()).finish_non_exhaustive()
    }
}
