//! The form of positions in a group's metadata.
#![allow(clippy::unwrap_used, reason = "a test that fails by panicking says so at the right line")]

use std::ops::Range;

use kstate_api::{Offset, PartitionPosition};
use kstate_processing::{MetadataLimit, MetadataTooLong, PositionMetadata as _, RangesIgnored};
use proptest::prelude::*;

fn at(offset: i64) -> Offset {
    Offset::new(offset).unwrap()
}

fn position(next: i64, ranges: impl IntoIterator<Item = Range<i64>>) -> PartitionPosition {
    PartitionPosition::new(at(next), ranges.into_iter().map(|range| at(range.start)..at(range.end))).unwrap()
}

fn encode(position: &PartitionPosition) -> String {
    position.to_metadata(MetadataLimit::new(usize::MAX)).unwrap()
}

#[test]
fn the_forms_of_version_1_are_pinned() {
    let every_second = || (0..40).map(|n| 1001 + 2 * n..1002 + 2 * n);
    for (position, golden) in [
        (position(7, []), "a3ABAQfFQt8I"),
        (position(5, [6..8, 9..10]), "a3ABAgULe74gMw"),
        (position(300, Some(1_000_000..2_000_000)), "a3ABAawClII9wIQ9l0vQyA"),
        (position(1000, every_second()), "a3ABAugHVVVVVVVVVVVVVf6Gt7I"),
    ] {
        assert_eq!(encode(&position), golden, "{position:?}");
        assert_eq!(PartitionPosition::from_metadata(position.next(), golden), Ok(position));
    }
}

#[test]
fn metadata_that_cannot_be_used_says_why() {
    let good = encode(&position(5, Some(6..8)));
    let other_base = RangesIgnored::OtherBase { base: at(5), committed: at(4) };
    assert_eq!(PartitionPosition::from_metadata(at(4), &good), Err(other_base));
    // What Kafka Streams writes: a magic byte and the partition's time.
    for foreign in ["AgAAAZEAAAAA", "AQ", "kp", "not base64!", "é", "\0"] {
        assert_eq!(PartitionPosition::from_metadata(at(5), foreign), Err(RangesIgnored::Foreign), "{foreign}");
    }
    let newer = good.replacen("a3AB", "a3AC", 1);
    assert_eq!(PartitionPosition::from_metadata(at(5), &newer), Err(RangesIgnored::NewerVersion { version: 2 }));
    let (last, head) = (&good[good.len() - 8..], &good[..good.len() - 8]);
    for damaged in [format!("{head}AAAA{}", &last[4..]), format!("{head}{}", &last[4..]), "a3ABAQ".into()] {
        assert_eq!(PartitionPosition::from_metadata(at(5), &damaged), Err(RangesIgnored::Damaged), "{damaged}");
    }
}

#[test]
fn metadata_that_is_too_long_is_refused_with_its_length() {
    let position = position(0, (0..40).map(|n| 1000 * n + 1..1000 * n + 2));
    let characters = encode(&position).len();
    let limit = MetadataLimit::new(characters - 1);
    assert_eq!(position.to_metadata(limit), Err(MetadataTooLong { characters, limit: characters - 1 }));
    assert!(position.to_metadata(MetadataLimit::new(characters)).is_ok());
}

#[test]
fn the_smaller_form_is_taken() {
    let stuck = position(5, Some(6..100_000));
    assert!(encode(&stuck).len() < 24, "a stuck record costs one run: {}", encode(&stuck));
    let ragged = position(0, (0..8000).map(|n| 2 * n + 1..2 * n + 2));
    assert!(encode(&ragged).len() < 2740, "a bit for each offset: {}", encode(&ragged).len());
}

fn positions() -> impl Strategy<Value = PartitionPosition> {
    let lengths = prop_oneof![9 => 1..20_i64, 1 => 1..100_000_i64];
    let ranges = prop::collection::vec((lengths.clone(), lengths), 0..200);
    (0..i64::MAX / 2, ranges).prop_map(|(next, ranges)| {
        let mut end = next;
        let ranges: Vec<_> = ranges
            .into_iter()
            .map(|(gap, len)| {
                let start = end + gap;
                end = start + len;
                start..end
            })
            .collect();
        position(next, ranges)
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(position in positions()) {
        let metadata = encode(&position);
        prop_assert_eq!(PartitionPosition::from_metadata(position.next(), &metadata), Ok(position));
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        prop_assert!(PartitionPosition::from_metadata(at(5), &text).is_err() || text.is_empty());
    }

    /// Behind the checksum, too, so that the reader of the body meets anything.
    #[test]
    fn any_body_is_read_or_refused(
        form in 0..4_u8,
        base in prop_oneof![Just(vec![5]), prop::collection::vec(any::<u8>(), 0..12)],
        body in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
        let mut bytes = vec![b'k', b'p', 1, form];
        bytes.extend(base);
        bytes.extend(body);
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        if let Ok(position) = PartitionPosition::from_metadata(at(5), &STANDARD_NO_PAD.encode(bytes)) {
            let again = PartitionPosition::new(position.next(), position.finished().to_vec()).unwrap();
            prop_assert_eq!(&again, &position);
            prop_assert!(position.finished().len() < 2000);
        }
    }

    #[test]
    fn one_changed_character_is_noticed(position in positions(), index in any::<prop::sample::Index>(), to in "[A-Za-z]") {
        let metadata = encode(&position);
        prop_assume!(!metadata.is_empty());
        let index = index.index(metadata.len());
        let mut changed = metadata.clone();
        changed.replace_range(index..=index, &to);
        prop_assume!(changed != metadata);
        prop_assert!(PartitionPosition::from_metadata(position.next(), &changed).is_err());
    }
}
