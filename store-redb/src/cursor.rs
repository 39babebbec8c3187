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
        let Some(range) = &mut self.range else { return Ok(false) };
        let order = self.order;
        let next = caught("cannot read the next row", || {
            let next = match order {
                Order::Ascending => range.next(),
                Order::Descending => range.next_back(),
            };
            let next = next.transpose().map_err(|error| engine("cannot read the next row", error))?;
            // In here, so that a row which its page does not hold is an error and no panic later.
            if let Some((key, value)) = &next {
                let _ = (key.value(), value.value());
            }
            Ok(next)
        })?;
        self.row = next;
        if self.row.is_none() {
            // Lets the engine free the commit's pages.
            self.range = None;
        }
        Ok(self.row.is_some())
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
