use std::collections::{BTreeMap, HashMap};

use kstate_api::{Error, Offset, Result, TopicPartition};

use crate::in_order::InOrder;

/// The two ends of one changelog partition: it holds `[start, end)`.
///
/// ```
/// use kstate_api::Offset;
/// use kstate_offset_cache::LogEnds;
///
/// let ends = LogEnds { start: Offset::new(20).unwrap(), end: Offset::new(29).unwrap() };
/// assert_eq!(ends.retained(), 9);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEnds {
    /// The first offset that is still there.
    pub start: Offset,
    /// One past the last offset. Transaction markers and compacted records occupy offsets too.
    pub end: Offset,
}

impl LogEnds {
    /// How many offsets the log spans: what a restore from nothing has to pass.
    ///
    /// Never negative: the two ends may be answers of two moments, and a log may have lost its front in between.
    ///
    /// ```
    /// use kstate_api::Offset;
    /// use kstate_offset_cache::LogEnds;
    ///
    /// let emptied = Offset::new(1_000).unwrap();
    /// assert_eq!(LogEnds { start: emptied, end: emptied }.retained(), 0);
    /// ```
    #[must_use]
    pub const fn retained(self) -> u64 {
        distance(self.start, self.end)
    }
}

/// How far `to` is beyond `from`, 0 if it is not.
pub(crate) const fn distance(from: Offset, to: Offset) -> u64 {
    // Both are non-negative, so the difference cannot overflow.
    let distance = to.get() - from.get();
    if distance < 0 { 0 } else { distance.unsigned_abs() }
}

/// What was learned of the ends of many partitions' logs: for each the two ends, or why they are not known.
///
/// A partition that was not asked for, or got no answer, is one whose ends are unknown; unknown is never 0.
///
/// ```
/// use kstate_api::{Error, ErrorKind, Offset, TopicPartition};
/// use kstate_offset_cache::{AllLogEnds, LogEnds};
///
/// let (counts, gone) = (TopicPartition::new("counts", 0), TopicPartition::new("gone", 0));
/// let mut all = AllLogEnds::new();
/// all.insert(counts.clone(), Ok(LogEnds { start: Offset::ZERO, end: Offset::new(7).unwrap() }));
/// all.insert(gone.clone(), Err(Error::new(ErrorKind::Config, "there is no such topic")));
///
/// assert_eq!(all.get(&counts).map(LogEnds::retained), Some(7));
/// assert_eq!(all.get(&gone), None);
/// assert_eq!(all.errors().count(), 1);
/// ```
// By topic first: the names of thousands of partitions are few. And then in order, as a rebalance asks for them.
#[derive(Debug, Default)]
pub struct AllLogEnds {
    known: HashMap<Box<str>, BTreeMap<i32, LogEnds>>,
    errors: HashMap<TopicPartition, Error>,
}

impl AllLogEnds {
    /// Nothing learned yet.
    ///
    /// ```
    /// assert!(kstate_offset_cache::AllLogEnds::new().is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the answer for one partition, in place of an earlier one.
    ///
    /// ```
    /// use kstate_api::{Offset, TopicPartition};
    /// use kstate_offset_cache::{AllLogEnds, LogEnds};
    ///
    /// let mut all = AllLogEnds::new();
    /// all.insert(TopicPartition::new("counts", 0), Ok(LogEnds { start: Offset::ZERO, end: Offset::ZERO }));
    /// assert_eq!(all.len(), 1);
    /// ```
    pub fn insert(&mut self, partition: TopicPartition, answer: Result<LogEnds>) {
        match answer {
            Ok(ends) => {
                self.errors.remove(&partition);
                // A name is kept once, however many partitions the topic has.
                if let Some(of_topic) = self.known.get_mut(partition.topic()) {
                    of_topic.insert(partition.partition(), ends);
                } else {
                    self.known.insert(partition.topic().into(), BTreeMap::from([(partition.partition(), ends)]));
                }
            }
            Err(error) => {
                if let Some(of_topic) = self.known.get_mut(partition.topic()) {
                    of_topic.remove(&partition.partition());
                }
                self.errors.insert(partition, error);
            }
        }
    }

