use std::{fmt, sync::Arc};

use kstate_api::{Cursor, KeyRange, Order, Result, Row};

use crate::{
    registry::{Lease, Registry},
    view::{Rows, Source},
};

/// A walk over rows, ended by its store's close.
pub(crate) struct RocksDbCursor {
    /// `None` for a range that holds no key: it has nothing to show, but notices the close, too.
    rows: Lease<Option<Rows>>,
    // Copies, so that a row can be looked at without a lock.
    key: Vec<u8>,
    value: Vec<u8>,
    on_row: bool,
}

impl RocksDbCursor {
    pub(crate) fn over(
        registry: &Arc<Registry>,
        source: Source,
        range: &KeyRange<'_>,
        order: Order,
    ) -> Result<Box<dyn Cursor>> {
        let rows = Lease::new(registry, Rows::of(source, range, order)?)?;
        Ok(Box::new(Self { rows, key: Vec::new(), value: Vec::new(), on_row: false }))
    }
}

impl Cursor for RocksDbCursor {
    fn advance(&mut self) -> Result<bool> {
        let Self { rows, key, value, on_row } = self;
        *on_row = false;
        *on_row = rows.write(|rows| {
            let Some(rows) = rows else { return Ok(false) };
            rows.step(|found_key, found_value| {
                key.clear();
                key.extend_from_slice(found_key);
                value.clear();
                value.extend_from_slice(found_value);
            })
        })?;
        Ok(*on_row)
    }

    fn row(&self) -> Option<Row<'_>> {
        self.on_row.then_some((&self.key, &self.value))
    }
}

impl fmt::Debug for RocksDbCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RocksDbCursor").field("row", &self.row()).finish_non_exhaustive()
    }
}
