//! A position as the metadata of a committed offset.
//!
//! `"kp" | version u8 | form u8 | base | body | crc32 u32` in base64 without padding; the checksum (CRC-32 of IEEE
//! 802.3, big-endian) is taken over all before it. The base and all numbers of a body of runs are LEB128. Version 1 is
//! pinned by golden tests.
//!
//! | form | body |
//! | --- | --- |
//! | 1, runs | for each range: the offsets between the end of the one before (at first, the base) and it, and its length |
//! | 2, bitmap | a bit for each offset from the one after the base, the lowest first in each byte; 1 is finished |
//!
//! The base is inside, since the metadata may have been written for another offset than the one it is read with. A
//! position without ranges has a body of no runs; that it says so tells it from an offset that somebody else has set.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use kstate_api::{Offset, PartitionPosition};

use crate::MetadataLimit;

const MAGIC: &[u8; 2] = b"kp";
const VERSION: u8 = 1;
const RUNS: u8 = 1;
const BITMAP: u8 = 2;

/// Why the finished ranges in an offset's metadata are not used. What is above the committed offset runs again.
///
/// ```
/// use kstate_api::{Offset, PartitionPosition};
/// use kstate_processing::{PositionMetadata as _, RangesIgnored};
///
/// let other_program = PartitionPosition::from_metadata(Offset::ZERO, "AgAAAAAAAAAA");
/// assert_eq!(other_program, Err(RangesIgnored::Foreign));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RangesIgnored {
    /// There is none: whoever committed the offset knows of no finished ranges.
    Bare,
    /// Another program wrote it, such as Kafka Streams.
    Foreign,
    /// A newer version of this crate wrote it.
    NewerVersion {
        /// The version that is needed to read it.
        version: u8,
    },
    /// Part of it is missing or was changed.
    Damaged,
    /// It belongs to another offset: somebody committed or reset the group's offset without it.
    OtherBase {
        /// The offset it was written for.
        base: Offset,
        /// The offset it was read with.
        committed: Offset,
    },
}

impl fmt::Display for RangesIgnored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bare => f.write_str("the offset has no metadata"),
            Self::Foreign => f.write_str("the offset's metadata is of another program"),
            Self::NewerVersion { version } => {
                write!(f, "the offset's metadata has version {version}; this program knows versions up to {VERSION}")
            }
            Self::Damaged => f.write_str("the offset's metadata is damaged"),
            Self::OtherBase { base, committed } => {
                write!(f, "the offset's metadata is that of offset {base}, but {committed} is committed")
            }
        }
    }
}

impl std::error::Error for RangesIgnored {}

/// The metadata of a position has more characters than the broker takes.
///
/// At least once, commit `next` alone: what is above it runs again. Exactly once, drain first. It does not happen to
/// positions of a tracker that was given the same [`MetadataLimit`].
///
/// ```
/// use kstate_api::{Offset, PartitionPosition};
/// use kstate_processing::{MetadataLimit, PositionMetadata as _};
///
/// # let at = |offset| Offset::new(offset).unwrap();
/// let position = PartitionPosition::new(at(0), [at(1)..at(2)]).unwrap();
/// let error = position.to_metadata(MetadataLimit::new(10)).unwrap_err();
/// assert_eq!((error.characters, error.limit), (14, 10));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataTooLong {
    /// How many it has.
    pub characters: usize,
    /// How many it may have.
    pub limit: usize,
}

impl fmt::Display for MetadataTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the offset's metadata would have {} characters of {}", self.characters, self.limit)
    }
}

impl std::error::Error for MetadataTooLong {}

/// Writes positions as the metadata of committed offsets, and reads them.
pub trait PositionMetadata: Sized {
    /// The position as the metadata of its [`next`](PartitionPosition::next) offset: runs or a bitmap, whichever is
    /// smaller.
    ///
    /// # Errors
    /// [`MetadataTooLong`] if it has more characters than `limit`.
    ///
    /// ```
    /// use kstate_api::{Offset, PartitionPosition};
    /// use kstate_processing::{MetadataLimit, PositionMetadata as _};
    ///
    /// let at = |offset| Offset::new(offset).unwrap();
    /// let position = PartitionPosition::new(at(5), [at(6)..at(1_000_000)]).unwrap();
    /// let metadata = position.to_metadata(MetadataLimit::default()).unwrap();
    /// assert!(metadata.len() < 20);
    /// assert_eq!(PartitionPosition::from_metadata(at(5), &metadata), Ok(position));
    /// ```
    fn to_metadata(&self, limit: MetadataLimit) -> Result<String, MetadataTooLong>;

    /// The position of a group that committed the offset `committed` with `metadata`.
    ///
    /// # Errors
    /// Why the metadata is not used. The position is [`at`](PartitionPosition::at) the committed offset then.
    ///
    /// ```
    /// use kstate_api::{Offset, PartitionPosition};
    /// use kstate_processing::PositionMetadata as _;
    ///
    /// assert!(PartitionPosition::from_metadata(Offset::ZERO, "").is_err());
    /// assert!(PartitionPosition::from_metadata(Offset::ZERO, "written by hand").is_err());
    /// ```
    fn from_metadata(committed: Offset, metadata: &str) -> Result<Self, RangesIgnored>;
}

