//! What the tests of the executor share.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test takes what it needs, and says at the right line what fails"
)]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use kstate_api::{
    Bytes, Error, ErrorKind, KeyValueStore, Offset, ReadOnlyKeyValueStore, Result, StagedStore, TopicPartition,
};
use kstate_processing::{Effect, Executor, ExecutorSettings, Processor, RecordFailure, RetryPolicy, Sink, Source};
use kstate_store_memory::MemoryBackend;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn at(offset: i64) -> Offset {
    Offset::new(offset).unwrap()
}

pub(crate) fn partition(number: i32) -> TopicPartition {
    TopicPartition::new("source", number)
}

/// Retries at once, but not within the same poll.
pub(crate) fn quick_retries(max_attempts: u32) -> RetryPolicy {
    RetryPolicy::new(max_attempts).with_backoff(Duration::from_nanos(1), Duration::from_nanos(1))
}

/// A list that a processor and a test both see.
#[derive(Debug)]
pub(crate) struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Log<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone> Log<T> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap()
    }

    pub(crate) fn push(&self, entry: T) {
        self.lock().push(entry);
    }

    pub(crate) fn entries(&self) -> Vec<T> {
        self.lock().clone()
    }
}

pub(crate) fn memory_store() -> Arc<StagedStore<MemoryBackend>> {
    Arc::new(StagedStore::open("store", MemoryBackend::new(), &[]).unwrap())
}

/// Applies to one store, and keeps what was applied, sent and refused, in order.
#[derive(Default)]
pub(crate) struct Applied {
    pub(crate) store: Option<Arc<dyn KeyValueStore>>,
    pub(crate) offsets: Vec<(i32, i64)>,
    pub(crate) outputs: Vec<String>,
    pub(crate) dead: Vec<(i64, String)>,
    pub(crate) fails_at: Option<i64>,
}

impl Applied {
    pub(crate) fn to(store: Arc<dyn KeyValueStore>) -> Self {
        Self { store: Some(store), ..Self::default() }
    }

    fn check<R>(&self, source: &Source<'_, R>) -> Result<()> {
        if self.fails_at == Some(source.offset.get()) {
            return Err(Error::new(ErrorKind::Io, "the sink is broken"));
        }
        Ok(())
    }
}

impl<R> Sink<R, String> for Applied {
    fn apply(&mut self, source: &Source<'_, R>, effects: Vec<Effect<String>>) -> Result<()> {
        self.check(source)?;
        self.offsets.push((source.partition.partition(), source.offset.get()));
        let stores: Vec<&dyn KeyValueStore> = self.store.as_deref().into_iter().collect();
        for effect in effects {
            effect.apply(&stores, |output| {
                self.outputs.push(output);
                Ok(())
            })?;
        }
        Ok(())
    }

    fn dead_letter(&mut self, source: &Source<'_, R>, failure: &RecordFailure) -> Result<()> {
        self.check(source)?;
        self.dead.push((source.offset.get(), failure.to_string()));
        Ok(())
    }
}

pub(crate) fn executor<P: Processor>(
    settings: ExecutorSettings,
    processor: P,
    stores: Vec<Arc<dyn ReadOnlyKeyValueStore>>,
) -> Executor<P> {
    Executor::new(settings, processor, stores).unwrap()
}

/// Drives until nothing is in flight, on a clock that passes over every wait.
pub(crate) fn drive<P: Processor>(executor: &mut Executor<P>, sink: &mut dyn Sink<P::Record, P::Output>) -> Result<()> {
    let mut now = Instant::now();
    let limit = now + 30 * SECOND;
    while executor.in_flight() > 0 {
        assert!(Instant::now() < limit, "it does not end: {executor:?}");
        now = now.max(executor.next_due().unwrap_or(now));
        if executor.running() > 0 {
            let _ = executor.wait(Duration::from_millis(100));
        }
        executor.poll(now, sink)?;
    }
    Ok(())
}

pub(crate) fn rows(store: &dyn ReadOnlyKeyValueStore) -> BTreeMap<Bytes, Bytes> {
    use kstate_api::{CursorExt, ReadOnlyKeyValueStoreExt};
    store.all().unwrap().entries().map(|row| row.unwrap()).collect()
}