    /// The ends of `partition`, if they are known.
    ///
    /// ```
    /// use kstate_api::TopicPartition;
    /// use kstate_offset_cache::AllLogEnds;
    ///
    /// assert_eq!(AllLogEnds::new().get(&TopicPartition::new("counts", 0)), None);
    /// ```
    #[must_use]
    pub fn get(&self, partition: &TopicPartition) -> Option<LogEnds> {
        self.known.get(partition.topic())?.get(&partition.partition()).copied()
    }

    /// For many partitions one after the other.
    pub(crate) const fn in_order(&self) -> EndsInOrder<'_> {
        EndsInOrder { all: self, topics: Vec::new() }
    }

    /// The partitions whose ends could not be learned, and why, in no particular order.
    ///
    /// ```
    /// assert_eq!(kstate_offset_cache::AllLogEnds::new().errors().count(), 0);
    /// ```
    pub fn errors(&self) -> impl Iterator<Item = (&TopicPartition, &Error)> {
        self.errors.iter()
    }

    /// How many partitions have an answer here, errors among them.
    ///
    /// ```
    /// assert_eq!(kstate_offset_cache::AllLogEnds::new().len(), 0);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.values().map(BTreeMap::len).sum::<usize>() + self.errors.len()
    }

    /// Whether no partition has an answer here.
    ///
    /// ```
    /// assert!(kstate_offset_cache::AllLogEnds::new().is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Looks up the ends of many partitions: each topic's name once, and its partitions in their order.
pub(crate) struct EndsInOrder<'e> {
    all: &'e AllLogEnds,
    /// The topics that were asked for. A group's tasks have few.
    topics: Vec<(&'e str, InOrder<'e, i32, LogEnds>)>,
}

impl EndsInOrder<'_> {
    pub(crate) fn get(&mut self, partition: &TopicPartition) -> Option<LogEnds> {
        let found = self.topics.iter_mut().find(|(topic, _)| *topic == partition.topic());
        if let Some((_, ends)) = found {
            return ends.get(partition.partition());
        }
        let (topic, ends) = self.all.known.get_key_value(partition.topic())?;
        let entry = |(number, ends): (&i32, &LogEnds)| (*number, *ends);
        let mut ends = InOrder::new(ends.iter().map(entry), move |from| ends.range(from..).map(entry));
        let found = ends.get(partition.partition());
        self.topics.push((topic, ends));
        found
    }
}

impl FromIterator<(TopicPartition, Result<LogEnds>)> for AllLogEnds {
    fn from_iter<I: IntoIterator<Item = (TopicPartition, Result<LogEnds>)>>(answers: I) -> Self {
        let mut all = Self::new();
        for (partition, answer) in answers {
            all.insert(partition, answer);
        }
        all
    }
}

/// Learns the ends of changelogs from the brokers.
///
/// To ensure correctness, an implementation
/// - asks for many partitions at once, with as few requests as its client allows: a start must not cost a round trip
///   for each store;
/// - answers for every partition it was asked for, with its ends or with an error, and lets one partition's error
///   leave the others alone;
/// - gives the end that a restore has to reach: that of the log, not that of its last stable transaction;
/// - creates nothing: a topic that is not there is an error of its partitions.
///
/// ```
/// use kstate_api::{Offset, Result, TopicPartition};
/// use kstate_offset_cache::{AllLogEnds, LogEnds, LogEndsReader};
///
/// /// Logs that are all empty.
/// struct Empty;
///
/// impl LogEndsReader for Empty {
///     fn log_ends(&mut self, partitions: &[TopicPartition]) -> Result<AllLogEnds> {
///         let ends = LogEnds { start: Offset::ZERO, end: Offset::ZERO };
///         Ok(partitions.iter().map(|partition| (partition.clone(), Ok(ends))).collect())
///     }
/// }
///
/// let partition = TopicPartition::new("counts", 0);
/// let all = Empty.log_ends(&[partition.clone()]).unwrap();
/// assert_eq!(all.get(&partition).unwrap().retained(), 0);
/// ```
pub trait LogEndsReader {
    /// Asks for both ends of `partitions`.
    ///
    /// # Errors
    /// If nothing could be learned of any partition, `Unavailable` for one when no broker answers. What concerns one
    /// partition is in the answer.
    fn log_ends(&mut self, partitions: &[TopicPartition]) -> Result<AllLogEnds>;
}
