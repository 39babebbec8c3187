use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use kstate_api::{ChangelogOffsets, Error, ErrorKind, Offset, Result, TopicPartition};
use kstate_processing::{AckSettings, AckTable, Branch, Failure, FanOut, Role};
use rdkafka::{
    ClientContext, Message, config::RDKafkaLogLevel, error::KafkaError, message::DeliveryResult,
    producer::ProducerContext, types::RDKafkaErrorCode,
};

use crate::{context, error::broker_error};

/// What depends on the delivery of a record. The client carries it along, as a number: these two, or that of a branch.
pub(crate) type Stake = usize;
/// A flush fails if it is not delivered.
pub(crate) const REQUIRED: Stake = 0;
/// Nothing.
pub(crate) const IGNORED: Stake = 1;
const FIRST_BRANCH: Stake = 2;

/// The producer's queue has room for a million records, and each group that is open has one of them at least.
const MAX_GROUPS: u32 = 1_000_001;

/// On whose behalf outputs are sent.
#[derive(Clone, Debug)]
pub(crate) enum OutputSource {
    Record(TopicPartition, Offset),
    Checkpoint,
}

impl fmt::Display for OutputSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(partition, offset) => write!(f, "record {offset} of {partition}"),
            Self::Checkpoint => f.write_str("a checkpoint"),
        }
    }
}

/// What the delivery reports said since the last flush.
pub(crate) struct Deliveries(Mutex<Tally>);

struct Tally {
    /// Records that are required and were neither delivered nor failed.
    in_flight: u64,
    acknowledged: BTreeMap<TopicPartition, Offset>,
    failure: Option<Error>,
    /// Groups of outputs of which one has to be delivered each.
    groups: AckTable<OutputSource, Arc<Error>>,
    branches: HashMap<Stake, Branch>,
    next_branch: Stake,
    ignored_failures: u64,
}

impl Tally {
    fn fail(&mut self, error: impl FnOnce() -> Error) {
        self.failure.get_or_insert_with(error);
    }

    fn answer(&mut self, stake: Stake, outcome: Result<()>) {
        let Some(branch) = self.branches.remove(&stake) else { return };
        match outcome {
            Ok(()) => self.groups.ack(branch),
            Err(error) => self.groups.fail(branch, Arc::new(error)),
        }
        while let Some(settlement) = self.groups.next_settlement() {
            let Err(failure) = settlement.outcome else { continue };
            let kind = if let Failure::Reported(error) = &failure { error.kind() } else { ErrorKind::Io };
            let what = format!("no output of {} was delivered of which one has to be: {failure}", settlement.root);
            self.fail(|| Error::new(kind, what));
        }
    }
}

impl Deliveries {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(Mutex::new(Tally {
            in_flight: 0,
            acknowledged: BTreeMap::new(),
            failure: None,
            groups: AckTable::new(AckSettings::default().with_capacity(MAX_GROUPS, 0))?,
            branches: HashMap::new(),
            next_branch: FIRST_BRANCH,
            ignored_failures: 0,
        })))
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        // Every change is a single step, so a panic elsewhere leaves the tally true.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a group of `count` outputs of `source`, of which one has to be delivered.
    pub(crate) fn open_group(&self, source: OutputSource, count: usize) -> Result<Vec<Stake>> {
        let fan_out = FanOut::new(std::iter::repeat_n(Role::AnyOf, count))?;
        let mut tally = self.tally();
        let tally = &mut *tally;
        let branches = tally.groups.open(source, &fan_out, Instant::now());
        let branches = branches.map_err(|full| Error::new(ErrorKind::Unavailable, full.to_string()))?;
        let stakes = branches.map(|branch| {
            let stake = tally.next_branch;
            tally.next_branch += 1;
            tally.branches.insert(stake, branch);
            stake
        });
        Ok(stakes.collect())
    }

    /// A record was handed over to the client.
    pub(crate) fn sent(&self, stake: Stake) {
        self.tally().in_flight += u64::from(stake == REQUIRED);
    }

    /// A record of a group was not handed over.
    pub(crate) fn not_sent(&self, stake: Stake, error: Error) {
        self.tally().answer(stake, Err(error));
    }

    /// An output that may fail was not handed over.
    pub(crate) fn ignored_failed(&self) {
        self.tally().ignored_failures += 1;
    }

    /// How many records a flush waits for; one for each group.
    pub(crate) fn in_flight(&self) -> u64 {
        let tally = self.tally();
        tally.in_flight + u64::from(tally.groups.roots())
    }

    /// Returns what was acknowledged and the first failure, and forgets them.
    pub(crate) fn reset(&self) -> (ChangelogOffsets, Option<Error>) {
        let mut tally = self.tally();
        let acknowledged = std::mem::take(&mut tally.acknowledged);
        (acknowledged.into_iter().collect(), tally.failure.take())
    }

    /// How many outputs that may fail did, and how many answers came after their group was decided.
    pub(crate) fn counted(&self) -> (u64, u64) {
        let tally = self.tally();
        (tally.ignored_failures, tally.groups.stats().late)
    }
}

