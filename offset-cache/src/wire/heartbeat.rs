use std::collections::{BTreeMap, btree_map::Entry};

use kstate_api::{Result, TaskId, TopicPartition};

use super::{
    OffsetSum, TaskOffsetSum,
    bytes::{Reader, length, malformed, put_i32, put_i64, put_unsigned_varint, signed, task},
};
use crate::{AllLogEnds, CachedOffset};

/// What a member of a streams group (KIP-1071) tells of its tasks in a heartbeat: how far its copies have come, and how
/// far the changelogs go. The broker makes lags from the two.
///
/// A field is sent when it changed since it was last sent, and left out (null) otherwise; the broker keeps both in
/// memory only, so after an error everything is sent again.
///
/// ```
/// use kstate_api::{Offset, TaskId, TopicPartition};
/// use kstate_offset_cache::{AllLogEnds, CachedOffset, LogEnds, wire::{HeartbeatOffsets, OffsetSum}};
///
/// let (task, changelog) = (TaskId::new(0, 0), TopicPartition::new("counts-changelog", 0));
/// let ends = LogEnds { start: Offset::ZERO, end: Offset::new(50).unwrap() };
/// let ends = AllLogEnds::from_iter([(changelog.clone(), Ok(ends))]);
/// let stored = CachedOffset::At(Offset::new(41).unwrap());
///
/// let offsets = HeartbeatOffsets::new(&[(task, [changelog])], |_, _| Some(stored), &ends);
/// assert_eq!(offsets.task_offsets[&task], OffsetSum::new(42).unwrap());
/// assert_eq!(offsets.task_end_offsets[&task], OffsetSum::new(50).unwrap());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeartbeatOffsets {
    /// The field `TaskOffsets`: for each task the sum of the next offsets to restore. Running active tasks are not in it.
    pub task_offsets: BTreeMap<TaskId, OffsetSum>,
    /// The field `TaskEndOffsets`: for each of those tasks the sum of its changelogs' ends, [`OffsetSum::MAX`] if one of
    /// them is not known.
    pub task_end_offsets: BTreeMap<TaskId, OffsetSum>,
}

impl HeartbeatOffsets {
    /// What to tell of `tasks`, each with all its changelog partitions, of which `cached` and `ends` say what is known.
    ///
    /// A task of which nothing is in the cache has no copy here and is left out, as is one that runs here.
    ///
    /// ```
    /// use kstate_api::{TaskId, TopicPartition};
    /// use kstate_offset_cache::{AllLogEnds, CachedOffset, wire::HeartbeatOffsets};
    ///
    /// let tasks = [(TaskId::new(0, 0), [TopicPartition::new("counts-changelog", 0)])];
    /// let running = HeartbeatOffsets::new(&tasks, |_, _| Some(CachedOffset::Running), &AllLogEnds::new());
    /// assert_eq!(running, HeartbeatOffsets::default());
    /// ```
    #[must_use]
    pub fn new<P: AsRef<[TopicPartition]>>(
        tasks: &[(TaskId, P)],
        mut cached: impl FnMut(TaskId, &TopicPartition) -> Option<CachedOffset>,
        ends: &AllLogEnds,
    ) -> Self {
        let mut offsets = Self::default();
        for (task, partitions) in tasks {
            let partitions = partitions.as_ref();
            let known: Vec<_> = partitions.iter().map(|partition| cached(*task, partition)).collect();
            if known.iter().all(Option::is_none) {
                continue;
            }
            if let TaskOffsetSum::Sum(sum) = TaskOffsetSum::new(known) {
                let ends: Option<Vec<_>> =
                    partitions.iter().map(|partition| ends.get(partition).map(|ends| ends.end)).collect();
                offsets.task_offsets.insert(*task, sum);
                offsets.task_end_offsets.insert(*task, ends.map_or(OffsetSum::MAX, OffsetSum::of));
            }
        }
        offsets
    }
}

