use std::{
    cell::Cell,
    fmt,
    time::{Duration, Instant},
};

use kstate_api::{ChangelogOffsets, Error, ErrorKind, Result, TopicPartition};
use kstate_checkpoint::{ChangelogRecord, SOURCE_POSITION_HEADER};
use rdkafka::{
    error::KafkaError,
    message::{Header, OwnedHeaders},
    producer::{BaseProducer, BaseRecord, Producer},
    types::RDKafkaErrorCode,
};

use crate::{
    Cluster,
    deliveries::{Deliveries, IGNORED, OutputSource, REQUIRED, Stake},
    error::broker_error,
};

/// Delivery reports are taken in after so many records, not only at the flush: they hold the records' memory.
const RECORDS_PER_POLL: u32 = 256;

/// What a record takes beyond key, value and headers, at most: the client counts as much.
const RECORD_OVERHEAD: usize = 512;

/// A record that an application sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output<'r> {
    pub(crate) topic: &'r str,
    /// Without one it goes to the partition of its key.
    pub(crate) partition: Option<i32>,
    pub(crate) key: Option<&'r [u8]>,
    pub(crate) value: Option<&'r [u8]>,
}

type ClientRecord<'r> = BaseRecord<'r, [u8], [u8], Stake>;

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
        let producer = config.create_with_context(Deliveries::new()?).map_err(|error| {
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
        let ChangelogRecord { key, value, .. } = record;
        let change = Output { topic: partition.topic(), partition: Some(partition.partition()), key, value };
        let mut sent = client_record(&change, REQUIRED);
        if let Some(position) = record.source_position {
            sent = sent.headers(
                OwnedHeaders::new_with_capacity(1)
                    .insert(Header { key: SOURCE_POSITION_HEADER, value: Some(position) }),
            );
        }
        self.send(sent).map_err(|error| broker_error(&format!("cannot send to changelog {partition}"), error))
    }

    /// Hands an output over; a flush fails unless it is delivered.
    pub(crate) fn send_output(&self, output: &Output<'_>) -> std::result::Result<(), KafkaError> {
        self.send(client_record(output, REQUIRED))
    }

    /// Hands an output over for which nobody waits, not for room either. Whether it is delivered makes no difference.
    pub(crate) fn send_ignored(&self, output: &Output<'_>) {
        if let Err(error) = self.check_output(output).and_then(|()| self.sent(output, IGNORED)) {
            tracing::debug!(topic = output.topic, %error, "an output that may fail was not sent");
            self.deliveries().ignored_failed();
        }
    }

    /// Hands the outputs of one record over of which one has to be delivered: else a flush fails, with the last reason.
    pub(crate) fn send_any_of(&self, source: OutputSource, outputs: &[Output<'_>]) -> Result<()> {
        let stakes = self.deliveries().open_group(source, outputs.len())?;
        for (output, stake) in outputs.iter().zip(stakes) {
            let sent = self.check_output(output).and_then(|()| self.sent(output, stake));
            sent.unwrap_or_else(|error| self.deliveries().not_sent(stake, error));
        }
        Ok(())
    }

    fn sent(&self, output: &Output<'_>, stake: Stake) -> Result<()> {
        let sent = self.send(client_record(output, stake));
        sent.map_err(|error| broker_error(&format!("cannot send to {}", output.topic), error))
    }

    /// Whether an output can be sent.
    pub(crate) fn check_output(&self, output: &Output<'_>) -> Result<()> {
        self.check(output.key.map_or(0, <[u8]>::len) + output.value.map_or(0, <[u8]>::len))
    }

    /// Hands a record over, after a wait for room if there is none.
    fn send(&self, mut record: ClientRecord<'_>) -> std::result::Result<(), KafkaError> {
        self.sent.set(self.sent.get().wrapping_add(1));
        if self.sent.get().is_multiple_of(RECORDS_PER_POLL) {
            self.producer.poll(Duration::ZERO);
        }
        let stake = record.delivery_opaque;
        // One that may fail is not worth a wait.
        let patience = if stake == IGNORED { Duration::ZERO } else { self.timeout };
        let deadline = Instant::now() + patience;
        loop {
            match self.producer.send(record) {
                Ok(()) => {
                    self.deliveries().sent(stake);
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
            Some(error) => Err(error),
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

    pub(crate) fn deliveries(&self) -> &Deliveries {
        self.producer.context()
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// A record as the client takes it, without headers.
fn client_record<'r>(output: &Output<'r>, stake: Stake) -> ClientRecord<'r> {
    let mut record = BaseRecord::with_opaque_to(output.topic, stake);
    record.partition = output.partition;
    record.key = output.key;
    record.payload = output.value;
    record
}
