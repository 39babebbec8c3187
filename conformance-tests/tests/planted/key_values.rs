//! Reads and writes of the toy store.

use std::{collections::VecDeque, ops::Bound, sync::Arc, thread, time::Duration};

use bytes::Bytes;
use kstate_api::{
    Backend, Cursor, CursorExt, Error, ErrorKind, KeyRange, KeyValueStore, MAX_KEY_LEN, MAX_VALUE_LEN, Offset, Order,
    Position, ReadOnlyKeyValueStore, ReadOnlyKeyValueStoreExt, Result, Snapshot, TopicPartition,
};

use super::{
    bug::Bug,
    cursor::{LiveCursor, PagingCursor, RowsCursor, SpoiltCursor, StagedCursor},
    key_limit::{self, LIMIT},
    store::ToyStore,
};

impl ReadOnlyKeyValueStore for ToyStore {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        if self.bug == Bug::ReadOfALongKeyFails && key.len() > LIMIT {
            return Err(Self::refused("long"));
        }
        match (self.bug, self.inner.get_with(key, read)) {
            (Bug::GetMissesStagedDeletes, Ok(false)) => self.backend.get_with(key, read),
            (Bug::FailedReadIsAbsent, Err(error)) if error.kind() == ErrorKind::Io => Ok(false),
            (Bug::ClosedStoreIsEmpty, Err(error)) if error.kind() == ErrorKind::Closed => Ok(false),
            (_, found) => found,
        }
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        if self.modest && order == Order::Descending {
            return Err(Error::new(ErrorKind::Unsupported, "the modest toy goes one way only"));
        }
        let rows = |rows: Vec<(Bytes, Bytes)>| Box::new(RowsCursor { rows: rows.into_iter(), current: None });
        match self.bug {
            Bug::InvertedBoundsPanic => assert!(!range.is_inverted(), "the toy's range is inverted"),
            Bug::InvertedBoundsAreSwapped if range.is_inverted() => {
                return self.inner.scan(&KeyRange::new(range.end(), range.start()), order);
            }
            Bug::LongBoundIsCutLikeAKey => return self.inner.scan(&key_limit::cut(range), order),
            Bug::LongBoundFails if key_limit::cut(range) != *range => return Err(Self::refused("long")),
            Bug::ScanMissesWhatIsStaged => return self.backend.scan(range, order),
            Bug::ScanShowsOverwrittenRows => {
                let mut all = self.backend.scan(range, order)?.entries().collect::<Result<Vec<_>>>()?;
                all.extend(self.inner.scan(range, order)?.entries().collect::<Result<Vec<_>>>()?);
                all.sort();
                all.dedup();
                if order == Order::Descending {
                    all.reverse();
                }
                return Ok(rows(all));
            }
            Bug::StagedCursorMissesADrop if self.backend.scan(range, order)?.next_row()?.is_none() => {
                let staged = self.inner.scan(range, order)?.entries().collect::<Result<Vec<_>>>()?;
                return Ok(Box::new(StagedCursor { rows: *rows(staged), store: Arc::downgrade(&self.inner) }));
            }
            Bug::CursorIsLive | Bug::CursorReadsPagesLive => {
                let owned = |bound: Bound<&[u8]>| bound.map(|key| &*key.to_vec().leak());
                self.inner.scan(range, order)?;
                let live = LiveCursor {
                    store: Arc::downgrade(&self.inner),
                    range: KeyRange::new(owned(range.start()), owned(range.end())),
                    order,
                    current: None,
                    last: None,
                };
                if self.bug == Bug::CursorIsLive {
                    return Ok(Box::new(live));
                }
                let mut cursor = PagingCursor { live, page: VecDeque::new(), current: None };
                // The first page is read at once.
                if cursor.advance()? {
                    cursor.page.extend(cursor.current.take());
                    cursor.page.rotate_right(1);
                }
                return Ok(Box::new(cursor));
            }
            _ => {}
        }
        let cursor = self.inner.scan(range, order)?;
        let store = if self.bug == Bug::CursorKeepsItsStore { Some(Arc::clone(&self.inner)) } else { None };
        Ok(Box::new(SpoiltCursor { cursor, bug: self.bug, failed: false, _store: store }))
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        if self.bug == Bug::NumberOfEntriesIsZero {
            return self.inner.approximate_num_entries().map(|_| 0);
        }
        self.inner.approximate_num_entries()
    }
}

