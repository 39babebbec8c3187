//! A broker of one changelog partition and one source partition, in memory, whose every step can be made to fail.

#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::{cell::RefCell, rc::Rc, sync::Arc, time::Duration};

use kstate_api::{
    Bytes, ChangelogOffsets, CursorExt, Error, ErrorKind, KeyValueStore, Offset, Position, ReadOnlyKeyValueStoreExt,
    Result, TaskId, TopicPartition,
};
use kstate_checkpoint::{
    ChangelogReader, ChangelogRecord, ChangelogWriter, LogBounds, LoggedStore, RestoreOptions, Restored,
    SourceCommitter, Task, encode_source_position, restore,
};

/// A slot of the log: a record, or an offset that no record will ever come from (marker, compacted, aborted).
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Slot {
    Record { key: Option<Vec<u8>>, value: Option<Vec<u8>>, header: Option<Vec<u8>> },
    Gap,
}

/// Which step of the broker fails next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Append,
    Delivery,
    SourceCommit,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) log: Vec<Slot>,
    pub(crate) start: usize,
    pub(crate) committed: Position,
    pub(crate) fault: Option<Fault>,
    pub(crate) max_record_bytes: usize,
    /// The order in which things happened.
    pub(crate) steps: Vec<&'static str>,
    pending: usize,
    reading: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Broker(pub(crate) Rc<RefCell<State>>);

pub(crate) fn changelog() -> TopicPartition {
    TopicPartition::new("counts-changelog", 0)
}

pub(crate) fn source() -> TopicPartition {
    TopicPartition::new("lines", 0)
}

pub(crate) fn offset(value: i64) -> Offset {
    Offset::new(value).unwrap()
}

/// The offset of the slot `index`.
pub(crate) fn offset_of(index: usize) -> Offset {
    offset(i64::try_from(index).unwrap())
}

pub(crate) fn position(next: i64) -> Position {
    [(source(), offset(next))].into_iter().collect()
}

pub(crate) fn rows(store: &Arc<dyn KeyValueStore>) -> Vec<(String, String)> {
    let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    store.all().unwrap().entries().map(|row| row.unwrap()).map(|(key, value)| (text(key), text(value))).collect()
}

pub(crate) fn row(key: &str, value: &str) -> (String, String) {
    (key.into(), value.into())
}

pub(crate) fn task(store: &Arc<dyn KeyValueStore>) -> Task {
    Task::new(TaskId::new(0, 0), vec![source()], vec![logged(store)])
}

pub(crate) fn logged(store: &Arc<dyn KeyValueStore>) -> LoggedStore {
    LoggedStore::new(Arc::clone(store) as _, changelog()).unwrap()
}

pub(crate) fn record(key: &str, value: Option<&str>) -> Slot {
    Slot::Record { key: Some(key.into()), value: value.map(Into::into), header: None }
}

/// A record of a checkpoint that was to commit `next` as the source's position.
pub(crate) fn record_of(key: &str, value: Option<&str>, next: i64) -> Slot {
    let header = encode_source_position(&position(next)).unwrap();
    Slot::Record { key: Some(key.into()), value: value.map(Into::into), header: Some(header) }
}

impl Broker {
    pub(crate) fn new(log: Vec<Slot>) -> Self {
        Self(Rc::new(RefCell::new(State { log, max_record_bytes: 1 << 20, ..State::default() })))
    }

    pub(crate) fn restore(&self, store: &Arc<dyn KeyValueStore>, options: &RestoreOptions) -> Result<Restored> {
        let committed = self.0.borrow().committed.clone();
        restore(&logged(store), &committed, &mut self.clone(), options, &mut |_| {})
    }

    pub(crate) fn checkpoint(&self, store: &Arc<dyn KeyValueStore>, position: &Position) -> Result<()> {
        let (mut writer, mut source) = (self.clone(), self.clone());
        kstate_checkpoint::checkpoint(&[task(store)], position, &mut writer, &mut source).map(drop)
    }

    fn fails(&self, fault: Fault) -> bool {
        let mut state = self.0.borrow_mut();
        let fails = state.fault == Some(fault);
        if fails {
            state.fault = None;
        }
        fails
    }
}

impl ChangelogWriter for Broker {
    fn check(&self, record: ChangelogRecord<'_>) -> Result<()> {
        if record.value.map_or(0, <[u8]>::len) > self.0.borrow().max_record_bytes {
            return Err(Error::new(ErrorKind::InvalidArgument, "the record is too large"));
        }
        Ok(())
    }

    fn append(&mut self, _: &TopicPartition, record: ChangelogRecord<'_>) -> Result<()> {
        if self.fails(Fault::Append) {
            return Err(Error::new(ErrorKind::Unavailable, "no room"));
        }
        self.check(record)?;
        let mut state = self.0.borrow_mut();
        state.log.push(Slot::Record {
            key: record.key.map(Into::into),
            value: record.value.map(Into::into),
            header: record.source_position.map(Into::into),
        });
        state.pending += 1;
        state.steps.push("append");
        Ok(())
    }

    fn flush(&mut self) -> Result<ChangelogOffsets> {
        let fails = self.fails(Fault::Delivery);
        let mut state = self.0.borrow_mut();
        let pending = std::mem::take(&mut state.pending);
        if fails {
            // The last record is refused for good, after the others arrived.
            state.log.pop();
            return Err(Error::new(ErrorKind::Io, "a record was not delivered"));
        }
        state.steps.push("flush");
        let last = (pending > 0).then(|| offset_of(state.log.len() - 1));
        Ok(last.map(|last| (changelog(), last)).into_iter().collect())
    }
}

impl SourceCommitter for Broker {
    fn commit(&mut self, position: &Position) -> Result<()> {
        if self.fails(Fault::SourceCommit) {
            return Err(Error::new(ErrorKind::Unavailable, "the coordinator is away"));
        }
        let mut state = self.0.borrow_mut();
        state.committed.merge(position);
        state.steps.push("source commit");
        Ok(())
    }
}

impl ChangelogReader for Broker {
    fn bounds(&mut self, _: &TopicPartition) -> Result<LogBounds> {
        let state = self.0.borrow();
        Ok(LogBounds { start: offset_of(state.start), end: offset_of(state.log.len()) })
    }

    fn seek(&mut self, _: &TopicPartition, next: Offset) -> Result<()> {
        let mut state = self.0.borrow_mut();
        state.reading = usize::try_from(next.get()).unwrap();
        assert!(state.reading >= state.start, "read below the start of the log");
        Ok(())
    }

    fn poll(&mut self, _: Duration, read: &mut dyn FnMut(Offset, ChangelogRecord<'_>)) -> Result<bool> {
        let mut state = self.0.borrow_mut();
        while let Some(slot) = state.log.get(state.reading).cloned() {
            state.reading += 1;
            if let Slot::Record { key, value, header } = slot {
                let record = ChangelogRecord {
                    key: key.as_deref(),
                    value: value.as_deref(),
                    source_position: header.as_deref(),
                };
                read(offset_of(state.reading - 1), record);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn position(&mut self) -> Result<Offset> {
        Ok(offset_of(self.0.borrow().reading))
    }
}
