//! Cursors with the bugs that a store's own cursor can have.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use kstate_api::{Cursor, Error, ErrorKind, KeyRange, KeyValueStore, Order, Result, Row};

use super::bug::Bug;

/// A cursor over rows that were collected when it was made.
#[derive(Debug)]
pub(crate) struct RowsCursor {
    pub(crate) rows: std::vec::IntoIter<(Bytes, Bytes)>,
    pub(crate) current: Option<(Bytes, Bytes)>,
}

impl Cursor for RowsCursor {
    fn advance(&mut self) -> Result<bool> {
        self.current = self.rows.next();
        Ok(self.current.is_some())
    }

    fn row(&self) -> Option<Row<'_>> {
        self.current.as_ref().map(|(key, value)| (key.as_ref(), value.as_ref()))
    }
}

/// A cursor over staged rows only, which sees that its store is closed while that is there.
#[derive(Debug)]
pub(crate) struct StagedCursor {
    pub(crate) rows: RowsCursor,
    pub(crate) store: Weak<dyn KeyValueStore>,
}

impl Cursor for StagedCursor {
    fn advance(&mut self) -> Result<bool> {
        if self.store.upgrade().is_some_and(|store| !store.is_open()) {
            self.rows.current = None;
            return Err(Error::new(ErrorKind::Closed, "the toy is closed"));
        }
        self.rows.advance()
    }

    fn row(&self) -> Option<Row<'_>> {
        self.rows.row()
    }
}

/// A right cursor, spoilt.
#[derive(Debug)]
pub(crate) struct SpoiltCursor {
    pub(crate) cursor: Box<dyn Cursor>,
    pub(crate) bug: Bug,
    pub(crate) failed: bool,
    /// For the bug of a cursor that keeps its store.
    pub(crate) _store: Option<Arc<dyn KeyValueStore>>,
}

impl Cursor for SpoiltCursor {
    fn advance(&mut self) -> Result<bool> {
        let failed_before = self.failed;
        let step = self.cursor.advance();
        self.failed |= step.is_err();
        match (self.bug, step) {
            (Bug::ClosedCursorEnds, Err(error)) if error.kind() == ErrorKind::Closed => Ok(false),
            (Bug::ClosedCursorFailsOnce, Err(error)) if failed_before && error.kind() == ErrorKind::Closed => Ok(false),
            (Bug::FailedCursorEnds, Err(_)) if failed_before => Ok(false),
            (Bug::CursorHidesErrors, Err(error)) if error.kind() == ErrorKind::Io => Ok(false),
            (_, step) => step,
        }
    }

    fn row(&self) -> Option<Row<'_>> {
        self.cursor.row()
    }
}

/// A cursor that copies a page at a time.
#[derive(Debug)]
pub(crate) struct PagingCursor {
    pub(crate) live: LiveCursor,
    pub(crate) page: std::collections::VecDeque<(Bytes, Bytes)>,
    pub(crate) current: Option<(Bytes, Bytes)>,
}

impl Cursor for PagingCursor {
    fn advance(&mut self) -> Result<bool> {
        self.current = None;
        let store = self.live.store.upgrade().ok_or_else(|| Error::new(ErrorKind::Closed, "the toy was dropped"))?;
        let mut rows = store.scan(&self.live.range, self.live.order)?;
        if self.page.is_empty() {
            while self.page.len() < 100 && rows.advance()? {
                let Some((key, value)) = rows.row() else { break };
                let is_next = match (&self.live.last, self.live.order) {
                    (None, _) => true,
                    (Some(last), Order::Ascending) => key > last.as_ref(),
                    (Some(last), Order::Descending) => key < last.as_ref(),
                };
                if is_next {
                    self.page.push_back((Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
                }
            }
            self.live.last = self.page.back().map(|(key, _)| key.clone()).or_else(|| self.live.last.take());
        }
        self.current = self.page.pop_front();
        Ok(self.current.is_some())
    }

    fn row(&self) -> Option<Row<'_>> {
        self.current.as_ref().map(|(key, value)| (key.as_ref(), value.as_ref()))
    }
}

/// A cursor that looks up the next row when it steps.
#[derive(Debug)]
pub(crate) struct LiveCursor {
    pub(crate) store: Weak<dyn KeyValueStore>,
    pub(crate) range: KeyRange<'static>,
    pub(crate) order: Order,
    pub(crate) current: Option<(Bytes, Bytes)>,
    pub(crate) last: Option<Bytes>,
}

impl Cursor for LiveCursor {
    fn advance(&mut self) -> Result<bool> {
        self.current = None;
        let store = self.store.upgrade().ok_or_else(|| Error::new(ErrorKind::Closed, "the toy was dropped"))?;
        let mut rows = store.scan(&self.range, self.order)?;
        while rows.advance()? {
            let Some((key, value)) = rows.row() else { break };
            let is_next = match (&self.last, self.order) {
                (None, _) => true,
                (Some(last), Order::Ascending) => key > last.as_ref(),
                (Some(last), Order::Descending) => key < last.as_ref(),
            };
            if is_next {
                let row = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
                self.last = Some(row.0.clone());
                self.current = Some(row);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn row(&self) -> Option<Row<'_>> {
        self.current.as_ref().map(|(key, value)| (key.as_ref(), value.as_ref()))
    }
}