impl PositionMetadata for PartitionPosition {
    fn to_metadata(&self, limit: MetadataLimit) -> Result<String, MetadataTooLong> {
        let mut bytes = MAGIC.to_vec();
        let runs = runs(self);
        let end = self.finished().last().map_or(self.next(), |last| last.end);
        let bitmap_len = distance(self.next(), end).saturating_sub(1).div_ceil(8);
        let bitmap_is_smaller = bitmap_len < runs.len() as u64;
        bytes.extend([VERSION, if bitmap_is_smaller { BITMAP } else { RUNS }]);
        put_number(&mut bytes, distance(Offset::ZERO, self.next()));
        if bitmap_is_smaller {
            bytes.extend(bitmap(self, bitmap_len));
        } else {
            bytes.extend(runs);
        }
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        let metadata = STANDARD_NO_PAD.encode(bytes);
        let (characters, limit) = (metadata.len(), limit.characters());
        if characters > limit { Err(MetadataTooLong { characters, limit }) } else { Ok(metadata) }
    }

    fn from_metadata(committed: Offset, metadata: &str) -> Result<Self, RangesIgnored> {
        if metadata.is_empty() {
            return Err(RangesIgnored::Bare);
        }
        let bytes = STANDARD_NO_PAD.decode(metadata).map_err(|_| RangesIgnored::Foreign)?;
        let (version, sealed) = match bytes.strip_prefix(MAGIC).and_then(<[u8]>::split_first) {
            Some((version, sealed)) => (*version, sealed),
            None => return Err(RangesIgnored::Foreign),
        };
        if version > VERSION {
            return Err(RangesIgnored::NewerVersion { version });
        }
        let (form, base, body) = unseal(&bytes, sealed).filter(|_| version == VERSION).ok_or(RangesIgnored::Damaged)?;
        if base != committed {
            return Err(RangesIgnored::OtherBase { base, committed });
        }
        let position = match form {
            RUNS => read_runs(base, body),
            BITMAP => read_bitmap(base, body),
            _ => None,
        };
        position.ok_or(RangesIgnored::Damaged)
    }
}

fn runs(position: &PartitionPosition) -> Vec<u8> {
    let mut runs = Vec::new();
    let mut end = position.next();
    for range in position.finished() {
        put_number(&mut runs, distance(end, range.start));
        put_number(&mut runs, distance(range.start, range.end));
        end = range.end;
    }
    runs
}

fn bitmap(position: &PartitionPosition, len: u64) -> Vec<u8> {
    // It is shorter than the runs, which are in memory.
    let mut bitmap = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
    let bit_of = |offset| distance(position.next(), offset) - 1;
    for bit in position.finished().iter().flat_map(|range| bit_of(range.start)..bit_of(range.end)) {
        if let Some(byte) = usize::try_from(bit / 8).ok().and_then(|index| bitmap.get_mut(index)) {
            *byte |= 1 << (bit % 8);
        }
    }
    bitmap
}

/// The form, the base and the body, if the checksum is right.
fn unseal<'b>(bytes: &[u8], sealed: &'b [u8]) -> Option<(u8, Offset, &'b [u8])> {
    let (checked, checksum) = bytes.split_last_chunk::<4>()?;
    let (sealed, _) = sealed.split_last_chunk::<4>()?;
    if crc32fast::hash(checked) != u32::from_be_bytes(*checksum) {
        return None;
    }
    let (form, mut body) = sealed.split_first()?;
    let base = advance(Offset::ZERO, take_number(&mut body)?)?;
    Some((*form, base, body))
}

fn read_runs(base: Offset, mut body: &[u8]) -> Option<PartitionPosition> {
    let mut position = PartitionPosition::at(base);
    let mut end = base;
    while !body.is_empty() {
        let start = advance(end, take_number(&mut body)?).filter(|start| *start > end)?;
        end = advance(start, take_number(&mut body)?).filter(|end| *end > start)?;
        position.finish(start..end);
    }
    Some(position)
}

fn read_bitmap(base: Offset, body: &[u8]) -> Option<PartitionPosition> {
    let mut position = PartitionPosition::at(base);
    let mut offset = base.next();
    for byte in body {
        for bit in 0..8 {
            let next = advance(offset, 1)?;
            if byte & (1 << bit) != 0 {
                position.finish(offset..next);
            }
            offset = next;
        }
    }
    Some(position)
}

/// How far `to` is above `from`.
fn distance(from: Offset, to: Offset) -> u64 {
    to.get().abs_diff(from.get())
}

/// The offset `by` above `from`, if there is one.
fn advance(from: Offset, by: u64) -> Option<Offset> {
    from.get().checked_add_unsigned(by).and_then(Offset::new)
}

fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    loop {
        let [lowest, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            return bytes.push(lowest);
        }
        bytes.push(lowest | 0x80);
    }
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}
