//! Kafka's numbers and bytes. The golden bytes were written by the message classes of Kafka 4.3.0
//! (`SubscriptionInfoData`, `StreamsGroupHeartbeatRequestData`).

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::unnecessary_wraps,
    clippy::match_same_arms,
    reason = "tests"
)]

use std::collections::BTreeMap;

use kstate_api::{Error, ErrorKind, Offset, TaskId, TopicPartition};
use kstate_offset_cache::{
    AllLogEnds, CachedOffset, Lag, LogEnds,
    wire::{
        HeartbeatOffsets, OffsetSum, TaskOffsetSum, decode_task_offset_sums, decode_task_offsets,
        encode_task_offset_sums, encode_task_offsets,
    },
};
use proptest::prelude::*;

fn offset(number: i64) -> Offset {
    Offset::new(number).unwrap()
}

fn at(number: i64) -> Option<CachedOffset> {
    Some(CachedOffset::At(offset(number)))
}

fn sum(number: i64) -> OffsetSum {
    OffsetSum::new(number).unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap()).collect()
}

const RUNNING: Option<CachedOffset> = Some(CachedOffset::Running);
const UNKNOWN: Option<CachedOffset> = Some(CachedOffset::Unknown);

#[test]
fn a_sum_adds_the_next_offsets_of_what_is_stored() {
    assert_eq!(TaskOffsetSum::new([at(9), at(0)]).to_wire(), 11);
    assert_eq!(TaskOffsetSum::new([]).to_wire(), 0);
}

#[test]
fn what_runs_is_minus_two_only_if_all_of_it_runs() {
    assert_eq!(TaskOffsetSum::new([RUNNING, RUNNING]).to_wire(), -2);
    // One store is restored, the other is not: it would be wrong to send readers here.
    assert_eq!(TaskOffsetSum::new([RUNNING, at(9)]).to_wire(), 10);
}

#[test]
fn ho_06_unknown_is_neither_running_nor_part_of_a_sum() {
    assert_eq!(TaskOffsetSum::new([UNKNOWN]), TaskOffsetSum::Sum(OffsetSum::ZERO));
    assert_eq!(TaskOffsetSum::new([UNKNOWN]).to_wire(), 0);
    assert_eq!(TaskOffsetSum::new([UNKNOWN, at(39)]).to_wire(), 40);
    // The lag counts the whole log of the unknown one.
    assert_eq!(TaskOffsetSum::new([UNKNOWN, at(39)]).lag(Some(sum(30 + 45))), Lag::Behind(30 + 5));
}

#[test]
fn ho_07_sums_saturate_and_negative_numbers_are_refused() {
    assert_eq!(TaskOffsetSum::new([at(i64::MAX - 5), at(10)]).to_wire(), i64::MAX);
    assert_eq!(TaskOffsetSum::new([at(i64::MAX), at(i64::MAX), at(i64::MAX)]).to_wire(), i64::MAX);
    assert_eq!(TaskOffsetSum::new([at(i64::MAX - 5)]).to_wire(), i64::MAX - 4);
    for number in [-1, -4, -7, -1001, i64::MIN] {
        assert_eq!(TaskOffsetSum::from_wire(number).unwrap_err().kind(), ErrorKind::InvalidArgument, "{number}");
        assert_eq!(OffsetSum::try_from(number).unwrap_err().kind(), ErrorKind::InvalidArgument, "{number}");
    }
    assert_eq!(TaskOffsetSum::from_wire(0).unwrap().lag(Some(OffsetSum::MAX)), Lag::Behind(i64::MAX.unsigned_abs()));
    assert_eq!(TaskOffsetSum::from_wire(i64::MAX).unwrap().lag(Some(OffsetSum::MAX)), Lag::Behind(0));
}

#[test]
fn ho_08_a_member_with_more_than_the_log_is_the_worst_candidate() {
    let lag = TaskOffsetSum::from_wire(500).unwrap().lag(Some(sum(300)));
    assert_eq!(lag, Lag::Behind(300));
    assert!(lag > TaskOffsetSum::from_wire(1).unwrap().lag(Some(sum(300))));
}

