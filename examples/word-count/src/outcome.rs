use std::collections::BTreeMap;

use crate::{
    failure::Failure,
    merge::{MergedCounts, SortedCounts as _},
    plain_count::PlainCount,
    protocol::{Event, TaskCommitted},
    top_words::{TopWords, WordCount},
};

/// Gathers what the counting side tells.
pub(crate) struct Outcome {
    top: TopWords,
    check: Option<Check>,
    totals: Totals,
    finished: bool,
}

/// What came of the counting, words apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) words: u64,
    pub(crate) distinct: u64,
    pub(crate) checkpoints: u64,
    pub(crate) restored_records: u64,
    /// What the last checkpoint committed.
    pub(crate) committed: BTreeMap<String, TaskCommitted>,
    /// Of the plain count, if there was one: words, and different words.
    pub(crate) plain: Option<(u64, u64)>,
    /// The first word whose counts differ, with its count on Kafka and its plain count.
    pub(crate) difference: Option<(String, u64, u64)>,
}

/// The plain count, which is compared with the counts told.
struct Check {
    counts: MergedCounts,
    /// The next word of it.
    next: Option<(String, u64)>,
    words: u64,
    distinct: u64,
    difference: Option<(String, u64, u64)>,
}

impl Check {
    /// Compares the next word told with the plain count; both come in order.
    fn compare(&mut self, word: &str, counted: u64) -> Result<(), Failure> {
        while let Some((missed, plain)) = self.next.take_if(|(next, _)| next.as_str() < word) {
            self.differ(&missed, 0, plain);
            self.advance()?;
        }
        let Some((_, plain)) = self.next.take_if(|(next, _)| next == word) else {
            self.differ(word, counted, 0);
            return Ok(());
        };
        if plain != counted {
            self.differ(word, counted, plain);
        }
        self.advance()
    }

    /// Compares what is left of the plain count with nothing.
    fn finish(&mut self) -> Result<(), Failure> {
        while let Some((missed, plain)) = self.next.take() {
            self.differ(&missed, 0, plain);
            self.advance()?;
        }
        Ok(())
    }

    fn advance(&mut self) -> Result<(), Failure> {
        self.next = self.counts.next_count()?;
        self.distinct += u64::from(self.next.is_some());
        Ok(())
    }

    fn differ(&mut self, word: &str, counted: u64, plain: u64) {
        self.difference.get_or_insert_with(|| (word.to_owned(), counted, plain));
    }
}

impl Outcome {
    /// Keeps the `top` most frequent words, 0 for all.
    pub(crate) fn new(top: usize) -> Self {
        Self { top: TopWords::new(top), check: None, totals: Totals::default(), finished: false }
    }

    /// Compares the counts to come, which have to come in order, with `plain_count`.
    pub(crate) fn check_with(&mut self, plain_count: PlainCount) -> Result<(), Failure> {
        let (words, counts) = plain_count.finish()?;
        let mut check = Check { counts, next: None, words, distinct: 0, difference: None };
        check.advance()?;
        self.check = Some(check);
        Ok(())
    }

    /// Takes in what was told.
    pub(crate) fn hear(&mut self, event: Event) -> Result<(), Failure> {
        match event {
            Event::Restored(task) => self.totals.restored_records += task.applied,
            Event::Running(_) | Event::Closed(_) | Event::Copied(_) | Event::Counting | Event::Left => {}
            Event::Checkpoint(tasks) => {
                self.totals.checkpoints += 1;
                self.totals.committed.extend(tasks.into_iter().map(|task| (task.task.clone(), task)));
            }
            Event::Counts(counts) => counts.iter().try_for_each(|(word, count)| self.count(word, *count))?,
            Event::Finished => {
                self.finished = true;
                if let Some(check) = &mut self.check {
                    check.finish()?;
                }
            }
            Event::Failed(sentence) => return Err(Failure::Child(sentence)),
        }
        Ok(())
    }

    fn count(&mut self, word: &str, count: u64) -> Result<(), Failure> {
        self.totals.words += count;
        self.totals.distinct += 1;
        self.top.push(word, count);
        self.check.as_mut().map_or(Ok(()), |check| check.compare(word, count))
    }

    /// Whether everything was told.
    pub(crate) const fn is_finished(&self) -> bool {
        self.finished
    }

    /// The most frequent words and the totals.
    pub(crate) fn into_result(mut self) -> (Vec<WordCount>, Totals) {
        if let Some(check) = self.check {
            self.totals.plain = Some((check.words, check.distinct));
            self.totals.difference = check.difference;
        }
        (self.top.into_sorted(), self.totals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(counts: &[(&str, u64)]) -> Totals {
        let mut plain_count = PlainCount::default();
        plain_count.push("b d b").unwrap();
        let mut outcome = Outcome::new(1);
        outcome.check_with(plain_count).unwrap();
        let counts = counts.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect();
        outcome.hear(Event::Counts(counts)).unwrap();
        outcome.hear(Event::Finished).unwrap();
        assert!(outcome.is_finished());
        outcome.into_result().1
    }

    #[test]
    fn every_word_is_compared() {
        let same = checked(&[("b", 2), ("d", 1)]);
        assert_eq!((same.words, same.distinct, same.plain, same.difference), (3, 2, Some((3, 2)), None));
        // Totals may agree where words do not.
        assert_eq!(checked(&[("b", 1), ("d", 2)]).difference, Some(("b".into(), 1, 2)));
        assert_eq!(checked(&[("b", 2)]).difference, Some(("d".into(), 0, 1)));
        assert_eq!(checked(&[("d", 1)]).difference, Some(("b".into(), 0, 2)));
        assert_eq!(checked(&[]).plain, Some((3, 2)));
        for additional in ["a", "c", "e"] {
            let mut counts = vec![("b", 2), ("d", 1), (additional, 1)];
            counts.sort_unstable();
            assert_eq!(checked(&counts).difference, Some((additional.into(), 1, 0)));
        }
    }

    #[test]
    fn the_last_checkpoint_of_each_task_is_kept() {
        let committed =
            |task: &str, source_next| TaskCommitted { task: task.into(), source_next, changelog_offset: None };
        let mut outcome = Outcome::new(0);
        outcome.hear(Event::Checkpoint(vec![committed("0_0", 1), committed("0_1", 1)])).unwrap();
        outcome.hear(Event::Checkpoint(vec![committed("0_1", 5)])).unwrap();
        let totals = outcome.into_result().1;
        assert_eq!(totals.checkpoints, 2);
        assert_eq!(totals.committed.into_values().collect::<Vec<_>>(), [committed("0_0", 1), committed("0_1", 5)]);
    }

    #[test]
    fn a_failure_is_one() {
        let failure = Outcome::new(0).hear(Event::Failed("no room".into())).unwrap_err();
        assert_eq!(failure.to_string(), "no room");
    }
}
