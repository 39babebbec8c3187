//! The primitive types of Kafka's protocol.

use kstate_api::{Error, ErrorKind, Result, TaskId};

pub(super) fn put_i32(bytes: &mut Vec<u8>, value: i32) {
    bytes.extend(value.to_be_bytes());
}

pub(super) fn put_i64(bytes: &mut Vec<u8>, value: i64) {
    bytes.extend(value.to_be_bytes());
}

/// An array's or a string's length: the number of its elements.
pub(super) fn length(len: usize) -> Result<i32> {
    i32::try_from(len).map_err(|_| Error::new(ErrorKind::InvalidArgument, format!("{len} elements are too many")))
}

/// A varint without sign, as all lengths in flexible versions are.
pub(super) fn put_unsigned_varint(bytes: &mut Vec<u8>, mut value: u32) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            return bytes.push(low);
        }
        // The low seven bits, and the mark that more follow.
        bytes.push(low | 0x80);
    }
}

/// A task's numbers as Kafka's, which have a sign.
pub(super) fn signed(task: TaskId) -> Result<(i32, i32)> {
    let numbers = i32::try_from(task.subtopology()).ok().zip(i32::try_from(task.partition()).ok());
    numbers.ok_or_else(|| Error::new(ErrorKind::InvalidArgument, format!("Kafka has no numbers for task {task}")))
}

/// The task of Kafka's numbers.
pub(super) fn task(subtopology: i32, partition: i32) -> Result<TaskId> {
    let numbers = u32::try_from(subtopology).ok().zip(u32::try_from(partition).ok());
    let task = numbers.map(|(subtopology, partition)| TaskId::new(subtopology, partition));
    task.ok_or_else(|| malformed(&format!("no task has the numbers {subtopology} and {partition}")))
}

pub(super) fn malformed(what: &str) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("not in Kafka's form: {what}"))
}

/// Reads from the front of a message's bytes.
pub(super) struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    pub(super) const fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'b [u8]> {
        let (head, tail) = self.0.split_at_checked(len).ok_or_else(|| malformed("it ends too early"))?;
        self.0 = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| malformed("it ends too early"))
    }

    pub(super) fn i16(&mut self) -> Result<i16> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    pub(super) fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub(super) fn i64(&mut self) -> Result<i64> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    pub(super) fn unsigned_varint(&mut self) -> Result<u32> {
        let mut value = 0_u32;
        for shift in (0..32).step_by(7) {
            let [byte] = self.array()?;
            let bits = u32::from(byte & 0x7F);
            // The fifth byte has room for four bits.
            if bits.checked_shl(shift).and_then(|shifted| shifted.checked_shr(shift)) != Some(bits) {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(malformed("a length is too large"))
    }

    /// Passes tagged fields, which a version later than ours may have added.
    pub(super) fn skip_tagged_fields(&mut self) -> Result<()> {
        for _ in 0..self.unsigned_varint()? {
            self.unsigned_varint()?;
            let len = self.unsigned_varint()?;
            self.take(usize::try_from(len).map_err(|_| malformed("a field is too long"))?)?;
        }
        Ok(())
    }

    /// What comes after what was read.
    pub(super) const fn rest(self) -> &'b [u8] {
        self.0
    }
}
