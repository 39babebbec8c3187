use std::{fmt, sync::Arc};

use imbl::{ordset::RangedIter, shared_ptr::DefaultSharedPtr};
use kstate_api::{Cursor, KeyRange, Order, Result};
use self_cell::self_cell;

use crate::{
    row::Row,
    state::{Rows, Shared},
};

/// A walk over the rows of a map.
struct Walk<'m> {
    /// `None` for a range that holds no key.
    rows: Option<RangedIter<'m, Row, DefaultSharedPtr>>,
    row: Option<&'m Row>,
}

self_cell!(
    /// A walk that keeps its map.
    struct Scan {
        owner: Rows,
        #[covariant]
        dependent: Walk,
    }
);

/// A cursor over the rows of one state.
pub(crate) struct MemoryCursor {
    shared: Arc<Shared>,
    scan: Scan,
    order: Order,
}

impl MemoryCursor {
    pub(crate) fn new(shared: Arc<Shared>, rows: Rows, range: &KeyRange<'_>, order: Order) -> Self {
        let scan = Scan::new(rows, |rows| Walk {
            // The map would panic on an inverted range.
            rows: (!range.is_inverted()).then(|| rows.range::<_, [u8]>((range.start(), range.end()))),
            row: None,
        });
        Self { shared, scan, order }
    }
}

impl Cursor for MemoryCursor {
    fn advance(&mut self) -> Result<bool> {
        let Self { shared, scan, order } = self;
        scan.with_dependent_mut(|_, Walk { rows, row }| {
            // Nothing to be had any more after a close, even while the rows are still here.
            *row = None;
            shared.check_open()?;
            *row = rows.as_mut().and_then(|rows| match order {
                Order::Ascending => rows.next(),
                Order::Descending => rows.next_back(),
            });
            Ok(row.is_some())
        })
    }

    fn row(&self) -> Option<kstate_api::Row<'_>> {
        self.scan.borrow_dependent().row.map(|row| (row.key(), row.value()))
    }
}

impl fmt::Debug for MemoryCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryCursor").field("order", &self.order).field("row", &self.row()).finish_non_exhaustive()
    }
}
