use std::{cmp::Reverse, collections::BinaryHeap};

use kstate_api::{Cursor, CursorExt as _};

use crate::{failure::Failure, task_counts::decode_row};

/// Adds up the counts of all `cursors`, which are sorted by word, and calls `each` with every word once, in order.
/// It holds one row of each cursor, however many there are.
pub(crate) fn merge_counts(
    mut cursors: Vec<Box<dyn Cursor>>,
    each: &mut dyn FnMut(&str, u64) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut heads = BinaryHeap::new();
    for (index, cursor) in cursors.iter_mut().enumerate() {
        heads.extend(next_head(index, cursor)?);
    }
    let mut current: Option<(String, u64)> = None;
    while let Some(Reverse((word, index, count))) = heads.pop() {
        if let Some(cursor) = cursors.get_mut(index) {
            heads.extend(next_head(index, cursor)?);
        }
        match &mut current {
            Some((current_word, sum)) if *current_word == word => *sum = sum.saturating_add(count),
            _ => {
                if let Some((finished, sum)) = current.replace((word, count)) {
                    each(&finished, sum)?;
                }
            }
        }
    }
    current.map_or(Ok(()), |(word, sum)| each(&word, sum))
}

type Head = Reverse<(String, usize, u64)>;

fn next_head(index: usize, cursor: &mut Box<dyn Cursor>) -> Result<Option<Head>, Failure> {
    let Some(row) = cursor.next_row()? else { return Ok(None) };
    let (word, count) = decode_row(row)?;
    Ok(Some(Reverse((word.to_owned(), index, count))))
}

#[cfg(test)]
mod tests {
    use kstate_api::{KeyValueStore as _, ReadOnlyKeyValueStoreExt as _, StagedStore};
    use kstate_store_memory::MemoryBackend;

    use super::*;

    fn cursor(counts: &[(&str, u64)]) -> Box<dyn Cursor> {
        let store = StagedStore::open("counts", MemoryBackend::new(), &[]).unwrap();
        for (word, count) in counts {
            store.put(word.as_bytes(), &count.to_be_bytes()).unwrap();
        }
        let cursor = store.all().unwrap();
        // The cursor fails once its store is closed.
        std::mem::forget(store);
        cursor
    }

    fn merged(cursors: Vec<Box<dyn Cursor>>) -> Vec<(String, u64)> {
        let mut words = Vec::new();
        merge_counts(cursors, &mut |word, count| {
            words.push((word.to_owned(), count));
            Ok(())
        })
        .unwrap();
        words
    }

    #[test]
    fn each_word_comes_once_with_its_sum() {
        let cursors = vec![
            cursor(&[("a", 1), ("c", 3)]),
            cursor(&[]),
            cursor(&[("a", 10), ("b", 2), ("d", 4)]),
            cursor(&[("c", 30)]),
        ];
        let expected = [("a", 11), ("b", 2), ("c", 33), ("d", 4)].map(|(word, count)| (word.to_owned(), count));
        assert_eq!(merged(cursors), expected);
        assert_eq!(merged(Vec::new()), []);
    }

    #[test]
    fn a_value_that_is_no_count_is_an_error() {
        let store = StagedStore::open("counts", MemoryBackend::new(), &[]).unwrap();
        store.put(b"a", b"1").unwrap();
        assert!(merge_counts(vec![store.all().unwrap()], &mut |_, _| Ok(())).is_err());
    }
}
