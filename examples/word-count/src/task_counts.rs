use std::{collections::HashMap, str, sync::Arc};

use kstate_api::{
    Cursor, CursorExt as _, Error, ErrorKind, KeyValueStore, ReadOnlyKeyValueStore as _, ReadOnlyKeyValueStoreExt as _,
};

use crate::{failure::Failure, merge::SortedCounts, words::words};

/// How many different words are gathered before they go to the store.
const MAX_GATHERED: usize = 16 << 10;

/// The counts of one task: words are gathered in a map and added to the store a batch at a time, so that the store is
/// read and written once for a word that comes again and again.
#[derive(Debug)]
pub(crate) struct TaskCounts {
    store: Arc<dyn KeyValueStore>,
    gathered: HashMap<Box<str>, u64>,
}

impl TaskCounts {
    pub(crate) fn new(store: Arc<dyn KeyValueStore>) -> Self {
        Self { store, gathered: HashMap::new() }
    }

    /// Counts the words of `text`.
    pub(crate) fn count(&mut self, text: &str) -> kstate_api::Result<()> {
        for word in words(text) {
            match self.gathered.get_mut(&*word) {
                Some(count) => *count += 1,
                None => {
                    self.gathered.insert(word.into(), 1);
                }
            }
        }
        if self.gathered.len() >= MAX_GATHERED { self.stage() } else { Ok(()) }
    }

    /// Adds what is gathered to the store; a checkpoint comes after it.
    pub(crate) fn stage(&mut self) -> kstate_api::Result<()> {
        // In the order in which a store keeps them, its reads and writes lie side by side.
        let mut gathered = self.gathered.drain().collect::<Vec<_>>();
        gathered.sort_unstable();
        for (word, times) in gathered {
            let mut before = Ok(0);
            self.store.get_with(word.as_bytes(), &mut |value| before = decode_count(value))?;
            self.store.put(word.as_bytes(), &before?.saturating_add(times).to_be_bytes())?;
        }
        Ok(())
    }

    /// The counts of the store.
    pub(crate) fn counts(&self) -> kstate_api::Result<StoreCounts> {
        self.store.all().map(StoreCounts)
    }

    pub(crate) fn store(&self) -> &dyn KeyValueStore {
        &*self.store
    }
}

/// The counts of one store, in the order of the words.
pub(crate) struct StoreCounts(Box<dyn Cursor>);

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
    use kstate_api::StagedStore;
    use kstate_store_memory::MemoryBackend;

    use super::*;
    use crate::merge::tests::collect;

    #[test]
    fn counts_add_up_over_stages() {
        let store = StagedStore::open("counts", MemoryBackend::new(), &[]).unwrap();
        let mut counts = TaskCounts::new(Arc::new(store));
        counts.count("A a b").unwrap();
        assert_eq!(counts.store().get(b"a").unwrap(), None);
        counts.stage().unwrap();
        counts.count("b a").unwrap();
        counts.stage().unwrap();
        counts.stage().unwrap();
        let rows = collect(&mut counts.counts().unwrap());
        assert_eq!(rows, [("a".to_owned(), 3), ("b".to_owned(), 2)]);
    }

    #[test]
    fn many_words_are_staged_without_being_asked() {
        let store = StagedStore::open("counts", MemoryBackend::new(), &[]).unwrap();
        let mut counts = TaskCounts::new(Arc::new(store));
        let text = (0..MAX_GATHERED).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        counts.count(&text).unwrap();
        assert!(counts.store().uncommitted_bytes() > 0);
        assert!(counts.gathered.is_empty());
    }

    #[test]
    fn a_damaged_count_is_an_error_and_not_zero() {
        let store = StagedStore::open("counts", MemoryBackend::new(), &[]).unwrap();
        store.put(b"a", b"").unwrap();
        let mut counts = TaskCounts::new(Arc::new(store));
        counts.count("a").unwrap();
        assert_eq!(counts.stage().unwrap_err().kind(), ErrorKind::Corrupted);
        assert!(counts.counts().unwrap().next_count().is_err());
    }
}
