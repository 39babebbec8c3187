use std::{collections::BTreeSet, time::Duration};

use kstate_api::{Position, TopicPartition};

/// What a changelog does with its oldest records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogRetention {
    /// It is compacted: the newest record of each key stays, so the log holds the whole state from its start on.
    Compacted,
    /// It drops the oldest records, whatever their keys. A state whose records are gone cannot be rebuilt from it.
    DropsOldest,
}

/// How to restore.
///
/// ```
/// use kstate_checkpoint::RestoreOptions;
///
/// let options = RestoreOptions::new().max_batch_bytes(1 << 20);
/// ```
#[derive(Clone, Debug)]
pub struct RestoreOptions {
    pub(super) retention: LogRetention,
    pub(super) max_batch_bytes: usize,
    pub(super) stall_timeout: Duration,
    pub(super) source_starts: Position,
    pub(super) bare: BTreeSet<TopicPartition>,
}

impl Default for RestoreOptions {
    fn default() -> Self {
        Self {
            retention: LogRetention::Compacted,
            max_batch_bytes: 4 << 20,
            stall_timeout: Duration::from_secs(30),
            source_starts: Position::new(),
            bare: BTreeSet::new(),
        }
    }
}

impl RestoreOptions {
    /// A compacted log, batches of 4 MiB, 30 s without progress are an error.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What the changelog does with its oldest records.
    #[must_use]
    pub fn retention(mut self, retention: LogRetention) -> Self {
        self.retention = retention;
        self
    }

    /// How many bytes to gather before they are applied to the store in one step. One more such batch waits, and another
    /// is gathered, while one is applied.
    #[must_use]
    pub fn max_batch_bytes(mut self, bytes: usize) -> Self {
        self.max_batch_bytes = bytes;
        self
    }

    /// Where the logs of source partitions begin of which the group has committed nothing.
    ///
    /// If such a log begins above zero, the group's offsets have expired or were deleted: what was processed before does
    /// not come again, and the state cannot be told from that of a checkpoint which never ended. A restore that finds
    /// such state is refused then, and nothing is changed.
    #[must_use]
    pub fn source_starts(mut self, starts: Position) -> Self {
        self.source_starts = starts;
        self
    }

    /// Source partitions of which the group has a bare offset: somebody who does not know of finished ranges has set it.
    ///
    /// A checkpoint with finished ranges (clause A5) counts as committed there as soon as its next offset is. Records
    /// that it had finished above come again then, and take effect twice; were the checkpoint passed over, the effect of
    /// records that do not come again would be lost.
    #[must_use]
    pub fn bare_offsets(mut self, partitions: BTreeSet<TopicPartition>) -> Self {
        self.bare = partitions;
        self
    }

    /// How long to wait for the next record or marker before the restore fails as `Unavailable`.
    #[must_use]
    pub fn stall_timeout(mut self, timeout: Duration) -> Self {
        self.stall_timeout = timeout;
        self
    }
}