#[test]
fn sentinels_become_states_and_never_numbers() {
    assert_eq!(TaskOffsetSum::from_wire(-2).unwrap().lag(Some(sum(300))), Lag::Running);
    assert_eq!(TaskOffsetSum::from_wire(-3).unwrap().lag(Some(sum(300))), Lag::Unknown);
    assert_eq!(TaskOffsetSum::from_wire(300).unwrap().lag(None), Lag::Unknown);
    for sentinel in [-2, -3] {
        assert_eq!(TaskOffsetSum::from_wire(sentinel).unwrap().to_wire(), sentinel);
        assert_eq!(Offset::new(sentinel), None);
    }
}

fn sums() -> BTreeMap<TaskId, TaskOffsetSum> {
    BTreeMap::from([
        (TaskId::new(0, 0), TaskOffsetSum::Latest),
        (TaskId::new(0, 1), TaskOffsetSum::Sum(sum(42))),
        (TaskId::new(1, 0), TaskOffsetSum::Sum(OffsetSum::MAX)),
        (TaskId::new(1, 7), TaskOffsetSum::Unknown),
    ])
}

/// Process id 1, 2 and no user end point.
const SUBSCRIPTION_HEAD: &str = "0000000b 0000000000000001 0000000000000002 00000000";
const GROUPED_SUMS: &str = "00000002
    00000000 00000002 00000000 fffffffffffffffe 00000001 000000000000002a
    00000001 00000002 00000000 7fffffffffffffff 00000007 fffffffffffffffd";
const FLAT_SUMS: &str = "00000004
    00000000 00000000 fffffffffffffffe ffff
    00000000 00000001 000000000000002a ffff
    00000001 00000000 7fffffffffffffff ffff
    00000001 00000007 fffffffffffffffd ffff";

#[test]
fn task_offset_sums_are_those_of_kafkas_subscriptions() {
    let golden = [
        (7, GROUPED_SUMS, "", include_str!("golden/subscription-7.hex")),
        // The unique field is 5; then the error code; then the number of client tags.
        (8, GROUPED_SUMS, "05", include_str!("golden/subscription-8.hex")),
        (9, GROUPED_SUMS, "05 00000000", include_str!("golden/subscription-9.hex")),
        (10, FLAT_SUMS, "05 00000000", include_str!("golden/subscription-10.hex")),
        (11, FLAT_SUMS, "05 00000000 00000000", include_str!("golden/subscription-11.hex")),
    ];
    for (version, field, tail, message) in golden {
        let field = bytes(field);
        assert_eq!(encode_task_offset_sums(version, &sums()).unwrap(), field, "version {version}");
        let head = [version.to_be_bytes().to_vec(), bytes(SUBSCRIPTION_HEAD)].concat();
        let message = bytes(message);
        assert_eq!([head.clone(), field, bytes(tail)].concat(), message, "version {version}");
        let (decoded, rest) = decode_task_offset_sums(version, &message[head.len()..]).unwrap();
        assert_eq!((decoded, rest), (sums(), bytes(tail).as_slice()), "version {version}");
    }
}

