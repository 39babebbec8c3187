use std::collections::BTreeMap;

use kstate_api::{ChangelogOffsets, Error, ErrorKind, Position, Result, WriteBatch, codec};

use crate::layout::{self, ADOPTED, CLOSED, HEADER, OPEN, POSITION, POSITION_OFFSETS, STATUS, STREAMS_POSITION};

/// Rows to write to the `offsets` family; `None` deletes.
pub(crate) type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// The rows of the `offsets` family: changelog offsets, source position, header and status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bookkeeping(BTreeMap<Vec<u8>, Vec<u8>>);

impl FromIterator<(Vec<u8>, Vec<u8>)> for Bookkeeping {
    fn from_iter<I: IntoIterator<Item = (Vec<u8>, Vec<u8>)>>(rows: I) -> Self {
        Self(rows.into_iter().collect())
    }
}

impl Bookkeeping {
    fn row(&self, key: &[u8]) -> Option<&[u8]> {
        self.0.get(key).map(Vec::as_slice)
    }

    /// Refuses a store of a newer version, and one whose header is damaged. A store without a header is new, or one
    /// of Kafka Streams.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(header) = self.row(HEADER) {
            codec::check_header(header, layout::NAME)?;
        }
        match self.row(STATUS) {
            Some(status) if ![CLOSED, OPEN, ADOPTED].iter().any(|known| known == status) => Err(Error::new(
                ErrorKind::NewerFormat,
                format!("the store has the status {status:?}, which this version does not know"),
            )),
            _ => Ok(()),
        }
    }

    fn has_status(&self, status: [u8; 8]) -> bool {
        self.row(STATUS) == Some(&status)
    }

    /// Whether a Kafka Streams application died with the store open, so that its records may be ahead of its offsets.
    pub(crate) fn may_be_ahead(&self) -> bool {
        self.has_status(OPEN) || self.has_status(ADOPTED)
    }

    /// Whether another program has changed the store since its position was written, so that it no longer is the
    /// position of these records.
    pub(crate) fn position_is_stale(&self) -> bool {
        let moved = || self.row(POSITION_OFFSETS) != Some(&fingerprint(&self.0));
        self.0.contains_key(POSITION) && (self.has_status(OPEN) || moved())
    }

    /// What an open has to write.
    ///
    /// The status is `CLOSED` while the store is open, too: what this crate writes is consistent after any crash, and
    /// Kafka Streams would wipe it for any other status. A store that it left `OPEN` itself becomes `ADOPTED` until it
    /// is wiped, for the doubtful records stay as long.
    pub(crate) fn opening(&self) -> Changes {
        let mut changes = Changes::new();
        if !self.0.contains_key(HEADER) {
            changes.insert(HEADER.into(), Some(codec::encode_header(layout::NAME)));
        }
        if !self.0.contains_key(STATUS) {
            changes.insert(STATUS.into(), Some(CLOSED.into()));
        } else if self.has_status(OPEN) {
            changes.insert(STATUS.into(), Some(ADOPTED.into()));
        }
        if self.position_is_stale() {
            changes.insert(POSITION.into(), None);
            changes.insert(POSITION_OFFSETS.into(), None);
        }
        changes
    }

    /// What `batch` changes here.
    pub(crate) fn applying(&self, batch: &WriteBatch) -> Result<Changes> {
        batch.offsets().iter().try_for_each(|(partition, _)| partition.validate())?;
        let mut changes = if batch.forgets_offsets() { self.forgetting() } else { Changes::new() };
        for (partition, offset) in batch.offsets().iter() {
            changes.insert(layout::partition_row(partition), Some(layout::encode_offset(offset).into()));
        }
        let mut position = if batch.forgets_offsets() { Position::new() } else { self.position()? };
        position.merge(batch.position());
        if !batch.position().is_empty() {
            changes.insert(POSITION.into(), Some(codec::encode_position(&position)?));
        }
        if !position.is_empty() && !changes.is_empty() {
            let mut after = self.clone();
            after.take(changes.clone());
            changes.insert(POSITION_OFFSETS.into(), Some(fingerprint(&after.0)));
        }
        Ok(changes)
    }

    /// What a wipe changes here. The records that Kafka Streams may have left ahead of their offsets go with it.
    pub(crate) fn wiping(&self) -> Changes {
        let mut changes = self.forgetting();
        changes.insert(STATUS.into(), Some(CLOSED.into()));
        changes
    }

    fn forgetting(&self) -> Changes {
        let goes = |key: &[u8]| {
            [POSITION, POSITION_OFFSETS, STREAMS_POSITION].contains(&key) || layout::partition_of(key).is_some()
        };
        self.0.keys().filter(|key| goes(key)).map(|key| (key.clone(), None)).collect()
    }

    /// Takes over what was written.
    pub(crate) fn take(&mut self, changes: Changes) {
        for (key, value) in changes {
            match value {
                Some(value) => self.0.insert(key, value),
                None => self.0.remove(&key),
            };
        }
    }

    /// The offsets of all partitions that have one. A damaged one has none here: whoever asks for it is told.
    pub(crate) fn offsets(&self) -> ChangelogOffsets {
        let offset = |(key, value): (&Vec<u8>, &Vec<u8>)| {
            let partition = layout::partition_of(key)?;
            let offset = layout::decode_offset(&partition, value).ok()??;
            Some((partition, offset))
        };
        self.0.iter().filter_map(offset).collect()
    }

    pub(crate) fn position(&self) -> Result<Position> {
        self.row(POSITION).map_or_else(|| Ok(Position::new()), codec::decode_position)
    }
}

