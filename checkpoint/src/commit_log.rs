use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use kstate_api::{Bytes, ChangelogOffsets, CommitOutcome, Error, ErrorKind, Position, Result, WriteBatch, codec};

const MAGIC: &[u8] = b"kstate-checkpoint";
const VERSION: u8 = 1;

/// What the last commit did, as the file keeps it: all that is needed to do it again.
///
/// The file is `magic | version u8 | body | crc32 u32`, the checksum over all before it and integers big-endian. The body
/// is `wipes u8 | offsets | position | count u32`, then for each record `key | 0` or `key | 1 | value`. Offsets and
/// position have the form of [`codec::encode_position`], and these, keys and values their length, a `u64`, before them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Entry {
    /// Whether it was a wipe.
    pub(crate) wipes: bool,
    /// All offsets after it.
    pub(crate) offsets: ChangelogOffsets,
    /// The whole position after it.
    pub(crate) position: Position,
    /// The records, as in the changelog.
    pub(crate) records: Vec<(Bytes, Option<Bytes>)>,
}

impl Entry {
    /// The entry's records as a batch.
    pub(crate) fn batch(&self) -> WriteBatch {
        let mut batch = WriteBatch::new();
        for (key, value) in self.records.iter().cloned() {
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        batch
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = [MAGIC, &[VERSION, u8::from(self.wipes)]].concat();
        // Both are maps from partitions to numbers.
        let offsets: Position = self.offsets.iter().map(|(partition, offset)| (partition.clone(), offset)).collect();
        push(&mut bytes, &codec::encode_position(&offsets)?);
        push(&mut bytes, &codec::encode_position(&self.position)?);
        bytes.extend((self.records.len() as u64).to_be_bytes());
        for (key, value) in &self.records {
            push(&mut bytes, key);
            bytes.push(u8::from(value.is_some()));
            if let Some(value) = value {
                push(&mut bytes, value);
            }
        }
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        Ok(bytes)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = || Error::new(ErrorKind::Corrupted, "the checkpoint file is damaged");
        let (sealed, checksum) = bytes.split_last_chunk::<4>().ok_or_else(damaged)?;
        if crc32fast::hash(sealed) != u32::from_be_bytes(*checksum) {
            return Err(damaged());
        }
        match sealed.strip_prefix(MAGIC).and_then(<[u8]>::split_first).ok_or_else(damaged)? {
            (&VERSION, body) => Self::decode_body(&mut Reader(body)).ok_or_else(damaged),
            (&version, _) if version > VERSION => {
                let message = format!("the checkpoint file has version {version}; this program knows {VERSION}");
                Err(Error::new(ErrorKind::NewerFormat, message))
            }
            _ => Err(damaged()),
        }
    }

    fn decode_body(body: &mut Reader<'_>) -> Option<Self> {
        let wipes = body.flag()?;
        let offsets = codec::decode_position(body.part()?).ok()?;
        let offsets = offsets.iter().map(|(partition, offset)| (partition.clone(), offset.next())).collect();
        let position = codec::decode_position(body.part()?).ok()?;
        let count = body.number()?;
        let mut records = Vec::new();
        for _ in 0..count {
            let key = Bytes::copy_from_slice(body.part()?);
            let value = if body.flag()? { Some(Bytes::copy_from_slice(body.part()?)) } else { None };
            records.push((key, value));
        }
        body.0.is_empty().then_some(Self { wipes, offsets, position, records })
    }

    /// The entry in the file `path`; `None` if there is no file.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>> {
        match fs::read(path) {
            Ok(bytes) => Self::decode(&bytes).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(format!("cannot read {}", path.display()), error)),
        }
    }

    /// Makes this the entry in the file `path`, whole and durable, or leaves the one before.
    ///
    /// An error says whether it may have happened.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let failed = |outcome| {
            move |error| Error::io(format!("cannot write {}", path.display()), error).with_commit_outcome(outcome)
        };
        let bytes = self.encode().map_err(|error| error.with_commit_outcome(CommitOutcome::NotApplied))?;
        let temporary = temporary(path);
        let written = File::create(&temporary).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.sync_all()
        });
        written.map_err(failed(CommitOutcome::NotApplied))?;
        fs::rename(&temporary, path).map_err(failed(CommitOutcome::NotApplied))?;
        sync_directory(path).map_err(failed(CommitOutcome::Unknown))
    }
}

fn temporary(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

/// Makes the file's name survive a power loss.
#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}

/// Directories cannot be synced here; the file system sees to it.
#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

fn push(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend((part.len() as u64).to_be_bytes());
    bytes.extend(part);
}

struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn take(&mut self, len: usize) -> Option<&'b [u8]> {
        let (head, tail) = self.0.split_at_checked(len)?;
        self.0 = tail;
        Some(head)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.take(1)? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    fn part(&mut self) -> Option<&'b [u8]> {
        let len = self.number()?;
        self.take(usize::try_from(len).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use kstate_api::{Offset, TopicPartition};

    use super::*;

    fn entry() -> Entry {
        let mut position = Position::new();
        position.set(TopicPartition::new("lines", 0), Offset::new(9).unwrap());
        Entry {
            wipes: true,
            offsets: ChangelogOffsets::new().with(TopicPartition::new("cl", 3), Offset::new(41).unwrap()),
            position,
            records: vec![("a".into(), Some("1".into())), ("b".into(), Some("".into())), ("".into(), None)],
        }
    }

    #[test]
    fn the_form_of_version_1_is_pinned() {
        let golden = [
            b"kstate-checkpoint\x01".as_slice(),
            b"\x01",
            b"\x00\x00\x00\x00\x00\x00\x00\x19",
            b"\x01\x00\x00\x00\x01\x00\x02cl\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00)\xee4Q9",
            b"\x00\x00\x00\x00\x00\x00\x00\x1c",
            b"\x01\x00\x00\x00\x01\x00\x05lines\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\txo]\x9c",
            b"\x00\x00\x00\x00\x00\x00\x00\x03",
            b"\x00\x00\x00\x00\x00\x00\x00\x01a\x01\x00\x00\x00\x00\x00\x00\x00\x011",
            b"\x00\x00\x00\x00\x00\x00\x00\x01b\x01\x00\x00\x00\x00\x00\x00\x00\x00",
            b"\x00\x00\x00\x00\x00\x00\x00\x00\x00",
            b"r\xcd\x9a\x89",
        ]
        .concat();
        assert_eq!(entry().encode().unwrap(), golden);
        assert_eq!(Entry::decode(&golden).unwrap(), entry());
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        for entry in [entry(), Entry::default()] {
            assert_eq!(Entry::decode(&entry.encode().unwrap()).unwrap(), entry);
        }
    }

    #[test]
    fn no_damage_goes_unseen() {
        let bytes = entry().encode().unwrap();
        for place in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[place] ^= 1 << bit;
                assert_eq!(Entry::decode(&damaged).unwrap_err().kind(), ErrorKind::Corrupted, "bit {bit} of {place}");
            }
            assert_eq!(Entry::decode(&bytes[..place]).unwrap_err().kind(), ErrorKind::Corrupted, "cut at {place}");
        }
    }

    #[test]
    fn a_newer_version_is_refused() {
        let mut bytes = entry().encode().unwrap();
        bytes.truncate(bytes.len() - 4);
        bytes[MAGIC.len()] = 2;
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        assert_eq!(Entry::decode(&bytes).unwrap_err().kind(), ErrorKind::NewerFormat);
    }
}
