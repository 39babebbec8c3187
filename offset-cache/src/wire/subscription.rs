use std::collections::{BTreeMap, btree_map::Entry};

use kstate_api::{Error, ErrorKind, Result, TaskId};

use super::{
    TaskOffsetSum,
    bytes::{Reader, length, malformed, put_i32, put_i64, signed, task},
};

/// The versions of Kafka's subscription that carry sums grouped by sub-topology; later ones carry them flat.
const GROUPED: std::ops::RangeInclusive<i32> = 7..=9;
const FLAT: std::ops::RangeInclusive<i32> = 10..=11;

/// The length of a null string.
const NULL: i16 = -1;

/// The field `taskOffsetSums` of the subscription that a member of the classic protocol sends, in `version` of it.
///
/// | versions | form, all integers big-endian |
/// | --- | --- |
/// | 7–9 | `count i32`, each `subtopology i32 \| count i32`, each `partition i32 \| sum i64` |
/// | 10–11 | `count i32`, each `subtopology i32 \| partition i32 \| sum i64 \| named topology` (`i16`, −1 for none) |
///
/// # Errors
/// `Unsupported` for a version without this field or one that is not known, `InvalidArgument` for a task whose numbers
/// are too large for Kafka.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use kstate_api::TaskId;
/// use kstate_offset_cache::wire::{TaskOffsetSum, decode_task_offset_sums, encode_task_offset_sums};
///
/// let sums = BTreeMap::from([(TaskId::new(0, 3), TaskOffsetSum::Latest)]);
/// let bytes = encode_task_offset_sums(11, &sums).unwrap();
/// assert_eq!(bytes.len(), 4 + 4 + 4 + 8 + 2);
/// assert_eq!(decode_task_offset_sums(11, &bytes).unwrap(), (sums, [].as_slice()));
/// ```
pub fn encode_task_offset_sums(version: i32, sums: &BTreeMap<TaskId, TaskOffsetSum>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if is_flat(version)? {
        put_i32(&mut bytes, length(sums.len())?);
        for (task, sum) in sums {
            let (subtopology, partition) = signed(*task)?;
            put_i32(&mut bytes, subtopology);
            put_i32(&mut bytes, partition);
            put_i64(&mut bytes, sum.to_wire());
            bytes.extend(NULL.to_be_bytes());
        }
        return Ok(bytes);
    }
    let mut groups: BTreeMap<i32, Vec<(i32, TaskOffsetSum)>> = BTreeMap::new();
    for (task, sum) in sums {
        let (subtopology, partition) = signed(*task)?;
        groups.entry(subtopology).or_default().push((partition, *sum));
    }
    put_i32(&mut bytes, length(groups.len())?);
    for (subtopology, partitions) in groups {
        put_i32(&mut bytes, subtopology);
        put_i32(&mut bytes, length(partitions.len())?);
        for (partition, sum) in partitions {
            put_i32(&mut bytes, partition);
            put_i64(&mut bytes, sum.to_wire());
        }
    }
    Ok(bytes)
}

/// The sums in a field `taskOffsetSums` of `version`, and the bytes that come after the field.
///
/// # Errors
/// `Unsupported` for a version without this field or one that is not known, or for a task of a named topology;
/// `InvalidArgument` for bytes that are not of that form, for a negative number that is no sentinel, and for a task
/// that is there twice.
///
/// ```
/// use kstate_offset_cache::wire::decode_task_offset_sums;
///
/// let (sums, rest) = decode_task_offset_sums(9, &[0, 0, 0, 0, 5]).unwrap();
/// assert!(sums.is_empty() && rest == [5]);
/// ```
pub fn decode_task_offset_sums(version: i32, bytes: &[u8]) -> Result<(BTreeMap<TaskId, TaskOffsetSum>, &[u8])> {
    let flat = is_flat(version)?;
    let mut reader = Reader::new(bytes);
    let mut sums = BTreeMap::new();
    for _ in 0..count(&mut reader)? {
        let subtopology = reader.i32()?;
        if flat {
            read_sum(&mut reader, subtopology, &mut sums)?;
            if reader.i16()? != NULL {
                return Err(Error::new(ErrorKind::Unsupported, "there are no named topologies here"));
            }
        } else {
            for _ in 0..count(&mut reader)? {
                read_sum(&mut reader, subtopology, &mut sums)?;
            }
        }
    }
    Ok((sums, reader.rest()))
}

fn is_flat(version: i32) -> Result<bool> {
    if FLAT.contains(&version) {
        return Ok(true);
    }
    if GROUPED.contains(&version) {
        return Ok(false);
    }
    let message = format!(
        "a subscription of version {version} has no task offset sums that are known here, only {} to {}",
        GROUPED.start(),
        FLAT.end(),
    );
    Err(Error::new(ErrorKind::Unsupported, message))
}

fn count(reader: &mut Reader<'_>) -> Result<i32> {
    Some(reader.i32()?).filter(|count| *count >= 0).ok_or_else(|| malformed("a count is negative"))
}

fn read_sum(reader: &mut Reader<'_>, subtopology: i32, sums: &mut BTreeMap<TaskId, TaskOffsetSum>) -> Result<()> {
    let task = task(subtopology, reader.i32()?)?;
    let sum = TaskOffsetSum::from_wire(reader.i64()?)?;
    match sums.entry(task) {
        Entry::Vacant(free) => {
            free.insert(sum);
            Ok(())
        }
        Entry::Occupied(_) => Err(malformed(&format!("task {task} is there twice"))),
    }
}
