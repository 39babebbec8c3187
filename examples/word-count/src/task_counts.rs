use std::{collections::HashMap, str, sync::Arc};

use kstate_api::{Cursor, CursorExt as _, Error, ErrorKind, KeyValueStore, ReadOnlyKeyValueStoreExt as _, Snapshot};
use kstate_kafka::app::{ProcessingResult, Processor, SourceRecord, TaskContext};

use crate::{failure::Failure, merge::SortedCounts, stores::STORE, tally::Tally, words::words};

/// How many different words are gathered before they go to the store.
const MAX_GATHERED: usize = 16 << 10;

/// Counts the words of one task: they are gathered in a map and added to the store a batch at a time, so that the store
/// is read and written once for a word that comes again and again.
#[derive(Debug)]
pub(crate) struct TaskCounts {
    gathered: HashMap<Box<str>, u64>,
    tally: Arc<Tally>,
}

impl Processor for TaskCounts {
    fn process(&mut self, record: &SourceRecord<'_>, context: &TaskContext<'_>) -> ProcessingResult {
        self.gather(&String::from_utf8_lossy(record.value().unwrap_or_default()));
        if self.gathered.len() >= MAX_GATHERED {
            self.stage(context.store(STORE)?)?;
        }
        self.tally.counted(context.task(), record.offset());
        Ok(())
    }

    fn before_checkpoint(&mut self, context: &TaskContext<'_>) -> ProcessingResult {
        Ok(self.stage(context.store(STORE)?)?)
    }
}

impl TaskCounts {
    /// Notes in `tally` how far it is.
    pub(crate) fn new(tally: Arc<Tally>) -> Self {
        Self { gathered: HashMap::new(), tally }
    }

    fn gather(&mut self, text: &str) {
        for word in words(text) {
            match self.gathered.get_mut(&*word) {
                Some(count) => *count += 1,
                None => {
                    self.gathered.insert(word.into(), 1);
                }
            }
        }
    }

    /// Adds what is gathered to `store`.
    fn stage(&mut self, store: &dyn KeyValueStore) -> kstate_api::Result<()> {
        // In the order in which a store keeps them, its reads and writes lie side by side.
        let mut gathered = self.gathered.drain().collect::<Vec<_>>();
        gathered.sort_unstable();
        for (word, times) in gathered {
            let mut before = Ok(0);
            store.get_with(word.as_bytes(), &mut |value| before = decode_count(value))?;
            store.put(word.as_bytes(), &before?.saturating_add(times).to_be_bytes())?;
        }
        Ok(())
    }
}

/// The counts that one store has committed, in the order of the words.
pub(crate) struct StoreCounts(Box<dyn Cursor>);

impl StoreCounts {
    pub(crate) fn new(snapshot: &dyn Snapshot) -> kstate_api::Result<Self> {
        snapshot.all().map(Self)
    }
}

impl SortedCounts for StoreCounts {
    fn next_count(&mut self) -> Result<Option<(String, u64)>, Failure> {
        let Some((key, value)) = self.0.next_row()? else { return Ok(None) };
        let word =
            str::from_utf8(key).map_err(|error| damaged("a word in the store is not UTF-8").with_source(error))?;
        Ok(Some((word.to_owned(), decode_count(value)?)))
    }
}

fn decode_count(value: &[u8]) -> kstate_api::Result<u64> {
    let bytes = value.try_into().map_err(|_| damaged("a count in the store has not 8 bytes"))?;
    Ok(u64::from_be_bytes(bytes))
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Corrupted, what)
}

#[cfg(test)]
mod tests {
    use kstate_api::{ChangelogOffsets, StagedStore, StateStore as _};
    use kstate_store_memory::MemoryBackend;

    use super::*;
    use crate::{job::Names, merge::tests::collect};

    fn store() -> StagedStore<MemoryBackend> {
        StagedStore::open("counts", MemoryBackend::new(), &[]).unwrap()
    }

    fn counts() -> TaskCounts {
        TaskCounts::new(Arc::new(Tally::new(Names::of_run(0))))
    }

    #[test]
    fn counts_add_up_over_stages() {
        let (store, mut counts) = (store(), counts());
        counts.gather("A a b");
        assert_eq!(store.get(b"a").unwrap(), None);
        counts.stage(&store).unwrap();
        counts.gather("b a");
        counts.stage(&store).unwrap();
        counts.stage(&store).unwrap();
        assert_eq!(collect(&mut StoreCounts::new(&*store.snapshot().unwrap()).unwrap()), []);
        store.commit(&ChangelogOffsets::new()).unwrap();
        let rows = collect(&mut StoreCounts::new(&*store.snapshot().unwrap()).unwrap());
        assert_eq!(rows, [("a".to_owned(), 3), ("b".to_owned(), 2)]);
    }

    #[test]
    fn a_damaged_count_is_an_error_and_not_zero() {
        let (store, mut counts) = (store(), counts());
        store.put(b"a", b"").unwrap();
        store.commit(&ChangelogOffsets::new()).unwrap();
        counts.gather("a");
        assert_eq!(counts.stage(&store).unwrap_err().kind(), ErrorKind::Corrupted);
        assert!(StoreCounts::new(&*store.snapshot().unwrap()).unwrap().next_count().is_err());
    }
}
