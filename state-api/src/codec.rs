//! The bytes in which backends keep offsets, positions and their own header.
//!
//! All integers are big-endian. Each value is `version u8 | body | crc32 u32`, the checksum (CRC-32 of IEEE 802.3)
//! taken over version and body. The forms are pinned by golden tests:
//!
//! | value | version | body |
//! | --- | --- | --- |
//! | offset | 1 | `offset u64` |
//! | position | 1 | `count u32`, then for each partition, sorted: `len u16 \| topic \| partition u32 \| next u64` |
//! | position | 2 | the same, and after each `next`: `count u32`, then for each finished range `start u64 \| end u64` |
//! | header | 1 | `"kstate"`, then `len u8 \| layout` with the layout's name, such as `redb` |
//!
//! A position is written in version 2 only if it has finished ranges, so that older programs read all others.
//!
//! ```
//! use kstate_api::{Offset, codec};
//!
//! let bytes = codec::encode_offset(Offset::ZERO);
//! assert_eq!(bytes.len(), 1 + 8 + 4);
//! ```
//!
//! A backend whose engine has a layout of its own for one of them, as `RocksDB` has Kafka Streams', need not use these.

use std::ops::Range;

use crate::{Error, ErrorKind, Offset, PartitionPosition, Position, Result, TopicPartition};

const VERSION: u8 = 1;
/// The version of a position with finished ranges.
const WITH_RANGES: u8 = 2;
const MAGIC: &[u8] = b"kstate";

fn seal(version: u8, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = vec![version];
    body(&mut bytes);
    let checksum = crc32fast::hash(&bytes);
    bytes.extend(checksum.to_be_bytes());
    bytes
}

fn corrupted(what: &str) -> Error {
    Error::new(ErrorKind::Corrupted, format!("the stored {what} is damaged"))
}

/// Checks checksum and version, which may be up to `newest`, and returns version and body.
fn unseal<'b>(what: &str, newest: u8, bytes: &'b [u8]) -> Result<(u8, Reader<'b>)> {
    let (sealed, checksum) = bytes.split_last_chunk::<4>().ok_or_else(|| corrupted(what))?;
    if crc32fast::hash(sealed) != u32::from_be_bytes(*checksum) {
        return Err(corrupted(what));
    }
    match sealed.split_first() {
        Some((&version, body)) if (VERSION..=newest).contains(&version) => Ok((version, Reader(body))),
        Some((&version, _)) if version > newest => Err(Error::new(
            ErrorKind::NewerFormat,
            format!("the stored {what} has version {version}; this program knows versions up to {newest}"),
        )),
        _ => Err(corrupted(what)),
    }
}

struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn take(&mut self, len: usize) -> Option<&'b [u8]> {
        let (head, tail) = self.0.split_at_checked(len)?;
        self.0 = tail;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn offset(&mut self) -> Option<Offset> {
        Offset::new(i64::from_be_bytes(self.array()?))
    }
}

/// The bytes of an offset.
///
/// ```
/// use kstate_api::{Offset, codec};
///
/// let bytes = codec::encode_offset(Offset::ZERO);
/// assert_eq!(codec::decode_offset(&bytes).unwrap(), Offset::ZERO);
/// ```
#[must_use]
pub fn encode_offset(offset: Offset) -> Vec<u8> {
    seal(VERSION, |bytes| bytes.extend(offset.get().to_be_bytes()))
}

/// The offset in `bytes`.
///
/// # Errors
/// `Corrupted` if the bytes are not those of an offset, `NewerFormat` if a newer version wrote them.
///
/// ```
/// # use kstate_api::codec;
/// assert!(codec::decode_offset(b"nonsense").is_err());
/// ```
pub fn decode_offset(bytes: &[u8]) -> Result<Offset> {
    let (_, mut body) = unseal("offset", VERSION, bytes)?;
    body.offset().filter(|_| body.0.is_empty()).ok_or_else(|| corrupted("offset"))
}