/// The rows of all partitions, in one value. Kafka Streams changes them with the records, but not our position.
fn fingerprint(rows: &BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (key, value) in rows.iter().filter(|(key, _)| layout::partition_of(key).is_some()) {
        for part in [key, value] {
            bytes.extend((part.len() as u64).to_be_bytes());
            bytes.extend(part);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use kstate_api::{Offset, TopicPartition};

    use super::*;

    fn offset(value: i64) -> Offset {
        Offset::new(value).unwrap()
    }

    fn changelog() -> TopicPartition {
        TopicPartition::new("counts-changelog", 0)
    }

    fn batch(changelog_offset: Option<i64>, next: Option<i64>) -> WriteBatch {
        let mut batch = WriteBatch::new();
        if let Some(value) = changelog_offset {
            batch.set_offset(changelog(), offset(value));
        }
        if let Some(next) = next {
            batch.set_position(TopicPartition::new("lines", 0), offset(next));
        }
        batch
    }

    fn opened() -> Bookkeeping {
        let mut rows = Bookkeeping::default();
        rows.take(rows.opening());
        rows
    }

    fn apply(rows: &mut Bookkeeping, batch: &WriteBatch) {
        rows.take(rows.applying(batch).unwrap());
    }

    #[test]
    fn a_position_holds_until_another_program_moves_the_offsets() {
        let mut rows = opened();
        apply(&mut rows, &batch(Some(10), Some(4)));
        apply(&mut rows, &batch(Some(20), None));
        apply(&mut rows, &batch(None, Some(9)));
        assert!(!rows.position_is_stale());
        assert_eq!(rows.position().unwrap().next(&TopicPartition::new("lines", 0)), Some(offset(9)));

        let moved = Some(layout::encode_offset(offset(21)).to_vec());
        rows.take(Changes::from([(layout::partition_row(&changelog()), moved)]));
        assert!(rows.position_is_stale());
        rows.take(rows.opening());
        assert!(rows.position().unwrap().is_empty());
        assert!(!rows.position_is_stale());
    }

    #[test]
    fn a_store_left_open_is_never_called_closed_before_it_is_wiped() {
        let mut rows = opened();
        apply(&mut rows, &batch(Some(10), Some(4)));
        rows.take(Changes::from([(STATUS.to_vec(), Some(OPEN.to_vec()))]));
        assert!(rows.position_is_stale(), "the records may be ahead of it");
        rows.take(rows.opening());
        apply(&mut rows, &batch(Some(11), Some(5)));
        assert!(rows.may_be_ahead() && !rows.has_status(OPEN));
        assert!(!rows.position_is_stale(), "this one is ours");
        rows.take(rows.wiping());
        assert!(!rows.may_be_ahead() && rows.has_status(CLOSED));
    }

    #[test]
    fn forgetting_leaves_header_and_status_only() {
        let mut rows = opened();
        rows.take(Changes::from([(STREAMS_POSITION.to_vec(), Some(vec![0]))]));
        apply(&mut rows, &batch(Some(10), Some(4)));
        let mut forget = WriteBatch::new();
        forget.forget_offsets();
        apply(&mut rows, &forget);
        assert_eq!(rows, opened());
        forget.set_offset(changelog(), offset(3));
        apply(&mut rows, &forget);
        assert_eq!(rows.offsets().get(&changelog()), Some(offset(3)));
    }

    #[test]
    fn an_open_that_finds_all_in_order_writes_nothing() {
        let mut rows = opened();
        apply(&mut rows, &batch(Some(10), Some(4)));
        assert_eq!(rows.opening(), Changes::new());
    }

    #[test]
    fn a_newer_header_or_an_unknown_status_is_a_newer_format() {
        let mut newer = codec::encode_header(layout::NAME);
        newer[0] += 1;
        let end = newer.len() - 4;
        let checksum = crc32(&newer[..end]).to_be_bytes();
        newer[end..].copy_from_slice(&checksum);
        let of = |key: &[u8], value: Vec<u8>| Bookkeeping::from_iter([(key.to_vec(), value)]);
        assert_eq!(of(HEADER, newer).check().unwrap_err().kind(), ErrorKind::NewerFormat);
        assert_eq!(of(STATUS, vec![0, 0, 0, 0, 0, 0, 0, 3]).check().unwrap_err().kind(), ErrorKind::NewerFormat);
        assert_eq!(of(HEADER, b"nonsense".to_vec()).check().unwrap_err().kind(), ErrorKind::Corrupted);
        opened().check().unwrap();
    }

    /// CRC-32 of IEEE 802.3, bit by bit.
    fn crc32(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0_u32, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
        })
    }
}
