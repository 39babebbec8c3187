//! Names, ranges and batches.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::ops::Bound;

use kstate_api::{ErrorKind, KeyRange, MAX_NAME_LEN, TaskId, TopicPartition, WriteBatch, validate_name};
use proptest::prelude::*;

#[test]
fn names_that_kafka_or_a_file_system_would_refuse() {
    for name in ["", ".", "..", "my store", "a/b", "ä", "a\0b", "a\\b"] {
        assert_eq!(validate_name("store", name).unwrap_err().kind(), ErrorKind::InvalidArgument, "{name:?}");
    }
    validate_name("store", &"x".repeat(MAX_NAME_LEN)).unwrap();
    let error = validate_name("store", &"x".repeat(MAX_NAME_LEN + 1)).unwrap_err();
    assert!(error.to_string().contains("250"), "{error}");
    validate_name("store", "ok.name-1_x").unwrap();
}

#[test]
fn partitions_parse_only_from_what_they_print() {
    for text in ["cl-0", "a-b-12", "a.b_c-2147483647"] {
        assert_eq!(text.parse::<TopicPartition>().unwrap().to_string(), text);
    }
    for text in ["", "cl", "cl-", "-0", "cl-01", "cl-+1", "cl-2147483648", "c l-0"] {
        assert_eq!(text.parse::<TopicPartition>().unwrap_err().kind(), ErrorKind::InvalidArgument, "{text:?}");
    }
}

#[test]
fn task_ids_parse_only_from_what_they_print() {
    assert_eq!("4294967295_0".parse::<TaskId>().unwrap(), TaskId::new(u32::MAX, 0));
    for text in ["", "0", "0_", "_0", "0_01", "00_1", "0_1_2", "0_-1", "a_b", "4294967296_0"] {
        assert!(text.parse::<TaskId>().is_err(), "{text:?}");
    }
}

#[test]
fn task_ids_order_by_number() {
    assert!(TaskId::new(0, 2) < TaskId::new(0, 10) && TaskId::new(0, 10) < TaskId::new(1, 0));
}

#[test]
fn a_batch_counts_its_bytes() {
    let mut batch = WriteBatch::new();
    batch.put("key", "value");
    let one = batch.byte_size();
    batch.put("key", "a longer value");
    assert_eq!(batch.byte_size(), one + "a longer value".len() - "value".len());
    batch.delete("key");
    assert_eq!(batch.byte_size(), one - "value".len());
    batch.delete("other key");
    assert!(batch.byte_size() > one);
}

#[test]
fn a_range_that_can_hold_no_key_is_inverted() {
    assert!(KeyRange::between(b"c", b"a").is_inverted());
    assert!(KeyRange::new(Bound::Excluded(b"b"), Bound::Excluded(b"b")).is_inverted());
    assert!(KeyRange::new(Bound::Included(b"b"), Bound::Excluded(b"b")).is_inverted());
    assert!(!KeyRange::between(b"b", b"b").is_inverted());
    assert!(!KeyRange::prefix(b"\xFF").is_inverted());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_prefix_range_holds_exactly_what_begins_with_it(
        prefix in prop::collection::vec(prop_oneof![Just(0_u8), Just(0xFE), Just(0xFF)], 0..4),
        key in prop::collection::vec(prop_oneof![Just(0_u8), Just(0xFE), Just(0xFF)], 0..6),
    ) {
        prop_assert_eq!(KeyRange::prefix(&prefix).contains(&key), key.starts_with(&prefix));
    }
}