impl ClientContext for Deliveries {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        context::log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        context::connection_error(&error, reason);
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = Stake;

    fn delivery(&self, result: &DeliveryResult<'_>, stake: Stake) {
        let undelivered = |error: KafkaError| broker_error("a record was not delivered", error);
        let delivered = match result {
            Ok(message) => Offset::new(message.offset())
                .map(|offset| (message, offset))
                // Acknowledged without an offset, as with `acks=0`: nobody knows where it is.
                .ok_or_else(|| undelivered(KafkaError::MessageProduction(RDKafkaErrorCode::InvalidRecord))),
            Err((error, _)) => Err(undelivered(error.clone())),
        };
        let mut tally = self.tally();
        match (stake, delivered) {
            (REQUIRED, delivered) => {
                tally.in_flight = tally.in_flight.saturating_sub(1);
                match delivered {
                    Ok((message, offset)) => {
                        let partition = TopicPartition::new(message.topic(), message.partition());
                        let highest = tally.acknowledged.entry(partition).or_insert(offset);
                        *highest = offset.max(*highest);
                    }
                    Err(error) => tally.fail(|| error),
                }
            }
            (IGNORED, delivered) => tally.ignored_failures += u64::from(delivered.is_err()),
            (stake, delivered) => tally.answer(stake, delivered.map(drop)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use super::*;

    fn unavailable(message: &str) -> Error {
        Error::new(ErrorKind::Unavailable, message)
    }

    #[test]
    fn a_flush_waits_for_each_group_until_it_is_decided() {
        let deliveries = Deliveries::new().unwrap();
        let delivered = |stake| deliveries.tally().answer(stake, Ok(()));
        let first = deliveries.open_group(OutputSource::Checkpoint, 2).unwrap();
        let second = deliveries.open_group(OutputSource::Checkpoint, 2).unwrap();
        assert_eq!(deliveries.in_flight(), 2);
        deliveries.not_sent(first[0], unavailable("down"));
        assert_eq!(deliveries.in_flight(), 2);
        delivered(second[1]);
        assert_eq!(deliveries.in_flight(), 1);
        delivered(first[1]);
        assert_eq!(deliveries.in_flight(), 0);
        assert!(deliveries.reset().1.is_none());
        deliveries.not_sent(second[0], unavailable("down"));
        assert!(deliveries.reset().1.is_none(), "the other was delivered");
        assert_eq!(deliveries.counted(), (0, 1));
        assert!(deliveries.tally().branches.is_empty());
    }

    #[test]
    fn a_group_of_which_nothing_is_delivered_fails_with_its_source_and_the_reason() {
        let deliveries = Deliveries::new().unwrap();
        let source = OutputSource::Record(TopicPartition::new("lines", 3), Offset::new(7).unwrap());
        for stake in deliveries.open_group(source, 2).unwrap() {
            assert!(deliveries.reset().1.is_none());
            deliveries.not_sent(stake, unavailable("down"));
        }
        let failure = deliveries.reset().1.unwrap();
        assert_eq!(failure.kind(), ErrorKind::Unavailable);
        assert!(failure.to_string().contains("record 7 of lines-3"), "{failure}");
        assert!(failure.to_string().contains("down"), "{failure}");
        assert_eq!(deliveries.in_flight(), 0);
    }
}
