use std::sync::Arc;

use bytes::Bytes;
use kstate_api::{Cursor, Error, ErrorKind, KeyRange, Order, ReadOnlyKeyValueStore, Result, Row};

use super::judge::Judge;

/// Two cursors, step by step.
#[derive(Debug)]
pub(super) struct CompareCursor {
    judge: Arc<Judge>,
    scan: String,
    trusted: Box<dyn Cursor>,
    /// `None` once there is nothing to compare with.
    candidate: Option<Box<dyn Cursor>>,
    failed: bool,
}

/// The row that a cursor stepped to.
fn step(cursor: &mut dyn Cursor) -> Result<Option<(Bytes, Bytes)>> {
    let more = cursor.advance()?;
    let row = cursor.row().map(|(key, value)| (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
    match (more, row) {
        (true, None) => Err(Error::new(ErrorKind::Corrupted, "the cursor stepped to a row, but has none")),
        (false, Some(_)) => Err(Error::new(ErrorKind::Corrupted, "the cursor ended, but has a row")),
        (_, row) => Ok(row),
    }
}

impl CompareCursor {
    /// Scans both views.
    pub(super) fn scan<A, B>(
        judge: &Arc<Judge>,
        trusted: &A,
        candidate: &B,
        range: &KeyRange<'_>,
        order: Order,
    ) -> Result<Box<dyn Cursor>>
    where
        A: ReadOnlyKeyValueStore + ?Sized,
        B: ReadOnlyKeyValueStore + ?Sized,
    {
        let scan = || format!("scan({range:?}, {order:?})");
        let (trusted, candidate) =
            judge.judge(scan, trusted.scan(range, order), || candidate.scan(range, order), |_, _| true)?;
        Ok(Box::new(Self { judge: Arc::clone(judge), scan: scan(), trusted, candidate, failed: false }))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Cursor for CompareCursor {
    fn advance(&mut self) -> Result<bool> {
        let _turn = self.judge.reading();
        self.failed = true;
        self.judge.check()?;
        let call = || format!("advance() of {}", self.scan);
        let trusted = step(&mut *self.trusted);
        let (row, side_by_side) = match &mut self.candidate {
            Some(candidate) => {
                let (row, same) = self.judge.judge(
                    call,
                    trusted,
                    || step(&mut **candidate),
                    |trusted, candidate| trusted == candidate,
                )?;
                (row, same.is_some())
            }
            None => (trusted?, false),
        };
        if !side_by_side {
            // All rows after the first difference would differ.
            self.candidate = None;
        }
        self.failed = false;
        Ok(row.is_some())
    }

    fn row(&self) -> Option<Row<'_>> {
        if self.failed { None } else { self.trusted.row() }
    }
}
