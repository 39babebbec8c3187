use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use imbl::OrdSet;
use kstate_api::{ChangelogOffsets, Error, ErrorKind, Position, Result, WriteBatch};
use parking_lot::{Mutex, RwLock};

use crate::row::Row;

/// The rows of one state. Cloning it takes constant time.
pub(crate) type Rows = OrdSet<Row>;

/// What one commit left: never changed once readers can see it.
#[derive(Clone, Default)]
pub(crate) struct State {
    pub(crate) rows: Rows,
    pub(crate) offsets: ChangelogOffsets,
    pub(crate) position: Position,
}

impl State {
    /// This state after `batch`.
    fn after(&self, batch: &WriteBatch) -> Self {
        let mut next = self.clone();
        if batch.forgets_offsets() {
            next.offsets = ChangelogOffsets::new();
            next.position = Position::new();
        }
        for (key, value) in batch.records() {
            match value {
                Some(value) => {
                    next.rows.insert(Row::new(key, value));
                }
                None => {
                    next.rows.remove(key);
                }
            }
        }
        next.offsets.extend(batch.offsets().iter().map(|(partition, offset)| (partition.clone(), offset)));
        next.position.merge(batch.position());
        next
    }
}

/// The current state of a store, and whether the store is open.
#[derive(Default)]
pub(crate) struct Shared {
    state: RwLock<Arc<State>>,
    /// Commits take turns: each builds on the one before.
    writer: Mutex<()>,
    closed: AtomicBool,
}

impl Shared {
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        if self.is_closed() { Err(Error::new(ErrorKind::Closed, "the store is closed")) } else { Ok(()) }
    }

    /// The last commit.
    pub(crate) fn current(&self) -> Result<Arc<State>> {
        let state = Arc::clone(&self.state.read());
        // Asked last: `close` empties the state after it says so, and that emptiness is no answer.
        self.check_open()?;
        Ok(state)
    }

    pub(crate) fn apply(&self, batch: &WriteBatch) -> Result<()> {
        self.replace(|current| current.after(batch))
    }

    pub(crate) fn wipe(&self) -> Result<()> {
        self.replace(|_| State::default())
    }

    fn replace(&self, next: impl FnOnce(&State) -> State) -> Result<()> {
        let _turn = self.writer.lock();
        let next = Arc::new(next(&*self.current()?));
        let previous = std::mem::replace(&mut *self.state.write(), next);
        // Freed outside the lock: it may be the last handle to many rows.
        drop(previous);
        Ok(())
    }

    pub(crate) fn close(&self) {
        let _turn = self.writer.lock();
        self.closed.store(true, Ordering::Release);
        let last = std::mem::take(&mut *self.state.write());
        drop(last);
    }
}