impl KeyValueStore for ToyStore {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.pending(|pending| pending.ever_staged += value.len() as u64);
        match self.bug {
            Bug::EmptyValueDeletes if value.is_empty() => return self.inner.delete(key),
            Bug::FirstWriteWins if self.is_staged(key)? => return Ok(()),
            Bug::TooLongValueIsLost if value.len() > MAX_VALUE_LEN => return Ok(()),
            Bug::LongKeyIsRefused if key.len() > 1 << 16 => return Err(Self::refused("long")),
            Bug::RefusedKeyRollsBack if key.len() > LIMIT => self.inner.rollback()?,
            Bug::WritesGoThrough => self.write_through(key, Some(value))?,
            Bug::ClosedStoreTakesWrites if !self.inner.is_open() => return Ok(()),
            _ => {}
        }
        self.inner.put(key, value)
    }

    fn put_all(&self, entries: &[(&[u8], Option<&[u8]>)]) -> Result<()> {
        match self.bug {
            Bug::PutAllDeletesLast => {
                let mut entries = entries.to_vec();
                entries.sort_by_key(|(_, value)| value.is_none());
                self.inner.put_all(&entries)
            }
            Bug::PutAllStagesUpToTheKeyLimit if entries.iter().any(|(key, _)| key.len() > MAX_KEY_LEN) => {
                self.inner.put_all(entries)
            }
            Bug::PutAllStagesHalf | Bug::PutAllStagesUpToTheKeyLimit => {
                entries.iter().try_for_each(|(key, value)| match value {
                    Some(value) => self.inner.put(key, value),
                    None => self.inner.delete(key),
                })
            }
            _ => self.inner.put_all(entries),
        }
    }

    fn put_if_absent(&self, key: &[u8], value: &[u8]) -> Result<Option<Bytes>> {
        if self.bug == Bug::PutIfAbsentRaces {
            let present = self.inner.get(key)?;
            if present.is_none() {
                thread::sleep(Duration::from_micros(200));
                self.inner.put(key, value)?;
            }
            return Ok(present);
        }
        if self.bug == Bug::PutIfAbsentIgnoresTheKeyLimit && key.len() > LIMIT {
            return Ok(None);
        }
        let present = self.inner.put_if_absent(key, value)?;
        let overwrites = match self.bug {
            Bug::PutIfAbsentOverwrites => true,
            Bug::PutIfAbsentOverwritesEmpty => present.as_ref().is_some_and(Bytes::is_empty),
            _ => false,
        };
        if overwrites {
            self.inner.put(key, value)?;
        }
        Ok(present)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        match self.bug {
            Bug::DeleteOfNothingFails if !self.inner.contains_key(key)? => return Err(Self::refused("absent")),
            Bug::FirstWriteWins if self.is_staged(key)? => return Ok(()),
            Bug::DeleteIgnoresTheKeyLimit if key.len() > LIMIT => return Ok(()),
            Bug::WritesGoThrough => self.write_through(key, None)?,
            _ => {}
        }
        self.inner.delete(key)
    }

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        if self.modest {
            return Err(Error::new(ErrorKind::Unsupported, "the modest toy has no snapshots"));
        }
        let snapshot = self.inner.snapshot()?;
        if self.bug == Bug::SnapshotShowsWhatIsStaged {
            return Ok(Arc::new(OwnersView { store: Arc::clone(&self.inner), snapshot }));
        }
        if matches!(self.bug, Bug::SnapshotShowsForeignOffsets | Bug::SnapshotIsAskedForLongKeys) {
            return Backend::snapshot(&*self.backend);
        }
        Ok(snapshot)
    }
}

/// A snapshot that is none: it shows what the owner sees.
#[derive(Debug)]
struct OwnersView {
    store: Arc<dyn KeyValueStore>,
    snapshot: Arc<dyn Snapshot>,
}

impl ReadOnlyKeyValueStore for OwnersView {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.store.get_with(key, read)
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        self.store.scan(range, order)
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        self.store.approximate_num_entries()
    }
}

impl Snapshot for OwnersView {
    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.snapshot.committed_offset(partition)
    }

    fn position(&self) -> Result<Position> {
        self.snapshot.position()
    }
}
