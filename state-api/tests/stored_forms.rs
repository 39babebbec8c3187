//! The stored forms, byte by byte: a change of these tests is a change of every store on disk.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use kstate_api::{ErrorKind, Offset, PartitionPosition, Position, TopicPartition, codec};
use proptest::prelude::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

/// The same bytes under another version, with a checksum that fits.
fn reseal(bytes: &[u8], version: u8) -> Vec<u8> {
    let mut body = bytes[..bytes.len() - 4].to_vec();
    body[0] = version;
    let checksum = crc32fast::hash(&body);
    body.extend(checksum.to_be_bytes());
    body
}

fn position(entries: &[(&str, i32, i64)]) -> Position {
    entries
        .iter()
        .map(|(topic, partition, next)| (TopicPartition::new(*topic, *partition), Offset::new(*next).unwrap()))
        .collect()
}

#[test]
fn golden_offset() {
    let bytes = codec::encode_offset(Offset::new(0x0102_0304_0506_0708).unwrap());
    assert_eq!(hex(&bytes), "010102030405060708ab9a5741");
    assert_eq!(codec::decode_offset(&bytes).unwrap().get(), 0x0102_0304_0506_0708);
}

#[test]
fn golden_position() {
    let position = position(&[("lines", 0, 8), ("lines", 1, 9)]);
    let bytes = codec::encode_position(&position).unwrap();
    assert_eq!(
        hex(&bytes),
        "0100000002\
         00056c696e6573000000000000000000000008\
         00056c696e6573000000010000000000000009\
         536e6b6f"
    );
    assert_eq!(codec::decode_position(&bytes).unwrap(), position);
}

#[test]
fn golden_position_with_finished_ranges() {
    let at = |offset| Offset::new(offset).unwrap();
    let mut position = position(&[("lines", 1, 9)]);
    let lines = PartitionPosition::new(at(8), [at(10)..at(12), at(20)..at(0x0102_0304)]).unwrap();
    position.set(TopicPartition::new("lines", 0), lines);
    let bytes = codec::encode_position(&position).unwrap();
    assert_eq!(
        hex(&bytes),
        "0200000002\
         00056c696e6573000000000000000000000008\
         00000002000000000000000a000000000000000c00000000000000140000000001020304\
         00056c696e6573000000010000000000000009\
         00000000\
         55bee9d6"
    );
    assert_eq!(codec::decode_position(&bytes).unwrap(), position);
}

#[test]
fn ranges_that_no_position_has_are_damage() {
    let at = |offset| Offset::new(offset).unwrap();
    let mut position = Position::new();
    position.set(TopicPartition::new("lines", 0), PartitionPosition::new(at(8), [at(10)..at(12)]).unwrap());
    let bytes = codec::encode_position(&position).unwrap();
    let start = bytes.len() - 4 - 16;
    for wrong in [7_i64, 12, -1, i64::MAX] {
        let mut bytes = bytes.clone();
        bytes[start..start + 8].copy_from_slice(&wrong.to_be_bytes());
        let error = codec::decode_position(&reseal(&bytes, 2)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupted, "a range from {wrong} to 12");
    }
    let mut many = bytes;
    many[start - 4..start].copy_from_slice(&u32::MAX.to_be_bytes());
    assert_eq!(codec::decode_position(&reseal(&many, 2)).unwrap_err().kind(), ErrorKind::Corrupted);
}

#[test]
fn golden_header() {
    let bytes = codec::encode_header("redb");
    assert_eq!(hex(&bytes), "016b73746174650472656462a76c9401");
    codec::check_header(&bytes, "redb").unwrap();
}

#[test]
fn a_newer_version_is_refused_as_such() {
    let offset = reseal(&codec::encode_offset(Offset::ZERO), 2);
    assert_eq!(codec::decode_offset(&offset).unwrap_err().kind(), ErrorKind::NewerFormat);
    let position = reseal(&codec::encode_position(&Position::new()).unwrap(), 3);
    assert_eq!(codec::decode_position(&position).unwrap_err().kind(), ErrorKind::NewerFormat);
    let header = reseal(&codec::encode_header("redb"), 2);
    assert_eq!(codec::check_header(&header, "redb").unwrap_err().kind(), ErrorKind::NewerFormat);
}

#[test]
fn a_version_before_the_first_is_damage() {
    let offset = reseal(&codec::encode_offset(Offset::ZERO), 0);
    assert_eq!(codec::decode_offset(&offset).unwrap_err().kind(), ErrorKind::Corrupted);
}

#[test]
fn a_negative_offset_is_damage() {
    let mut bytes = codec::encode_offset(Offset::ZERO);
    bytes[1..9].copy_from_slice(&(-4_i64).to_be_bytes());
    assert_eq!(codec::decode_offset(&reseal(&bytes, 1)).unwrap_err().kind(), ErrorKind::Corrupted);
}

#[test]
fn a_header_of_another_layout_is_refused() {
    assert_eq!(codec::check_header(&codec::encode_header("redb"), "rocksdb").unwrap_err().kind(), ErrorKind::Corrupted);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_offset_comes_back(value in 0..=i64::MAX) {
        let offset = Offset::new(value).unwrap();
        prop_assert_eq!(codec::decode_offset(&codec::encode_offset(offset)).unwrap(), offset);
    }

    #[test]
    fn any_position_comes_back(
        entries in prop::collection::vec(("[a-zA-Z0-9._-]{3,249}", 0..=i32::MAX, 0..=i64::MAX), 0..20),
    ) {
        let position: Position = entries
            .iter()
            .map(|(topic, partition, next)| {
                (TopicPartition::new(topic.as_str(), *partition), Offset::new(*next).unwrap())
            })
            .collect();
        prop_assert_eq!(codec::decode_position(&codec::encode_position(&position).unwrap()).unwrap(), position);
    }

    #[test]
    fn a_flipped_bit_or_a_cut_is_noticed(bit in 0_usize..13 * 8, cut in 0_usize..13) {
        let mut bytes = codec::encode_offset(Offset::new(41).unwrap());
        prop_assert!(codec::decode_offset(&bytes[..cut]).is_err());
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(codec::decode_offset(&bytes).unwrap_err().kind(), ErrorKind::Corrupted);
    }

    #[test]
    fn nonsense_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = codec::decode_offset(&bytes);
        let _ = codec::decode_position(&bytes);
        let _ = codec::check_header(&bytes, "redb");
    }
}
