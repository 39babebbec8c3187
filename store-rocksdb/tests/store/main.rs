//! What is `RocksDB`'s own: layout, locks, durability, failures. The contract itself is checked by the conformance suite.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

#[path = "../../../checkpoint/tests/support/broker.rs"]
mod broker;
mod changelog;
mod close;
mod common;
mod durability;
mod failures;
mod full_disk;
mod kafka_streams;
mod reads;
#[path = "../../../checkpoint/tests/support/scenarios.rs"]
mod scenarios;
