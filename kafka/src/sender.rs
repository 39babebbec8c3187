use std::{
    cell::Cell,
    collections::BTreeMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use kstate_api::{ChangelogOffsets, Error, ErrorKind, Offset, Result, TopicPartition};
use kstate_checkpoint::{ChangelogRecord, SOURCE_POSITION_HEADER};
use rdkafka::{
    ClientContext, Message,
    config::RDKafkaLogLevel,
    error::KafkaError,
    message::{DeliveryResult, Header, OwnedHeaders},
    producer::{BaseProducer, BaseRecord, Producer, ProducerContext},
    types::RDKafkaErrorCode,
};

use crate::{Cluster, context, error::broker_error};

/// Delivery reports are taken in after so many records, not only at the flush: they hold the records' memory.
const RECORDS_PER_POLL: u32 = 256;

/// What a record takes beyond key, value and headers, at most: the client counts as much.
const RECORD_OVERHEAD: usize = 512;

/// An idempotent producer that knows from delivery reports alone what the brokers have (clause P2).
pub(crate) struct Sender {
    producer: BaseProducer<Deliveries>,
    timeout: Duration,
    max_record_bytes: usize,
    sent: Cell<u32>,
}

impl Sender {
    /// `own` are further properties of the producer.
    pub(crate) fn new(cluster: &Cluster, timeout: Duration, own: &[(&str, &str)]) -> Result<Self> {
        let timeout_ms = timeout.as_millis().to_string();
        let mut properties = vec![
            ("enable.idempotence", "true"),
            ("acks", "all"),
            // A record that cannot be delivered in time fails for good, so that a flush ends.
            ("message.timeout.ms", timeout_ms.as_str()),
            ("queue.buffering.max.kbytes", "32768"),
            ("queue.buffering.max.messages", "1000000"),
            ("compression.codec", "lz4"),
            // As Kafka's Java client does it: a key is in the same partition whoever writes it.
            ("partitioner", "murmur2_random"),
        ];
        properties.extend(own);
        let config = cluster.client_config(&properties);
        let producer = config.create_with_context(Deliveries::default()).map_err(|error| {
            Error::new(ErrorKind::Config, format!("cannot make a Kafka producer: {error}")).with_source(error)
        })?;
        Ok(Self { producer, timeout, max_record_bytes: cluster.max_record_bytes(), sent: Cell::new(0) })
    }

    pub(crate) fn client(&self) -> &BaseProducer<Deliveries> {
        &self.producer
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Whether a record of `bytes` in key, value and headers can be sent.
    fn check(&self, bytes: usize) -> Result<()> {
        let bytes = bytes + RECORD_OVERHEAD;
        if bytes <= self.max_record_bytes {
            return Ok(());
        }
        let message = format!("a record of {bytes} bytes; {} are allowed", self.max_record_bytes);
        Err(Error::new(ErrorKind::InvalidArgument, message))
    }

    /// Whether the record of a changelog can be sent.
    pub(crate) fn check_change(&self, record: ChangelogRecord<'_>) -> Result<()> {
        let header = record.source_position.map_or(0, |value| SOURCE_POSITION_HEADER.len() + value.len());
        self.check(record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len) + header)
    }

    /// Hands the record of a changelog over.
    pub(crate) fn send_change(&self, partition: &TopicPartition, record: ChangelogRecord<'_>) -> Result<()> {
        let mut sent = client_record(partition.topic(), Some(partition.partition()), record.key, record.value);
        if let Some(position) = record.source_position {
            sent = sent.headers(
                OwnedHeaders::new_with_capacity(1)
                    .insert(Header { key: SOURCE_POSITION_HEADER, value: Some(position) }),
            );
        }
        self.send(sent).map_err(|error| broker_error(&format!("cannot send to changelog {partition}"), error))
    }

    /// Hands an output record over: to `partition` of `topic`, or to the one of its key.
    pub(crate) fn send_output(
        &self,
        topic: &str,
        partition: Option<i32>,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
    ) -> std::result::Result<(), KafkaError> {
        self.send(client_record(topic, partition, key, value))
    }

    /// Whether an output record can be sent.
    pub(crate) fn check_output(&self, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<()> {
        self.check(key.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len))
    }

    /// Hands a record over, after a wait for room if there is none.
    pub(crate) fn send(&self, mut record: BaseRecord<'_, [u8], [u8]>) -> std::result::Result<(), KafkaError> {
        self.sent.set(self.sent.get().wrapping_add(1));
        if self.sent.get().is_multiple_of(RECORDS_PER_POLL) {
            self.producer.poll(Duration::ZERO);
        }
        let deadline = Instant::now() + self.timeout;
        loop {
            match self.producer.send(record) {
                Ok(()) => {
                    self.deliveries().sent();
                    return Ok(());
                }
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), refused))
                    if Instant::now() < deadline =>
                {
                    self.producer.poll(Duration::from_millis(1));
                    record = refused;
                }
                Err((error, _)) => return Err(error),
            }
        }
    }

    /// Waits until all that was sent since the last flush was delivered; the highest offset of each partition.
    pub(crate) fn flush(&self) -> Result<ChangelogOffsets> {
        let deadline = Instant::now() + self.timeout;
        // The client's own flush waits in steps of 100 ms.
        while self.deliveries().in_flight() > 0 {
            if Instant::now() > deadline {
                // What is still in flight may yet arrive. It is not this checkpoint's any more: the next flush waits
                // for it and may report a higher offset than that of its own records, which is true of the log.
                let message = format!("the deliveries took longer than {:?}", self.timeout);
                self.deliveries().reset();
                return Err(Error::new(ErrorKind::Unavailable, message));
            }
            self.producer.poll(Duration::from_millis(1));
        }
        let (acknowledged, failure) = self.deliveries().reset();
        match failure {
            Some(error) => Err(broker_error("a record was not delivered", error)),
            None => Ok(acknowledged),
        }
    }

    /// Takes in the delivery reports that have come, without waiting for more.
    pub(crate) fn take_reports(&self) {
        let mut before = u64::MAX;
        let mut in_flight = self.deliveries().in_flight();
        while in_flight < before {
            self.producer.poll(Duration::ZERO);
            before = std::mem::replace(&mut in_flight, self.deliveries().in_flight());
        }
    }

    /// Forgets what was delivered and what failed since the last flush.
    pub(crate) fn forget(&self) {
        self.deliveries().reset();
    }

    fn deliveries(&self) -> &Deliveries {
        self.producer.context()
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// A record as the client takes it, without headers; without a partition it goes to the one of its key.
fn client_record<'r>(
    topic: &'r str,
    partition: Option<i32>,
    key: Option<&'r [u8]>,
    value: Option<&'r [u8]>,
) -> BaseRecord<'r, [u8], [u8]> {
    let mut record = BaseRecord::to(topic);
    record.partition = partition;
    record.key = key;
    record.payload = value;
    record
}

