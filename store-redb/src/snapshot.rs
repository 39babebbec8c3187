use std::sync::Arc;

use kstate_api::{Cursor, KeyRange, Offset, Order, Position, ReadOnlyKeyValueStore, Result, Snapshot, TopicPartition};

use crate::{status::Status, view::View};

/// One commit of a store, kept.
#[derive(Debug)]
pub(crate) struct RedbSnapshot {
    status: Arc<Status>,
    view: Arc<View>,
}

impl RedbSnapshot {
    pub(crate) fn new(status: Arc<Status>, view: Arc<View>) -> Self {
        Self { status, view }
    }

    /// The engine still has in memory what it answers after its file is closed.
    fn view(&self) -> Result<&View> {
        self.status.check_not_closed()?;
        Ok(&self.view)
    }
}

impl ReadOnlyKeyValueStore for RedbSnapshot {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.view()?.get_with(key, read)
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        self.view()?.scan(&self.status, range, order)
    }

    /// Exact here.
    fn approximate_num_entries(&self) -> Result<u64> {
        self.view()?.len()
    }
}

impl Snapshot for RedbSnapshot {
    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.view()?.offset(partition)
    }

    fn position(&self) -> Result<Position> {
        self.view()?.position()
    }
}
