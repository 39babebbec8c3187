use std::sync::Arc;

use kstate_api::{
    Backend, Capabilities, Cursor, KeyRange, Offset, Order, Position, ReadOnlyKeyValueStore, Result, Snapshot,
    TopicPartition, WriteBatch,
};

use crate::{
    Faults,
    faulty_views::{FaultyCursor, FaultySnapshot},
};

/// A backend that fails as its [`Faults`] say, and otherwise does what the one below does.
///
/// ```
/// use kstate_api::{Backend, WriteBatch};
/// use kstate_conformance_tests::{Faults, FaultyBackend, StepFault};
/// use kstate_store_memory::MemoryBackend;
///
/// let faults = Faults::new();
/// let backend = FaultyBackend::new(MemoryBackend::new(), faults.clone());
/// faults.fail_next_step(StepFault::Refused);
/// assert!(backend.apply(&WriteBatch::new()).is_err());
/// assert!(backend.apply(&WriteBatch::new()).is_ok());
/// ```
#[derive(Debug)]
pub struct FaultyBackend<B> {
    backend: B,
    faults: Faults,
}

impl<B: Backend> FaultyBackend<B> {
    /// Puts `faults` before `backend`.
    ///
    /// ```
    /// # use kstate_conformance_tests::{Faults, FaultyBackend};
    /// # use kstate_store_memory::MemoryBackend;
    /// let backend = FaultyBackend::new(MemoryBackend::new(), Faults::new());
    /// ```
    pub const fn new(backend: B, faults: Faults) -> Self {
        Self { backend, faults }
    }
}

#[deny(clippy::missing_trait_methods)]
impl<B: Backend> ReadOnlyKeyValueStore for FaultyBackend<B> {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.faults.read()?;
        self.backend.get_with(key, read)
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        Ok(FaultyCursor::wrap(self.backend.scan(range, order)?, &self.faults))
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        self.backend.approximate_num_entries()
    }
}

#[deny(clippy::missing_trait_methods)]
impl<B: Backend> Backend for FaultyBackend<B> {
    fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    fn apply(&self, batch: &WriteBatch) -> Result<()> {
        self.faults.step(|| self.backend.apply(batch))
    }

    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.backend.committed_offset(partition)
    }

    fn durable_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        self.backend.durable_offset(partition)
    }

    fn position(&self) -> Result<Position> {
        self.backend.position()
    }

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        Ok(FaultySnapshot::wrap(self.backend.snapshot()?, &self.faults))
    }

    fn flush(&self) -> Result<()> {
        self.faults.flush(|| self.backend.flush())
    }

    fn wipe(&self) -> Result<()> {
        self.faults.step(|| self.backend.wipe())
    }

    fn close(&self) -> Result<()> {
        self.backend.close()
    }
}
