use std::collections::BTreeMap;

use crate::{
    failure::Failure,
    plain_count::PlainCount,
    protocol::{Event, TaskCommitted, TaskRestored},
    top_words::{TopWords, WordCount},
};

/// Gathers what the counting side tells.
#[derive(Debug)]
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

/// The plain count, from which the words told are taken out.
#[derive(Debug)]
struct Check {
    plain_count: PlainCount,
    words: u64,
    distinct: u64,
    difference: Option<(String, u64, u64)>,
}

impl Outcome {
    /// Keeps the `top` most frequent words, 0 for all.
    pub(crate) fn new(top: usize) -> Self {
        Self { top: TopWords::new(top), check: None, totals: Totals::default(), finished: false }
    }

    /// Compares the counts to come with `plain_count`.
    pub(crate) fn check_with(&mut self, plain_count: PlainCount) {
        let (words, distinct) = (plain_count.words(), plain_count.distinct());
        self.check = Some(Check { plain_count, words, distinct, difference: None });
    }

    /// Takes in what was told.
    pub(crate) fn hear(&mut self, event: Event) -> Result<(), Failure> {
        match event {
            Event::Restored(tasks) => {
                self.totals.restored_records += tasks.iter().map(|task: &TaskRestored| task.applied).sum::<u64>();
            }
            Event::Counting => {}
            Event::Checkpoint(tasks) => {
                self.totals.checkpoints += 1;
                self.totals.committed.extend(tasks.into_iter().map(|task| (task.task.clone(), task)));
            }
            Event::Counts(counts) => counts.into_iter().for_each(|(word, count)| self.count(&word, count)),
            Event::Finished => self.finished = true,
            Event::Failed(sentence) => return Err(Failure::Child(sentence)),
        }
        Ok(())
    }

    fn count(&mut self, word: &str, count: u64) {
        self.totals.words += count;
        self.totals.distinct += 1;
        self.top.push(word, count);
        if let Some(check) = &mut self.check {
            let plain = check.plain_count.take(word).unwrap_or_default();
            if plain != count && check.difference.is_none() {
                check.difference = Some((word.to_owned(), count, plain));
            }
        }
    }

    /// Whether everything was told.
    pub(crate) const fn is_finished(&self) -> bool {
        self.finished
    }

    /// The most frequent words and the totals.
    pub(crate) fn into_result(mut self) -> (Vec<WordCount>, Totals) {
        if let Some(check) = self.check {
            let missing = check.plain_count.any().map(|(word, plain)| (word.to_owned(), 0, plain));
            self.totals.plain = Some((check.words, check.distinct));
            self.totals.difference = check.difference.or(missing);
        }
        (self.top.into_sorted(), self.totals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(counts: &[(&str, u64)]) -> Totals {
        let mut plain_count = PlainCount::default();
        plain_count.push("a b a");
        plain_count.finish();
        let mut outcome = Outcome::new(1);
        outcome.check_with(plain_count);
        let counts = counts.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect();
        outcome.hear(Event::Counts(counts)).unwrap();
        outcome.hear(Event::Finished).unwrap();
        assert!(outcome.is_finished());
        outcome.into_result().1
    }

    #[test]
    fn every_word_is_compared() {
        let same = checked(&[("a", 2), ("b", 1)]);
        assert_eq!((same.words, same.distinct, same.plain, same.difference), (3, 2, Some((3, 2)), None));
        // Totals may agree where words do not.
        assert_eq!(checked(&[("a", 1), ("b", 2)]).difference, Some(("a".into(), 1, 2)));
        assert_eq!(checked(&[("a", 2)]).difference, Some(("b".into(), 0, 1)));
        assert_eq!(checked(&[("a", 2), ("b", 1), ("c", 1)]).difference, Some(("c".into(), 1, 0)));
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