/// What the delivery reports said since the last flush.
#[derive(Default)]
pub(crate) struct Deliveries(Mutex<Tally>);

#[derive(Default)]
struct Tally {
    in_flight: u64,
    acknowledged: BTreeMap<TopicPartition, Offset>,
    failure: Option<KafkaError>,
}

impl Deliveries {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        // Every change is a single step, so a panic elsewhere leaves the tally true.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sent(&self) {
        self.tally().in_flight += 1;
    }

    fn in_flight(&self) -> u64 {
        self.tally().in_flight
    }

    /// Returns what was acknowledged and the first failure, and forgets them.
    fn reset(&self) -> (ChangelogOffsets, Option<KafkaError>) {
        let mut tally = self.tally();
        let acknowledged = std::mem::take(&mut tally.acknowledged);
        (acknowledged.into_iter().collect(), tally.failure.take())
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
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        let mut tally = self.tally();
        tally.in_flight = tally.in_flight.saturating_sub(1);
        match result {
            Ok(message) => match Offset::new(message.offset()) {
                Some(offset) => {
                    let partition = TopicPartition::new(message.topic(), message.partition());
                    let highest = tally.acknowledged.entry(partition).or_insert(offset);
                    *highest = offset.max(*highest);
                }
                // Acknowledged without an offset, as with `acks=0`: nobody knows where it is.
                None => tally.failure = Some(KafkaError::MessageProduction(RDKafkaErrorCode::InvalidRecord)),
            },
            Err((error, _)) => tally.failure = Some(tally.failure.take().unwrap_or_else(|| error.clone())),
        }
    }
}
