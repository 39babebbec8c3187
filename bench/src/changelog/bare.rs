//! The Kafka client alone, with the properties that kstate gives to it.

use std::time::{Duration, Instant};

use rdkafka::{
    ClientConfig, Message, Offset as ClientOffset, TopicPartitionList,
    consumer::{BaseConsumer, CommitMode, Consumer},
    error::KafkaError,
    producer::{BaseProducer, BaseRecord, Producer},
    types::RDKafkaErrorCode,
};

use super::{Scene, TIMEOUT};
use crate::{Result, data};

/// Reads the records before `end` of the full changelog; how many there are.
pub(crate) fn consume(scene: &Scene, end: i64) -> Result<u64> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", scene.cluster.brokers())
        .set("group.id", "bench")
        .set("enable.auto.commit", "false")
        .set("queued.max.messages.kbytes", "16384")
        .set("fetch.queue.backoff.ms", "10")
        .set("max.partition.fetch.bytes", "4194304")
        .create()?;
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(scene.full.topic(), scene.full.partition(), ClientOffset::Offset(0))?;
    consumer.assign(&list)?;
    let mut records = 0;
    loop {
        let message = consumer.poll(TIMEOUT).ok_or("the broker has no more records")??;
        records += u64::from(message.key().is_some() && message.payload().is_some());
        if message.offset() + 1 == end {
            return Ok(records);
        }
    }
}

/// A producer as kstate's is set up.
pub(crate) struct BareProducer(BaseProducer);

impl BareProducer {
    pub(crate) fn new(scene: &Scene) -> Result<Self> {
        let producer = ClientConfig::new()
            .set("bootstrap.servers", scene.cluster.brokers())
            .set("enable.idempotence", "true")
            .set("acks", "all")
            .set("queue.buffering.max.kbytes", "32768")
            .set("queue.buffering.max.messages", "1000000")
            .set("compression.codec", "lz4")
            .create()?;
        Ok(Self(producer))
    }

    /// Sends the records `from..to` and waits until they are delivered.
    pub(crate) fn send(&self, scene: &Scene, from: u64, to: u64) -> Result<()> {
        for index in from..to {
            let (key, value) = (data::key(index), data::value(index));
            let mut record = BaseRecord::to(scene.bare.topic()).partition(0).key(&key[..]).payload(&value[..]);
            while let Err((error, refused)) = self.0.send(record) {
                if !matches!(error, KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull)) {
                    return Err(error.into());
                }
                self.0.poll(Duration::from_millis(1));
                record = refused;
            }
        }
        // The client's own flush waits in steps of 100 ms.
        let deadline = Instant::now() + TIMEOUT;
        while self.0.in_flight_count() > 0 {
            if Instant::now() > deadline {
                return Err("the deliveries take too long".into());
            }
            self.0.poll(Duration::from_millis(1));
        }
        Ok(())
    }
}

/// A consumer that commits offsets for a group of its own.
pub(crate) struct BareGroup(BaseConsumer);

impl BareGroup {
    pub(crate) fn new(scene: &Scene) -> Result<Self> {
        let consumer = ClientConfig::new()
            .set("bootstrap.servers", scene.cluster.brokers())
            .set("group.id", scene.bare.topic())
            .set("enable.auto.commit", "false")
            .create()?;
        Ok(Self(consumer))
    }

    /// Commits `next` as the offset of the source.
    pub(crate) fn commit(&self, scene: &Scene, next: u64) -> Result<()> {
        let mut list = TopicPartitionList::new();
        let offset = ClientOffset::Offset(i64::try_from(next)?);
        list.add_partition_offset(scene.source.topic(), scene.source.partition(), offset)?;
        Ok(self.0.commit(&list, CommitMode::Sync)?)
    }
}
