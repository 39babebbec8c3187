use std::time::Duration;

use kstate_api::{Offset, Result, TopicPartition};
use kstate_checkpoint::{ChangelogReader, ChangelogRecord, LogBounds};

use crate::ChangelogConsumer;

/// A changelog that fails as soon as nobody wants what is read of it.
pub(super) struct Cancellable<'r, C> {
    reader: &'r mut ChangelogConsumer,
    check: C,
}

impl<'r, C: Fn() -> Result<()>> Cancellable<'r, C> {
    /// `check` fails once it is not wanted any more.
    pub(super) fn new(reader: &'r mut ChangelogConsumer, check: C) -> Self {
        Self { reader, check }
    }
}

impl<C: Fn() -> Result<()>> ChangelogReader for Cancellable<'_, C> {
    fn bounds(&mut self, partition: &TopicPartition) -> Result<LogBounds> {
        (self.check)()?;
        self.reader.bounds(partition)
    }

    fn seek(&mut self, partition: &TopicPartition, next: Offset) -> Result<()> {
        self.reader.seek(partition, next)
    }

    fn poll(&mut self, timeout: Duration, read: &mut dyn FnMut(Offset, ChangelogRecord<'_>)) -> Result<bool> {
        (self.check)()?;
        self.reader.poll(timeout, read)
    }

    fn position(&mut self) -> Result<Offset> {
        self.reader.position()
    }
}
