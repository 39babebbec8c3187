use std::{ops::Bound, sync::Arc, vec};

use bytes::Bytes;

use crate::{
    KeyRange, Order,
    write_batch::{Key, Records},
};

/// How many rows are copied at a time.
const CHUNK: usize = 64;

/// One staged row: `None` hides what is committed under the key.
pub(crate) type StagedRow = (Key, Option<Bytes>);

/// The staged rows of a range, in one order, as they were when the scan began (clause R3).
///
/// A short range is copied at once and holds nothing. The rest of a long one is read, a chunk at a time, from the
/// overlay as it was, which the next write then leaves to this scan by copying it for itself.
#[derive(Debug, Default)]
pub(crate) struct StagedRows {
    chunk: vec::IntoIter<StagedRow>,
    rest: Option<Rest>,
}

#[derive(Debug)]
struct Rest {
    records: Arc<Records>,
    start: Bound<Key>,
    end: Bound<Key>,
    order: Order,
}

impl StagedRows {
    /// The rows of `records` in `range`, which must not be inverted.
    pub(crate) fn of(records: &Arc<Records>, range: &KeyRange<'_>, order: Order) -> Self {
        let chunk = read_chunk(records, range.start(), range.end(), order);
        let rest = (chunk.len() == CHUNK).then(|| Rest {
            records: Arc::clone(records),
            start: range.start().map(Key::from),
            end: range.end().map(Key::from),
            order,
        });
        let mut rows = Self { chunk: Vec::new().into_iter(), rest };
        rows.show(chunk);
        rows
    }

    /// Makes `chunk` the rows to come, and the rest what lies beyond its last row.
    fn show(&mut self, chunk: Vec<StagedRow>) {
        match (&mut self.rest, chunk.last()) {
            (Some(rest), Some((last, _))) if chunk.len() == CHUNK => match rest.order {
                Order::Ascending => rest.start = Bound::Excluded(last.clone()),
                Order::Descending => rest.end = Bound::Excluded(last.clone()),
            },
            _ => self.rest = None,
        }
        self.chunk = chunk.into_iter();
    }
}

impl Iterator for StagedRows {
    type Item = StagedRow;

    fn next(&mut self) -> Option<StagedRow> {
        if let Some(row) = self.chunk.next() {
            return Some(row);
        }
        let rest = self.rest.as_ref()?;
        let chunk = read_chunk(&rest.records, borrow(&rest.start), borrow(&rest.end), rest.order);
        self.show(chunk);
        self.chunk.next()
    }
}

fn borrow(bound: &Bound<Key>) -> Bound<&[u8]> {
    bound.as_ref().map(AsRef::as_ref)
}

fn read_chunk(records: &Records, start: Bound<&[u8]>, end: Bound<&[u8]>, order: Order) -> Vec<StagedRow> {
    // After its last row a range can be inverted, which an ordered map refuses with a panic.
    if KeyRange::new(start, end).is_inverted() {
        return Vec::new();
    }
    let rows = records.range::<[u8], _>((start, end)).map(|(key, value)| (key.clone(), value.clone()));
    match order {
        Order::Ascending => rows.take(CHUNK).collect(),
        Order::Descending => rows.rev().take(CHUNK).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(count: u16) -> Arc<Records> {
        Arc::new((0..count).map(|n| (Key::from(n.to_be_bytes().as_slice()), Some(Bytes::new()))).collect())
    }

    fn keys(rows: StagedRows) -> Vec<u16> {
        rows.map(|(key, _)| u16::from_be_bytes(key.as_ref().try_into().unwrap())).collect()
    }

    #[test]
    fn every_row_comes_once_around_the_borders_of_chunks() {
        for count in [0, 1, 63, 64, 65, 127, 128, 129, 1000] {
            let records = records(count);
            let ascending: Vec<u16> = (0..count).collect();
            let descending: Vec<u16> = (0..count).rev().collect();
            assert_eq!(keys(StagedRows::of(&records, &KeyRange::all(), Order::Ascending)), ascending);
            assert_eq!(keys(StagedRows::of(&records, &KeyRange::all(), Order::Descending)), descending);
        }
    }

    #[test]
    fn bounds_hold_around_the_borders_of_chunks() {
        let records = records(1000);
        for last in [99_u16, 100, 162, 163, 164, 165] {
            let (first, end) = (100_u16.to_be_bytes(), last.to_be_bytes());
            let range = KeyRange::between(&first, &end);
            if range.is_inverted() {
                continue;
            }
            assert_eq!(keys(StagedRows::of(&records, &range, Order::Ascending)), (100..=last).collect::<Vec<_>>());
            assert_eq!(
                keys(StagedRows::of(&records, &range, Order::Descending)),
                (100..=last).rev().collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn a_short_range_holds_nothing() {
        let records = records(63);
        let rows = StagedRows::of(&records, &KeyRange::all(), Order::Ascending);
        assert_eq!(Arc::strong_count(&records), 1);
        drop(rows);
    }
}
