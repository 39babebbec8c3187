use std::sync::Arc;

use kstate_api::{Cursor, KeyRange, Offset, Order, Position, ReadOnlyKeyValueStore, Result, Snapshot, TopicPartition};

use super::{cursor::CompareCursor, judge::Judge, reads};

/// Two snapshots of the same commit.
#[derive(Debug)]
pub(super) struct CompareSnapshot {
    judge: Arc<Judge>,
    trusted: Arc<dyn Snapshot>,
    candidate: Arc<dyn Snapshot>,
}

impl CompareSnapshot {
    /// Both snapshots; the trusted one alone if there is nothing to compare it with.
    pub(super) fn take(
        judge: &Arc<Judge>,
        trusted: Result<Arc<dyn Snapshot>>,
        candidate: impl FnOnce() -> Result<Arc<dyn Snapshot>>,
    ) -> Result<Arc<dyn Snapshot>> {
        let (trusted, candidate) = judge.judge(|| "snapshot()".into(), trusted, candidate, |_, _| true)?;
        Ok(match candidate {
            Some(candidate) => Arc::new(Self { judge: Arc::clone(judge), trusted, candidate }),
            None => trusted,
        })
    }
}

#[deny(clippy::missing_trait_methods)]
impl ReadOnlyKeyValueStore for CompareSnapshot {
    fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let _turn = self.judge.reading();
        reads::get_with(&self.judge, &*self.trusted, &*self.candidate, key, read)
    }

    fn scan(&self, range: &KeyRange<'_>, order: Order) -> Result<Box<dyn Cursor>> {
        let _turn = self.judge.reading();
        CompareCursor::scan(&self.judge, &*self.trusted, &*self.candidate, range, order)
    }

    fn approximate_num_entries(&self) -> Result<u64> {
        let _turn = self.judge.reading();
        let (answer, candidate) = (self.trusted.approximate_num_entries(), || self.candidate.approximate_num_entries());
        self.judge.same_failure(|| "approximate_num_entries() of a snapshot".into(), answer, candidate)
    }
}

#[deny(clippy::missing_trait_methods)]
impl Snapshot for CompareSnapshot {
    fn committed_offset(&self, partition: &TopicPartition) -> Result<Option<Offset>> {
        let _turn = self.judge.reading();
        let call = || format!("committed_offset({partition}) of a snapshot");
        let (answer, candidate) =
            (self.trusted.committed_offset(partition), || self.candidate.committed_offset(partition));
        self.judge.same(call, answer, candidate)
    }

    fn position(&self) -> Result<Position> {
        let _turn = self.judge.reading();
        self.judge.same(|| "position() of a snapshot".into(), self.trusted.position(), || self.candidate.position())
    }
}
