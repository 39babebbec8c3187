//! What is `RocksDB`'s own: layout, locks, durability, failures. The contract itself is checked by the conformance suite.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

#[path = "../../../checkpoint/tests/support/broker.rs"]
mod broker;
mod changelog;
mod close;
mod common;
mod durability;
#[path = "../../../store-redb/tests/common/events.rs"]
mod events;
mod failures;
mod full_disk;
#[path = "../../../store-redb/tests/common/inverted_bounds.rs"]
mod inverted_bounds;
mod kafka_streams;
mod logging;
mod power_loss;
mod reads;
#[path = "../../../checkpoint/tests/support/scenarios.rs"]
mod scenarios;
mod startup_scan;
#[cfg(unix)]
mod torn_write;