/// The bytes of a position.
///
/// # Errors
/// `InvalidArgument` for a partition that Kafka could not have.
///
/// ```
/// use kstate_api::{Position, codec};
///
/// let bytes = codec::encode_position(&Position::new()).unwrap();
/// assert!(codec::decode_position(&bytes).unwrap().is_empty());
/// ```
pub fn encode_position(position: &Position) -> Result<Vec<u8>> {
    position.iter().try_for_each(|(partition, _)| partition.validate())?;
    let too_large = || Error::new(ErrorKind::InvalidArgument, "the position has too many partitions");
    let count = u32::try_from(position.iter().len()).map_err(|_| too_large())?;
    let has_ranges = position.iter().any(|(_, position)| !position.finished().is_empty());
    Ok(seal(if has_ranges { WITH_RANGES } else { VERSION }, |bytes| {
        bytes.extend(count.to_be_bytes());
        for (partition, position) in position.iter() {
            let topic = partition.topic().as_bytes();
            // A valid name has at most 249 bytes.
            bytes.extend(u16::try_from(topic.len()).unwrap_or(u16::MAX).to_be_bytes());
            bytes.extend(topic);
            bytes.extend(partition.partition().to_be_bytes());
            bytes.extend(position.next().get().to_be_bytes());
            if has_ranges {
                write_ranges(bytes, position.finished());
            }
        }
    }))
}

fn write_ranges(bytes: &mut Vec<u8>, ranges: &[Range<Offset>]) {
    // Each range was a record in memory: there are never so many.
    bytes.extend(u32::try_from(ranges.len()).unwrap_or(u32::MAX).to_be_bytes());
    for range in ranges {
        bytes.extend(range.start.get().to_be_bytes());
        bytes.extend(range.end.get().to_be_bytes());
    }
}

/// The position in `bytes`.
///
/// # Errors
/// `Corrupted` if the bytes are not those of a position, `NewerFormat` if a newer version wrote them.
///
/// ```
/// # use kstate_api::codec;
/// assert!(codec::decode_position(b"nonsense").is_err());
/// ```
pub fn decode_position(bytes: &[u8]) -> Result<Position> {
    let (version, mut body) = unseal("position", WITH_RANGES, bytes)?;
    read_position(&mut body, version == WITH_RANGES).filter(|_| body.0.is_empty()).ok_or_else(|| corrupted("position"))
}

fn read_position(body: &mut Reader<'_>, has_ranges: bool) -> Option<Position> {
    let count = u32::from_be_bytes(body.array()?);
    let mut position = Position::new();
    for _ in 0..count {
        let len = u16::from_be_bytes(body.array()?);
        let topic = std::str::from_utf8(body.take(len.into())?).ok()?;
        let partition = TopicPartition::new(topic, i32::from_be_bytes(body.array()?));
        partition.validate().ok()?;
        let next = body.offset()?;
        let ranges = if has_ranges { read_ranges(body)? } else { Vec::new() };
        position.set(partition, PartitionPosition::new(next, ranges).ok()?);
    }
    Some(position)
}

fn read_ranges(body: &mut Reader<'_>) -> Option<Vec<Range<Offset>>> {
    let count = u32::from_be_bytes(body.array()?);
    (0..count).map(|_| Some(body.offset()?..body.offset()?)).collect()
}

/// The bytes of the header of a store whose layout is called `layout`.
///
/// ```
/// use kstate_api::codec;
///
/// assert!(codec::check_header(&codec::encode_header("redb"), "redb").is_ok());
/// ```
#[must_use]
pub fn encode_header(layout: &str) -> Vec<u8> {
    seal(VERSION, |bytes| {
        bytes.extend(MAGIC);
        bytes.push(u8::try_from(layout.len()).unwrap_or(u8::MAX));
        bytes.extend(layout.as_bytes());
    })
}

/// Checks that `bytes` are the header of a store of `layout` that this version can read.
///
/// # Errors
/// `Corrupted` if the bytes are no header or one of another layout, `NewerFormat` if a newer version wrote them.
///
/// ```
/// # use kstate_api::codec;
/// assert!(codec::check_header(&codec::encode_header("redb"), "other").is_err());
/// ```
pub fn check_header(bytes: &[u8], layout: &str) -> Result<()> {
    unseal("header", VERSION, bytes)?;
    if bytes == encode_header(layout) { Ok(()) } else { Err(corrupted("header")) }
}
