//! The broker keeps its promises to the tests that use it: acknowledged records survive SIGKILL, on the same address,
//! and compaction comes while a test waits for it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of a test fail as the test does")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use kstate_test_broker::Broker;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::Message as _;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

const TOPIC: &str = "records";
const PATIENCE: Duration = Duration::from_secs(60);

fn config(broker: &Broker) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", broker.bootstrap_servers());
    config
}

fn create_topic(broker: &Broker, settings: &[(&str, &str)]) {
    let admin: AdminClient<DefaultClientContext> = config(broker).create().unwrap();
    let topic = settings
        .iter()
        .fold(NewTopic::new(TOPIC, 1, TopicReplication::Fixed(1)), |topic, (name, value)| topic.set(name, value));
    let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
    let created = futures_executor::block_on(admin.create_topics([&topic], &options)).unwrap();
    assert_eq!(created, [Ok(TOPIC.to_owned())]);
}

fn produce(broker: &Broker, records: impl Iterator<Item = (String, String)>) {
    let producer: BaseProducer = config(broker).set("acks", "all").create().unwrap();
    for (key, value) in records {
        producer.send(BaseRecord::to(TOPIC).key(&key).payload(&value)).map_err(|(error, _)| error).unwrap();
    }
    producer.flush(PATIENCE).unwrap();
}

/// Every record the partition holds, by offset.
fn read_all(broker: &Broker) -> BTreeMap<i64, (String, String)> {
    let consumer: BaseConsumer = config(broker).set("group.id", "reader").create().unwrap();
    let (_, end) = consumer.fetch_watermarks(TOPIC, 0, PATIENCE).unwrap();
    let mut assignment = TopicPartitionList::new();
    assignment.add_partition_offset(TOPIC, 0, Offset::Beginning).unwrap();
    consumer.assign(&assignment).unwrap();
    let mut records = BTreeMap::new();
    // The last record of a compacted partition is always there: its segment is the active one.
    while records.last_key_value().is_none_or(|(offset, _)| offset + 1 < end) {
        let message = consumer.poll(PATIENCE).expect("a record in time").unwrap();
        let text = |bytes: Option<&[u8]>| String::from_utf8(bytes.unwrap().to_vec()).unwrap();
        records.insert(message.offset(), (text(message.key()), text(message.payload())));
    }
    records
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn acknowledged_records_survive_a_kill_and_a_stop_on_the_same_address() {
    let mut broker = Broker::start().unwrap();
    let address = broker.bootstrap_servers().to_owned();
    create_topic(&broker, &[]);
    produce(&broker, (0..1_000).map(|number| (format!("key-{number}"), number.to_string())));
    let written = read_all(&broker);
    assert_eq!(written.len(), 1_000);

    let first_id = broker.process_id().unwrap();
    broker.kill().unwrap();
    assert_eq!(broker.process_id(), None);
    assert!(!Path::new(&format!("/proc/{first_id}")).exists());
    broker.kill().unwrap_err();

    broker.restart().unwrap();
    assert_eq!(broker.bootstrap_servers(), address);
    assert_eq!(read_all(&broker), written);
    broker.restart().unwrap();
    assert_eq!(read_all(&broker), written);

    let last_id = broker.process_id().unwrap();
    drop(broker);
    assert!(!Path::new(&format!("/proc/{last_id}")).exists());
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn a_compacted_topic_is_compacted_within_seconds() {
    let broker = Broker::start().unwrap();
    create_topic(
        &broker,
        &[
            ("cleanup.policy", "compact"),
            ("segment.ms", "100"),
            ("min.cleanable.dirty.ratio", "0.01"),
            ("max.compaction.lag.ms", "100"),
        ],
    );
    produce(&broker, (0..100).map(|number| ("same key".to_owned(), number.to_string())));
    let deadline = Instant::now() + PATIENCE;
    // A record in a later segment each time: the active one is never compacted.
    while read_all(&broker).values().filter(|(key, _)| key == "same key").count() > 1 {
        assert!(Instant::now() < deadline, "not compacted after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(200));
        produce(&broker, std::iter::once(("later".to_owned(), String::new())));
    }
    let kept = read_all(&broker);
    assert_eq!(kept.get(&99), Some(&("same key".to_owned(), "99".to_owned())));
}
