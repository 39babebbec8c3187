//! Where things lie in a store's directory: the column families and the rows of Kafka Streams 4.3.

use kstate_api::{Error, ErrorKind, Offset, Result, TopicPartition};

/// The name of the layout in the store's header.
pub(crate) const NAME: &str = "rocksdb";

/// The column family of the records of a plain store. `RocksDB` always has it.
pub(crate) const PLAIN_FAMILY: &str = rocksdb::DEFAULT_COLUMN_FAMILY_NAME;
/// The column family of the records of a timestamped store.
pub(crate) const TIMESTAMPED_FAMILY: &str = "keyValueWithTimestamp";
/// The column family of offsets and bookkeeping.
pub(crate) const OFFSETS_FAMILY: &str = "offsets";

// Rows of `offsets`. The row of a partition ends in `-` and its number; so none of these can be one.
/// Kafka Streams' mark: `CLOSED` if the records are those of the offsets. Under exactly-once it wipes a store that has
/// any other.
pub(crate) const STATUS: &[u8] = b"status";
/// Kafka Streams' own position.
pub(crate) const STREAMS_POSITION: &[u8] = b"position";
/// The header of a store that this crate has written to.
pub(crate) const HEADER: &[u8] = b"kstate.header";
/// The source position.
pub(crate) const POSITION: &[u8] = b"kstate.position";
/// The rows of all partitions as they were when `POSITION` was written.
pub(crate) const POSITION_OFFSETS: &[u8] = b"kstate.position-offsets";

pub(crate) const CLOSED: [u8; 8] = 0_i64.to_be_bytes();
/// Kafka Streams has the store open, or died with it: its records may be ahead of its offsets.
pub(crate) const OPEN: [u8; 8] = 1_i64.to_be_bytes();
/// Kafka Streams died with the store, and this crate has taken it over since.
pub(crate) const ADOPTED: [u8; 8] = 2_i64.to_be_bytes();

/// What Kafka Streams stores for a partition whose offset it does not know yet.
const UNKNOWN_OFFSET: i64 = -4;

/// Which column family holds the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Layout {
    #[default]
    Plain,
    Timestamped,
}

impl Layout {
    pub(crate) const fn data_family(self) -> &'static str {
        match self {
            Self::Plain => PLAIN_FAMILY,
            Self::Timestamped => TIMESTAMPED_FAMILY,
        }
    }

    /// The family that must hold nothing in this layout.
    pub(crate) const fn other_family(self) -> &'static str {
        match self {
            Self::Plain => TIMESTAMPED_FAMILY,
            Self::Timestamped => PLAIN_FAMILY,
        }
    }
}

/// Whether this version knows what a column family of that name holds.
pub(crate) fn is_known_family(name: &str) -> bool {
    [PLAIN_FAMILY, TIMESTAMPED_FAMILY, OFFSETS_FAMILY].contains(&name)
}

pub(crate) fn partition_row(partition: &TopicPartition) -> Vec<u8> {
    partition.to_string().into_bytes()
}

/// The partition whose row has that key, if it is a partition's.
pub(crate) fn partition_of(row: &[u8]) -> Option<TopicPartition> {
    std::str::from_utf8(row).ok()?.parse().ok()
}

pub(crate) fn encode_offset(offset: Offset) -> [u8; 8] {
    offset.get().to_be_bytes()
}

/// The offset in the row of `partition`; `None` if Kafka Streams did not know it.
pub(crate) fn decode_offset(partition: &TopicPartition, bytes: &[u8]) -> Result<Option<Offset>> {
    let corrupted = |what: String| {
        Error::new(ErrorKind::Corrupted, format!("the stored offset of {partition} is damaged: it {what}"))
    };
    let value = bytes.try_into().map_err(|_| corrupted(format!("has {} bytes instead of 8", bytes.len())))?;
    match i64::from_be_bytes(value) {
        UNKNOWN_OFFSET => Ok(None),
        value => Offset::new(value).map(Some).ok_or_else(|| corrupted(format!("is {value}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_row_of_the_bookkeeping_can_be_a_partitions() {
        for row in [STATUS, STREAMS_POSITION, HEADER, POSITION, POSITION_OFFSETS] {
            assert_eq!(partition_of(row), None, "{}", String::from_utf8_lossy(row));
        }
        assert_eq!(partition_of(b"kstate.position-7"), Some(TopicPartition::new("kstate.position", 7)));
    }

    #[test]
    fn an_offset_is_eight_big_endian_bytes_and_minus_four_is_unknown() {
        let partition = TopicPartition::new("counts-changelog", 0);
        let decode = |bytes: &[u8]| decode_offset(&partition, bytes);
        assert_eq!(encode_offset(Offset::new(258).unwrap()), [0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(decode(&[0, 0, 0, 0, 0, 0, 1, 2]).unwrap(), Offset::new(258));
        assert_eq!(decode(&(-4_i64).to_be_bytes()).unwrap(), None);
        for damaged in [&(-1_i64).to_be_bytes()[..], &i64::MIN.to_be_bytes(), b"", b"1234567", b"123456789"] {
            let error = decode(damaged).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupted);
            assert!(error.to_string().contains("counts-changelog-0"), "{error}");
        }
    }
}