/// A field `TaskOffsets` or `TaskEndOffsets` of a streams group's heartbeat request; `None` is null: unchanged.
///
/// A compact array (`count + 1` as an unsigned varint, 0 for null), each element
/// `subtopology (compact string) | partition i32 | offset i64 | tagged fields`, integers big-endian.
///
/// Brokers take it from version 1 of the request on; to an older one both fields go as null.
///
/// # Errors
/// `InvalidArgument` for a task whose numbers are too large for Kafka.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use kstate_api::TaskId;
/// use kstate_offset_cache::wire::{OffsetSum, encode_task_offsets};
///
/// assert_eq!(encode_task_offsets(None).unwrap(), [0]);
/// let offsets = BTreeMap::from([(TaskId::new(7, 1), OffsetSum::new(42).unwrap())]);
/// let bytes = encode_task_offsets(Some(&offsets)).unwrap();
/// assert_eq!(bytes, [&[2, 2, b'7'], 1_i32.to_be_bytes().as_slice(), &42_i64.to_be_bytes(), &[0]].concat());
/// ```
pub fn encode_task_offsets(offsets: Option<&BTreeMap<TaskId, OffsetSum>>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let Some(offsets) = offsets else {
        put_unsigned_varint(&mut bytes, 0);
        return Ok(bytes);
    };
    put_unsigned_varint(&mut bytes, length(offsets.len())?.unsigned_abs() + 1);
    for (task, offset) in offsets {
        let (subtopology, partition) = signed(*task)?;
        let subtopology = subtopology.to_string();
        put_unsigned_varint(&mut bytes, length(subtopology.len())?.unsigned_abs() + 1);
        bytes.extend(subtopology.as_bytes());
        put_i32(&mut bytes, partition);
        put_i64(&mut bytes, offset.get());
        put_unsigned_varint(&mut bytes, 0);
    }
    Ok(bytes)
}

/// The offsets in such a field, `None` if it is null, and the bytes that come after it.
///
/// # Errors
/// `InvalidArgument` for bytes that are not of that form, for a sub-topology that is not a number, for a negative
/// offset, and for a task that is there twice, which brokers refuse too.
///
/// ```
/// use kstate_offset_cache::wire::decode_task_offsets;
///
/// assert_eq!(decode_task_offsets(&[0, 9]).unwrap(), (None, [9].as_slice()));
/// ```
#[expect(clippy::type_complexity, reason = "two answers, each plain")]
pub fn decode_task_offsets(bytes: &[u8]) -> Result<(Option<BTreeMap<TaskId, OffsetSum>>, &[u8])> {
    let mut reader = Reader::new(bytes);
    let Some(count) = reader.unsigned_varint()?.checked_sub(1) else {
        return Ok((None, reader.rest()));
    };
    let mut offsets = BTreeMap::new();
    for _ in 0..count {
        let subtopology = read_subtopology(&mut reader)?;
        let task = task(subtopology, reader.i32()?)?;
        let offset = OffsetSum::try_from(reader.i64()?)?;
        reader.skip_tagged_fields()?;
        match offsets.entry(task) {
            Entry::Vacant(free) => free.insert(offset),
            Entry::Occupied(_) => return Err(malformed(&format!("task {task} is there twice"))),
        };
    }
    Ok((Some(offsets), reader.rest()))
}

fn read_subtopology(reader: &mut Reader<'_>) -> Result<i32> {
    let len = reader.unsigned_varint()?.checked_sub(1).ok_or_else(|| malformed("a sub-topology is null"))?;
    let name = reader.take(usize::try_from(len).map_err(|_| malformed("a sub-topology's name is too long"))?)?;
    let name = str::from_utf8(name).map_err(|_| malformed("a sub-topology's name is no text"))?;
    // Only the form that is sent: `+1` and `01` are other names than `1`.
    let number = name.parse::<i32>().ok().filter(|number| number.to_string() == name);
    number.ok_or_else(|| malformed(&format!("sub-topology `{name}` is no number")))
}
