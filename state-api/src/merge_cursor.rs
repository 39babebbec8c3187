use std::{cmp::Ordering, sync::Arc};

use crate::{
    Cursor, Error, ErrorKind, Order, Result, Row,
    lifecycle::Lifecycle,
    staged_rows::{StagedRow, StagedRows},
};

/// Which side holds the current row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Neither,
    Staged,
    Committed,
}

/// Staged rows over committed ones, in one order: what the owner of a store sees (clauses R2, R3).
#[derive(Debug)]
pub(crate) struct MergeCursor {
    staged: StagedRows,
    committed: Box<dyn Cursor>,
    order: Order,
    lifecycle: Arc<Lifecycle>,
    current: Side,
    staged_row: Option<StagedRow>,
    /// Whether `committed` stands on a row that has not been shown or hidden yet.
    committed_ahead: bool,
    started: bool,
    /// What to repeat: a backend's cursor might not.
    failed: Option<(ErrorKind, String)>,
}

impl MergeCursor {
    pub(crate) fn new(staged: StagedRows, committed: Box<dyn Cursor>, order: Order, lifecycle: Arc<Lifecycle>) -> Self {
        Self {
            staged,
            committed,
            order,
            lifecycle,
            current: Side::Neither,
            staged_row: None,
            committed_ahead: false,
            started: false,
            failed: None,
        }
    }

    fn step(&mut self) -> Result<bool> {
        if !self.started {
            self.started = true;
            self.staged_row = self.staged.next();
            self.committed_ahead = self.committed.advance()?;
        }
        // Leave the row shown last.
        match self.current {
            Side::Staged => self.staged_row = self.staged.next(),
            Side::Committed => self.committed_ahead = self.committed.advance()?,
            Side::Neither => {}
        }
        loop {
            let Some((staged_key, staged_value)) = &self.staged_row else {
                // The rest is the engine's: nobody need look at its keys.
                self.current = if self.committed_ahead { Side::Committed } else { Side::Neither };
                return Ok(self.committed_ahead);
            };
            let committed_key = if self.committed_ahead { self.committed.row().map(|(key, _)| key) } else { None };
            let ordering = match (committed_key, self.order) {
                (None, _) => Ordering::Less,
                (Some(committed), Order::Ascending) => (**staged_key).cmp(committed),
                (Some(committed), Order::Descending) => committed.cmp(staged_key),
            };
            if ordering == Ordering::Greater {
                self.current = Side::Committed;
                return Ok(true);
            }
            let is_put = staged_value.is_some();
            if ordering == Ordering::Equal {
                // The staged row hides the committed one.
                self.committed_ahead = self.committed.advance()?;
            }
            if is_put {
                self.current = Side::Staged;
                return Ok(true);
            }
            self.staged_row = self.staged.next();
        }
    }
}

impl Cursor for MergeCursor {
    fn advance(&mut self) -> Result<bool> {
        // The engine's cursor notices that its store was closed; the staged rows alone would not.
        self.lifecycle.check_not_closed().inspect_err(|_| self.current = Side::Neither)?;
        if let Some((kind, message)) = &self.failed {
            return Err(Error::new(*kind, message.clone()));
        }
        self.step().inspect_err(|error| {
            self.failed = Some((error.kind(), error.to_string()));
            self.current = Side::Neither;
        })
    }

    fn row(&self) -> Option<Row<'_>> {
        match self.current {
            Side::Neither => None,
            Side::Staged => match &self.staged_row {
                Some((key, Some(value))) => Some((key, value)),
                _ => None,
            },
            Side::Committed => self.committed.row(),
        }
    }
}
