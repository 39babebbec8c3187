use std::{collections::VecDeque, time::Duration};

use kstate_api::TopicPartition;
use kstate_kafka::{Cluster, GroupOffsets};

use crate::{failure::Failure, stop::Stop};

/// How long to wait before the group's committed offsets are asked for again.
const PAUSE: Duration = Duration::from_millis(5);

/// How far the feeder is ahead of what the counting group has committed.
///
/// An embedded cluster drops the oldest records of a partition that holds more than 5 MiB, counted or not; so the
/// feeder must wait, and for the committed offset at that: what is only counted may have to be counted again.
pub(crate) struct Window {
    group: GroupOffsets,
    limit: u64,
    topic_partitions: Vec<TopicPartition>,
    /// In the same order.
    partitions: Vec<PartitionWindow>,
}

#[derive(Debug, Default)]
struct PartitionWindow {
    /// The first offset that is not committed.
    committed: i64,
    /// The lengths of the records from there on.
    lens: VecDeque<u64>,
    bytes: u64,
}

impl PartitionWindow {
    fn sent(&mut self, len: u64) {
        self.lens.push_back(len);
        self.bytes += len;
    }

    fn commit(&mut self, committed: i64) {
        while self.committed < committed
            && let Some(len) = self.lens.pop_front()
        {
            self.committed += 1;
            self.bytes -= len;
        }
    }

    /// A record that is larger than the limit passes alone.
    fn has_room(&self, len: u64, limit: u64) -> bool {
        self.bytes == 0 || self.bytes + len <= limit
    }

    fn end(&self) -> i64 {
        self.committed + i64::try_from(self.lens.len()).unwrap_or(i64::MAX)
    }
}

impl Window {
    /// Keeps at most `limit` bytes of each of `partitions` ahead of `group`.
    pub(crate) fn new(
        cluster: &Cluster,
        group: &str,
        partitions: &[TopicPartition],
        limit: u64,
    ) -> Result<Self, Failure> {
        let group = GroupOffsets::new(cluster, group)?;
        let windows = partitions.iter().map(|_| PartitionWindow::default()).collect();
        Ok(Self { group, limit, topic_partitions: partitions.to_vec(), partitions: windows })
    }

    /// Whether a record of `len` bytes may be sent to `partition` at once.
    pub(crate) fn has_room(&self, partition: usize, len: u64) -> bool {
        self.partitions.get(partition).is_some_and(|window| window.has_room(len, self.limit))
    }

    /// Waits until a record of `len` bytes may be sent to `partition`.
    pub(crate) fn wait_for_room(&mut self, partition: usize, len: u64, stop: &Stop) -> Result<(), Failure> {
        loop {
            stop.check()?;
            self.refresh()?;
            if self.has_room(partition, len) {
                return Ok(());
            }
            stop.sleep(PAUSE)?;
        }
    }

    /// Takes note of a record of `len` bytes sent to `partition`.
    pub(crate) fn sent(&mut self, partition: usize, len: u64) {
        if let Some(window) = self.partitions.get_mut(partition) {
            window.sent(len);
        }
    }

    /// One past the last offset of each partition, if nobody else wrote to the topic.
    pub(crate) fn ends(&self) -> Vec<i64> {
        self.partitions.iter().map(PartitionWindow::end).collect()
    }

    fn refresh(&mut self) -> Result<(), Failure> {
        let committed = self.group.committed(&self.topic_partitions)?;
        for (partition, window) in self.topic_partitions.iter().zip(&mut self.partitions) {
            if let Some(next) = committed.position.next(partition) {
                window.commit(next.get());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_comes_back_with_commits() {
        let mut window = PartitionWindow::default();
        assert!(window.has_room(100, 10), "alone, any record passes");
        for len in [4, 4, 2] {
            assert!(window.has_room(len, 10));
            window.sent(len);
        }
        assert!(!window.has_room(1, 10));
        window.commit(1);
        assert!(window.has_room(4, 10) && !window.has_room(5, 10));
        window.commit(1);
        assert_eq!((window.bytes, window.end()), (6, 3));
        // Beyond what was sent nothing is known.
        window.commit(9);
        assert_eq!((window.bytes, window.end()), (0, 3));
    }
}
