use std::{fmt, sync::Arc};

use kstate_api::{Cursor, KeyRange, Offset, Order, Position, ReadOnlyKeyValueStore, Result, Snapshot, TopicPartition};

use crate::{
    cursor::RocksDbCursor,
    engine::Engine,
    registry::{Lease, Registry},
    view::{PinnedEngine, Source},
};

/// One commit of a store, records and bookkeeping at the same sequence number, until the store is closed.
pub(crate) struct RocksDbSnapshot(Lease<Arc<PinnedEngine>>);

impl RocksDbSnapshot {
    pub(crate) fn new(registry: &Arc<Registry>, engine: Arc<Engine>) -> Result<Self> {
        Lease::new(registry, Arc::new(PinnedEngine::of(engine))).map(Self)
    }
}

impl ReadOnlyKeyValueStore for RocksDbSnapshot {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.0.read(|pinned| pinned.engine().get_with(key, pinned.options(), read))
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        self.0.read(|pinned| RocksDbCursor::over(self.0.registry(), Source::Pinned(Arc::clone(pinned)), range, order))
    }

    /// An estimate of the store as it is now; the engine has none of a snapshot.
    fn approximate_num_entries(&self) -> Result<u64> {
        self.0.read(|pinned| pinned.engine().approximate_num_entries())
    }
}

impl Snapshot for RocksDbSnapshot {
    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.0.read(|pinned| pinned.engine().offset(partition, pinned.options()))
    }

    fn position(&self) -> Result<Position> {
        self.0.read(|pinned| pinned.engine().position(pinned.options()))
    }
}

impl fmt::Debug for RocksDbSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RocksDbSnapshot").field(&self.0).finish()
    }
}
