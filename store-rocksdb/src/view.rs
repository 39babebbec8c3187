//! Owned handles to what the engine's binding only lends: iterators and snapshots.

use std::{ops::Bound, sync::Arc};

use kstate_api::{KeyRange, Order, Result};
use rocksdb::{DBRawIteratorWithThreadMode, ReadOptions, SnapshotWithThreadMode};
use self_cell::self_cell;

use crate::{
    engine::{self, Db, Engine},
    error,
};

/// A snapshot of the engine, and the options of reads from it.
pub(crate) struct Pinned<'e> {
    // The options point to the snapshot: first declared, first dropped.
    options: ReadOptions,
    snapshot: SnapshotWithThreadMode<'e, Db>,
}

self_cell!(
    /// A snapshot that keeps its engine open.
    pub(crate) struct PinnedEngine {
        owner: Arc<Engine>,
        #[covariant]
        dependent: Pinned,
    }
);

impl PinnedEngine {
    pub(crate) fn of(engine: Arc<Engine>) -> Self {
        Self::new(engine, |engine| {
            let snapshot = engine.db().snapshot();
            let mut options = ReadOptions::default();
            options.set_snapshot(&snapshot);
            Pinned { options, snapshot }
        })
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.borrow_owner()
    }

    pub(crate) fn options(&self) -> &ReadOptions {
        &self.borrow_dependent().options
    }
}

/// Which commit a scan shows.
pub(crate) enum Source {
    Latest(Arc<Engine>),
    Pinned(Arc<PinnedEngine>),
}

impl Source {
    fn engine(&self) -> &Engine {
        match self {
            Self::Latest(engine) => engine,
            Self::Pinned(pinned) => pinned.engine(),
        }
    }
}

/// A walk over the rows of a range.
pub(crate) struct Walk<'s> {
    rows: DBRawIteratorWithThreadMode<'s, Db>,
    order: Order,
    started: bool,
}

self_cell!(
    /// A walk that keeps its engine, and its snapshot if it has one, open.
    pub(crate) struct Rows {
        owner: Source,
        #[covariant]
        dependent: Walk,
    }
);

impl Rows {
    /// The rows of `range`; `None` if no key can lie in it.
    pub(crate) fn of(source: Source, range: &KeyRange<'_>, order: Order) -> Result<Option<Self>> {
        let Some(mut options) = bounds(range) else { return Ok(None) };
        Self::try_new(source, |source| {
            if let Source::Pinned(pinned) = source {
                options.set_snapshot(&pinned.borrow_dependent().snapshot);
            }
            let engine = source.engine();
            let rows = engine.db().raw_iterator_cf_opt(engine.data()?, options);
            Ok(Walk { rows, order, started: false })
        })
        .map(Some)
    }

    /// Steps to the next row and shows it to `show`; `false` at the end. The engine repeats an error at each further
    /// step, and so does this.
    pub(crate) fn step(&mut self, show: impl FnOnce(&[u8], &[u8])) -> Result<bool> {
        self.with_dependent_mut(|_, walk| {
            let Walk { rows, order, started } = walk;
            match (*order, std::mem::replace(started, true)) {
                (Order::Ascending, false) => rows.seek_to_first(),
                (Order::Ascending, true) => rows.next(),
                (Order::Descending, false) => rows.seek_to_last(),
                (Order::Descending, true) => rows.prev(),
            }
            if let Some((key, value)) = rows.item() {
                show(key, value);
                return Ok(true);
            }
            rows.status().map(|()| false).map_err(|error| error::engine("cannot scan the records", error))
        })
    }
}

/// The engine's bounds include the lower key and exclude the upper one. The smallest key above `key` is `key` and a
/// zero byte.
fn bounds(range: &KeyRange<'_>) -> Option<ReadOptions> {
    let after = |key: &[u8]| [key, &[0]].concat();
    let mut options = engine::total_order();
    match range.start() {
        Bound::Included([]) | Bound::Unbounded => {}
        Bound::Included(first) => options.set_iterate_lower_bound(first),
        Bound::Excluded(before) => options.set_iterate_lower_bound(after(before)),
    }
    match range.end() {
        Bound::Unbounded => {}
        Bound::Included(last) => options.set_iterate_upper_bound(after(last)),
        // Below the empty key is nothing.
        Bound::Excluded([]) => return None,
        Bound::Excluded(end) => options.set_iterate_upper_bound(end),
    }
    (!range.is_inverted()).then_some(options)
}
