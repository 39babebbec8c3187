//! The file of the toy backend: whole batches, one after the other, each with its length and checksum.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    path::Path,
};

use bytes::Bytes;
use kstate_api::{Error, Offset, Result, TopicPartition, WriteBatch, codec};

/// One step of the store: a batch, or a wipe.
#[derive(Debug)]
pub(crate) enum Entry {
    Batch(WriteBatch),
    Wipe,
}

const WIPE: u8 = 1;
const FORGET: u8 = 2;

/// FNV-1a: enough to tell a torn entry from a whole one.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3))
}

fn push(bytes: &mut Vec<u8>, field: &[u8]) {
    bytes.extend(u32::try_from(field.len()).unwrap().to_be_bytes());
    bytes.extend(field);
}

fn push_offset(bytes: &mut Vec<u8>, partition: &TopicPartition, offset: Offset) {
    push(bytes, partition.topic().as_bytes());
    bytes.extend(partition.partition().to_be_bytes());
    bytes.extend(offset.get().to_be_bytes());
}

impl Entry {
    /// The entry's bytes, with length and checksum.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        match self {
            Self::Wipe => body.push(WIPE),
            Self::Batch(batch) => {
                body.push(if batch.forgets_offsets() { FORGET } else { 0 });
                body.extend(u32::try_from(batch.len()).unwrap().to_be_bytes());
                for (key, value) in batch.records() {
                    push(&mut body, key);
                    body.push(value.is_some().into());
                    push(&mut body, value.map_or(&[], |value| value));
                }
                body.extend(u32::try_from(batch.offsets().len()).unwrap().to_be_bytes());
                for (partition, offset) in batch.offsets().iter() {
                    push_offset(&mut body, partition, offset);
                }
                push(&mut body, &codec::encode_position(batch.position()).unwrap());
            }
        }
        let mut bytes = Vec::with_capacity(body.len() + 16);
        bytes.extend((body.len() as u64).to_be_bytes());
        bytes.extend(checksum(&body).to_be_bytes());
        bytes.extend(body);
        bytes
    }

    fn decode(body: &[u8]) -> Self {
        let mut fields = Fields(body);
        let flags = fields.array::<1>()[0];
        if flags == WIPE {
            return Self::Wipe;
        }
        let mut batch = WriteBatch::new();
        if flags == FORGET {
            batch.forget_offsets();
        }
        for _ in 0..fields.number() {
            let key = Bytes::copy_from_slice(fields.field());
            let is_put = fields.array::<1>()[0] == 1;
            let value = Bytes::copy_from_slice(fields.field());
            if is_put {
                batch.put(key, value);
            } else {
                batch.delete(key);
            }
        }
        for _ in 0..fields.number() {
            let (partition, offset) = fields.offset();
            batch.set_offset(partition, offset);
        }
        for (partition, position) in codec::decode_position(fields.field()).unwrap().iter() {
            batch.set_position(partition.clone(), position.clone());
        }
        Self::Batch(batch)
    }
}

/// What is left of an entry's body; its checksum was right, so it is whole.
struct Fields<'b>(&'b [u8]);

impl<'b> Fields<'b> {
    fn take(&mut self, len: usize) -> &'b [u8] {
        let (head, tail) = self.0.split_at(len);
        self.0 = tail;
        head
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        self.take(N).try_into().unwrap()
    }

    fn number(&mut self) -> usize {
        u32::from_be_bytes(self.array()) as usize
    }

    fn field(&mut self) -> &'b [u8] {
        let len = self.number();
        self.take(len)
    }

    fn offset(&mut self) -> (TopicPartition, Offset) {
        let topic = std::str::from_utf8(self.field()).unwrap();
        let partition = TopicPartition::new(topic, i32::from_be_bytes(self.array()));
        (partition, Offset::new(i64::from_be_bytes(self.array())).unwrap())
    }
}

/// The open file, and what is not written to it yet.
#[derive(Debug)]
pub(crate) struct Log {
    file: File,
    unwritten: Vec<u8>,
}

impl Log {
    /// Opens the file, and reads its entries up to the first that is torn.
    pub(crate) fn open(path: &Path) -> Result<(Self, Vec<Entry>)> {
        let failed = |error| Error::io("cannot read the log", error);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|error| Error::io("cannot open the log", error))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let (entries, whole) = Self::parse(&bytes);
        file.set_len(whole).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        Ok((Self { file, unwritten: Vec::new() }, entries))
    }

    /// The entries in `bytes` up to the first that is torn, and how many bytes they take.
    pub(crate) fn parse(bytes: &[u8]) -> (Vec<Entry>, u64) {
        let mut entries = Vec::new();
        let mut rest = bytes;
        while let Some((head, tail)) = rest.split_at_checked(16) {
            let len = u64::from_be_bytes(head[..8].try_into().unwrap());
            let Some((body, tail)) = usize::try_from(len).ok().and_then(|len| tail.split_at_checked(len)) else {
                break;
            };
            if checksum(body) != u64::from_be_bytes(head[8..].try_into().unwrap()) {
                break;
            }
            entries.push(Entry::decode(body));
            rest = tail;
        }
        (entries, (bytes.len() - rest.len()) as u64)
    }

    /// Keeps `entry` until the next write.
    pub(crate) fn append(&mut self, entry: &Entry) {
        self.unwritten.extend(entry.encode());
    }

    /// Writes the whole file anew, over what is there, which takes a moment.
    pub(crate) fn rewrite(&mut self) -> Result<()> {
        let failed = |error| Error::io("cannot write the log anew", error);
        self.write()?;
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.read_to_end(&mut bytes)).map_err(failed)?;
        self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0))).map_err(failed)?;
        std::thread::sleep(std::time::Duration::from_millis(4));
        self.file.write_all(&bytes).map_err(failed)
    }

    /// Hands what is kept to the operating system: it survives this process.
    pub(crate) fn write(&mut self) -> Result<()> {
        self.file.write_all(&self.unwritten).map_err(|error| Error::io("cannot write the log", error))?;
        self.unwritten.clear();
        Ok(())
    }

    /// Writes what is kept to the disk: it survives a power loss.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.write()?;
        self.file.sync_data().map_err(|error| Error::io("cannot sync the log", error))
    }
}
