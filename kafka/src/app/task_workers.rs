use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use kstate_api::{Error, ErrorKind, PartitionPosition, Position, ReadOnlyKeyValueStore, Result, TopicPartition};
use kstate_processing::{Epoch, Executor, PositionSnapshot, Submission, Submitted};

use super::{
    AppStats, OwnedRecord,
    definition::Definition,
    effects::Effects,
    processing::{SharedProcessor, WorkerProcessing},
    task_stores::TaskStores,
};

/// The workers of one task.
pub(crate) struct TaskWorkers {
    executor: Executor<SharedProcessor>,
    partitions: BTreeMap<TopicPartition, Assigned>,
    /// Records for which there was no room, in the order in which they came.
    held: VecDeque<(TopicPartition, Submission<OwnedRecord>)>,
    /// Whether it has been full, and has not been half empty since.
    full: bool,
    max_in_flight: usize,
    /// The positions of the checkpoint under way.
    taken: Vec<(TopicPartition, PositionSnapshot)>,
}

struct Assigned {
    epoch: Epoch,
    committed: PartitionPosition,
}

impl TaskWorkers {
    pub(crate) fn new(processing: &WorkerProcessing, definition: &Definition, stores: &TaskStores) -> Result<Self> {
        let readable = stores.in_order(definition).map(|store| Arc::clone(store) as Arc<dyn ReadOnlyKeyValueStore>);
        let executor = Executor::new(processing.settings, processing.processor.clone(), readable.collect())?;
        Ok(Self {
            executor,
            partitions: BTreeMap::new(),
            held: VecDeque::new(),
            full: false,
            max_in_flight: processing.settings.max_in_flight,
            taken: Vec::new(),
        })
    }

    /// Begins at `position`, or anew there: what was in flight is nobody's any more.
    pub(crate) fn begin(&mut self, position: &Position) {
        self.held.clear();
        self.full = false;
        self.taken.clear();
        for assigned in std::mem::take(&mut self.partitions).into_values() {
            self.executor.revoke(assigned.epoch);
        }
        for (partition, position) in position.iter() {
            let epoch = self.executor.assign(partition.clone(), position.clone());
            self.partitions.insert(partition.clone(), Assigned { epoch, committed: position.clone() });
        }
    }

    /// Takes a record. If there is no room for it, it is held, and no more are to come for now.
    pub(crate) fn submit(&mut self, record: OwnedRecord, effects: &mut Effects<'_>) -> Result<()> {
        let (partition, source) = (record.topic_partition(), record.get());
        let (offset, key) = (source.offset(), source.key().map(<[u8]>::to_vec));
        let submission = Submission::new(offset, record);
        let submission = if let Some(key) = key { submission.with_key(key) } else { submission };
        self.held.push_back((partition, submission));
        self.admit(effects)
    }

    /// Applies what the workers have brought and gives them more to do; if `admits`, of what is held too.
    pub(crate) fn drive(&mut self, admits: bool, effects: &mut Effects<'_>) -> Result<()> {
        self.executor.poll(Instant::now(), effects)?;
        if admits { self.admit(effects) } else { Ok(()) }
    }

    fn admit(&mut self, effects: &mut Effects<'_>) -> Result<()> {
        while let Some((partition, submission)) = self.held.pop_front() {
            let Some(assigned) = self.partitions.get(&partition) else {
                let message = format!("a record of {partition} came, which is not assigned");
                return Err(Error::new(ErrorKind::InvalidArgument, message));
            };
            if let Submitted::Full(again) = self.executor.submit(assigned.epoch, submission, Instant::now(), effects)? {
                self.held.push_front((partition, again));
                self.full = true;
                return Ok(());
            }
        }
        self.full &= self.executor.in_flight() > self.max_in_flight / 2;
        Ok(())
    }

    /// Whether no more records are to come for now: some wait for room. It ends only when there is much room again, for to
    /// begin anew costs a request.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Whether nothing is being processed, nor waits for another attempt.
    pub(crate) fn is_idle(&self) -> bool {
        self.executor.in_flight() == 0
    }

    /// How many records workers have.
    pub(crate) fn running(&self) -> usize {
        self.executor.running()
    }

    /// Waits until a worker brings something, no longer than `limit`.
    pub(crate) fn wait(&self, limit: Duration) {
        // What came is found by whoever drives next.
        let _ = self.executor.wait(limit);
    }

    /// What is to be committed, where it differs from what is; `None` if what is in flight has to end first. `read` is
    /// how far the consumer has read.
    ///
    /// # Errors
    /// `Poisoned` if the effects of a record may be applied in part.
    pub(crate) fn position(&mut self, read: &Position) -> Result<Option<Position>> {
        if self.held.is_empty() {
            for (partition, assigned) in &self.partitions {
                read.next(partition).into_iter().for_each(|next| self.executor.observe(assigned.epoch, next));
            }
        }
        let Some(positions) = self.executor.positions()? else { return Ok(None) };
        let differs = |partition: &TopicPartition, position: &PartitionPosition| {
            self.partitions.get(partition).is_some_and(|assigned| assigned.committed != *position)
        };
        let position = positions
            .iter()
            .map(|(partition, snapshot)| (partition, snapshot.position()))
            .filter(|(partition, position)| differs(partition, position))
            .map(|(partition, position)| (partition.clone(), position.clone()))
            .collect();
        self.taken = positions;
        Ok(Some(position))
    }

    /// The last [`position`](Self::position) is committed.
    pub(crate) fn committed(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        self.executor.committed(&taken);
        for (partition, snapshot) in taken {
            if let Some(assigned) = self.partitions.get_mut(&partition) {
                assigned.committed = snapshot.position().clone();
            }
        }
    }

    /// What it has done and is at, into `stats`.
    pub(crate) fn tell(&self, stats: &mut AppStats) {
        stats.in_flight += self.executor.in_flight() + self.held.len();
        let oldest = self.executor.oldest_since().map(|since| since.elapsed()).unwrap_or_default();
        stats.oldest_in_flight = stats.oldest_in_flight.max(oldest);
        stats.waiting_for_retry += self.executor.parked();
        stats.finished_above += self.executor.held();
        stats.workers = stats.workers.and(&self.executor.stats());
    }
}

impl fmt::Debug for TaskWorkers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskWorkers")
            .field("executor", &self.executor)
            .field("held", &self.held.len())
            .finish_non_exhaustive()
    }
}
