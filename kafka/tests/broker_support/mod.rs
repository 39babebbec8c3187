//! What the tests on a real broker share. Those of other packages include it by its path.

#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

pub(crate) mod process;

use std::{
    env,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use kstate_api::{Offset, TopicPartition};
use kstate_checkpoint::{ChangelogReader, ChangelogRecord};
use kstate_kafka::{ChangelogConsumer, Cluster};

/// How long a test waits for what should come soon.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn cluster() -> Cluster {
    Cluster::new(env::var("KSTATE_TEST_BROKERS").expect("KSTATE_TEST_BROKERS names a broker"))
}

/// A name of a topic or group that no other run of these tests uses.
pub(crate) fn unique(name: &str) -> String {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    format!("{name}-{nanos}")
}

/// Shows every record that `partition` has now to `read`.
pub(crate) fn read_all(
    reader: &mut ChangelogConsumer,
    partition: &TopicPartition,
    read: &mut dyn FnMut(Offset, ChangelogRecord<'_>),
) {
    let bounds = reader.bounds(partition).unwrap();
    reader.seek(partition, bounds.start).unwrap();
    let deadline = Instant::now() + TIMEOUT;
    while reader.position().unwrap() < bounds.end {
        assert!(Instant::now() < deadline, "the reader stops at {}", reader.position().unwrap());
        reader.poll(Duration::from_millis(100), read).unwrap();
    }
}