#[test]
fn other_versions_of_the_subscription_are_refused() {
    for version in [-1, 0, 1, 6, 12] {
        let error = encode_task_offset_sums(version, &sums()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{version}");
        assert_eq!(decode_task_offset_sums(version, &[0; 4]).unwrap_err().kind(), ErrorKind::Unsupported, "{version}");
    }
}

#[test]
fn damaged_sums_are_refused() {
    for (version, field) in [
        (7, GROUPED_SUMS.replace("fffffffffffffffd", "fffffffffffffffc")),
        (11, FLAT_SUMS.replace("fffffffffffffffe", "ffffffffffffffff")),
        (7, GROUPED_SUMS.replacen("00000002", "ffffffff", 1)),
        // A task twice.
        (11, FLAT_SUMS.replacen("00000001", "00000000", 1)),
        // A negative partition.
        (11, FLAT_SUMS.replace("00000007", "80000007")),
    ] {
        let field = bytes(&field);
        let error = decode_task_offset_sums(version, &field).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    // Of a named topology, called `x`.
    let named = bytes("00000001 00000000 00000000 0000000000000001 0001 78");
    assert_eq!(decode_task_offset_sums(11, &named).unwrap_err().kind(), ErrorKind::Unsupported);
    for (version, field) in [(9, GROUPED_SUMS), (11, FLAT_SUMS)] {
        let field = bytes(field);
        for len in 0..field.len() {
            let error = decode_task_offset_sums(version, &field[..len]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "cut to {len}");
        }
    }
}

#[test]
fn task_numbers_beyond_kafkas_are_refused() {
    for task in [TaskId::new(u32::MAX, 0), TaskId::new(0, 1 << 31)] {
        let sums = BTreeMap::from([(task, TaskOffsetSum::Latest)]);
        assert_eq!(encode_task_offset_sums(11, &sums).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(encode_task_offset_sums(7, &sums).unwrap_err().kind(), ErrorKind::InvalidArgument);
        let offsets = BTreeMap::from([(task, OffsetSum::ZERO)]);
        assert_eq!(encode_task_offsets(Some(&offsets)).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}

/// Group `g`, member `m`, epoch 3, and every field up to the client tags at its default.
const HEARTBEAT_HEAD: &str = "0267 026d 00000003 00000000 00 00 ffffffff ff 00 00 00 00 ff 00";
/// No shutdown, no tagged fields.
const HEARTBEAT_TAIL: &str = "00 00";

type Offsets = Option<BTreeMap<TaskId, OffsetSum>>;

fn check_heartbeat(offsets: &Offsets, end_offsets: &Offsets, message: &str) {
    let (head, tail, message) = (bytes(HEARTBEAT_HEAD), bytes(HEARTBEAT_TAIL), bytes(message));
    let field = |offsets: &Offsets| encode_task_offsets(offsets.as_ref()).unwrap();
    assert_eq!([head.clone(), field(offsets), field(end_offsets), tail.clone()].concat(), message);
    let (decoded, rest) = decode_task_offsets(&message[head.len()..]).unwrap();
    assert_eq!(decoded, *offsets);
    assert_eq!(decode_task_offsets(rest).unwrap(), (end_offsets.clone(), tail.as_slice()));
}

#[test]
fn task_offsets_are_those_of_kafkas_heartbeats() {
    let two = |first, last| Some(BTreeMap::from([(TaskId::new(0, 1), first), (TaskId::new(12, 300), last)]));
    let (offsets, end_offsets) = (two(sum(42), OffsetSum::MAX), two(sum(100), OffsetSum::MAX));
    check_heartbeat(&None, &None, include_str!("golden/heartbeat-null.hex"));
    let none = Some(BTreeMap::new());
    check_heartbeat(&none, &none, include_str!("golden/heartbeat-empty.hex"));
    check_heartbeat(&offsets, &end_offsets, include_str!("golden/heartbeat-full.hex"));
    // More than 127 elements, so that the count takes two bytes; the end offsets are unchanged.
    let many = (0..200_u32).map(|number| (TaskId::new(3, number), sum(i64::from(number) * 1_000))).collect();
    check_heartbeat(&Some(many), &None, include_str!("golden/heartbeat-many.hex"));
}

#[test]
fn tagged_fields_of_later_versions_are_passed_over() {
    let element = "02 37 00000001 000000000000002a";
    let with_tags = bytes(&format!("02 {element} 02 00 03 aabbcc 8101 00 ff"));
    let expected = Some(BTreeMap::from([(TaskId::new(7, 1), sum(42))]));
    assert_eq!(decode_task_offsets(&with_tags).unwrap(), (expected, [0xFF].as_slice()));
}

#[test]
fn damaged_task_offsets_are_refused() {
    for field in [
        // A negative offset: a sentinel has no place here.
        "02 02 37 00000001 fffffffffffffffe 00",
        // A negative partition.
        "02 02 37 ffffffff 0000000000000000 00",
        // A task twice.
        "03 02 37 00000001 0000000000000000 00 02 37 00000001 0000000000000000 00",
        // Sub-topologies that are null, empty, `01`, `+1`, `-1` and not UTF-8.
        "02 00 00000001 0000000000000000 00",
        "02 01 00000001 0000000000000000 00",
        "02 03 3031 00000001 0000000000000000 00",
        "02 03 2b31 00000001 0000000000000000 00",
        "02 03 2d31 00000001 0000000000000000 00",
        "02 02 ff 00000001 0000000000000000 00",
        // Counts of more than 32 bits.
        "ffffffff1f",
        "808080808001",
    ] {
        let error = decode_task_offsets(&bytes(field)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{field}: {error}");
    }
    let whole = encode_task_offsets(Some(&BTreeMap::from([(TaskId::new(7, 1), sum(42))]))).unwrap();
    for len in 0..whole.len() {
        assert_eq!(decode_task_offsets(&whole[..len]).unwrap_err().kind(), ErrorKind::InvalidArgument, "cut to {len}");
    }
}

#[test]
fn a_heartbeat_tells_of_copies_that_do_not_run() {
    let partition = |topic: &str, number| TopicPartition::new(topic, number);
    let tasks: Vec<_> = (0..5_i32)
        .map(|number| (TaskId::new(0, number.unsigned_abs()), [partition("a", number), partition("b", number)]))
        .collect();
    let cached = |_, partition: &TopicPartition| match (partition.topic(), partition.partition()) {
        (_, 0) => RUNNING,
        // Restoring: one store is done.
        ("a", 1) => RUNNING,
        (_, 1) => at(9),
        // Nothing here.
        (_, 2) => None,
        ("a", 3) => UNKNOWN,
        (_, 3) => None,
        _ => at(i64::MAX - 1),
    };
    let ends = |topic: &str, number: i32, end: i64| {
        (partition(topic, number), Ok(LogEnds { start: Offset::ZERO, end: offset(end) }))
    };
    let unknown_end = (partition("b", 3), Err(Error::new(ErrorKind::Unavailable, "no broker answers")));
    let huge = i64::MAX;
    let all =
        [ends("a", 1, 20), ends("b", 1, 30), ends("a", 3, 40), unknown_end, ends("a", 4, huge), ends("b", 4, huge)];
    let found = HeartbeatOffsets::new(&tasks, cached, &AllLogEnds::from_iter(all));
    let task = |number| TaskId::new(0, number);
    let expected = [(task(1), sum(10)), (task(3), OffsetSum::ZERO), (task(4), OffsetSum::MAX)];
    assert_eq!(found.task_offsets, BTreeMap::from(expected));
    let expected = [(task(1), sum(50)), (task(3), OffsetSum::MAX), (task(4), OffsetSum::MAX)];
    assert_eq!(found.task_end_offsets, BTreeMap::from(expected));
}

fn any_sums() -> impl Strategy<Value = BTreeMap<TaskId, TaskOffsetSum>> {
    let task = (0..=i32::MAX.unsigned_abs(), 0..=i32::MAX.unsigned_abs()).prop_map(|(s, p)| TaskId::new(s % 5, p));
    let sum = prop_oneof![
        Just(TaskOffsetSum::Latest),
        Just(TaskOffsetSum::Unknown),
        (0..=i64::MAX).prop_map(|number| TaskOffsetSum::Sum(sum(number))),
    ];
    prop::collection::btree_map(task, sum, 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_encoded_is_decoded(version in 7..=11, sums in any_sums(), tail: Vec<u8>) {
        let field = [encode_task_offset_sums(version, &sums).unwrap(), tail.clone()].concat();
        prop_assert_eq!(decode_task_offset_sums(version, &field).unwrap(), (sums, tail.as_slice()));
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(version in 7..=11, noise: Vec<u8>) {
        let _ = decode_task_offset_sums(version, &noise);
        let _ = decode_task_offsets(&noise);
    }
}
