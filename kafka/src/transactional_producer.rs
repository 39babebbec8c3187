use std::{
    cell::Cell,
    fmt,
    time::{Duration, Instant},
};

use kstate_api::{ChangelogOffsets, CommitOutcome, Error, ErrorKind, Position, Result, TopicPartition};
use kstate_checkpoint::{ChangelogRecord, ChangelogWriter, SourceCommitter};
use rdkafka::{error::KafkaError, producer::Producer};

use crate::{
    Cluster, SourceConsumer,
    error::{fatal_error, transaction_error},
    sender::{Output, Sender},
};

/// The broker aborts a transaction that takes longer. Until then a producer that died holds up everyone who reads
/// committed records only.
pub(crate) const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(10);
/// How long one call into a transaction may take before it is tried again.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one part of an abort may take. The next part goes on where it was.
const ABORT_STEP: Duration = Duration::from_millis(50);

/// Writes changelogs, outputs and source positions in one Kafka transaction: exactly once.
///
/// A transaction begins by itself with the first record. It ends with the [`committer`](Self::committer)'s commit,
/// which is the source commit of a [`checkpoint`](kstate_checkpoint::checkpoint), or with [`abort`](Self::abort).
/// After any error of a checkpoint before its source commit: abort, roll the stores back, and seek the source to what
/// is committed; the outputs of the transaction are gone, so their source records have to be processed again.
///
/// One producer belongs to one task at a time. A second one with the same transactional id *fences* the first, whose
/// calls answer `Fenced` from then on: it has to be dropped, and its tasks closed without a commit.
///
/// ```no_run
/// use std::{slice, time::Duration};
/// use kstate_api::TopicPartition;
/// use kstate_checkpoint::{Task, checkpoint};
/// use kstate_kafka::{Cluster, SourceConsumer, TransactionalProducer};
///
/// # fn example(task: Task) -> kstate_api::Result<()> {
/// let cluster = Cluster::new("localhost:9092");
/// let producer = TransactionalProducer::new(&cluster, "my-app-0_0", Duration::from_secs(30))?;
/// let mut lines = SourceConsumer::assign(&cluster, "my-app", slice::from_ref(&TopicPartition::new("lines", 0)))?;
/// producer.send(&TopicPartition::new("counts", 0), Some(b"word"), Some(b"1"))?;
/// let position = lines.position()?;
/// checkpoint(&[task], &position, &mut &producer, &mut producer.committer(&mut lines))?;
/// # Ok(())
/// # }
/// ```
pub struct TransactionalProducer {
    sender: Sender,
    transactional_id: String,
    /// Whether a transaction is under way.
    open: Cell<bool>,
}

impl TransactionalProducer {
    /// Makes a producer of `transactional_id`, fences any older one with this id, and waits until its transaction was
    /// ended. A call that takes longer than `timeout` fails.
    ///
    /// # Errors
    /// `Config` for a property that the client does not take; `Unavailable` if the brokers do not answer in time.
    pub fn new(cluster: &Cluster, transactional_id: &str, timeout: Duration) -> Result<Self> {
        let timeout_ms = TRANSACTION_TIMEOUT.as_millis().to_string();
        let own = [
            ("transactional.id", transactional_id),
            ("transaction.timeout.ms", timeout_ms.as_str()),
            // Adding offsets right after another transaction is refused at first; by default it is tried again late.
            ("retry.backoff.ms", "10"),
            // It may not be longer than a transaction.
            ("message.timeout.ms", timeout_ms.as_str()),
        ];
        let sender = Sender::new(cluster, timeout, &own)?;
        let producer = Self { sender, transactional_id: transactional_id.to_owned(), open: Cell::new(false) };
        producer.retried("cannot begin to use transactions", |producer| {
            producer.sender.client().init_transactions(CALL_TIMEOUT)
        })?;
        Ok(producer)
    }

    /// Sends one output record, as a part of the transaction. It may wait for room, but not for the delivery, which the
    /// next flush or commit waits for.
    ///
    /// # Errors
    /// `InvalidArgument` if the broker would refuse the record for its size; `Fenced`; or what the client met.
    pub fn send(&self, partition: &TopicPartition, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<()> {
        self.send_output(&Output { topic: partition.topic(), partition: Some(partition.partition()), key, value })
    }

    /// As [`send`](Self::send), to the partition of the key: the same that Kafka's Java client takes. Without a key,
    /// to any.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_by_key(&self, topic: &str, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<()> {
        self.send_output(&Output { topic, partition: None, key, value })
    }

    pub(crate) fn send_output(&self, output: &Output<'_>) -> Result<()> {
        self.sender.check_output(output)?;
        self.begin()?;
        let sent = self.sender.send_output(output);
        sent.map_err(|error| self.why(transaction_error(&format!("cannot send to {}", output.topic), error)))
    }

    /// Whether a transaction is under way: something was sent and not committed yet.
    pub(crate) fn is_open(&self) -> bool {
        self.open.get()
    }

    /// What commits the transaction together with positions of `source`'s group: the source commit of a checkpoint.
    pub fn committer<'p>(&'p self, source: &'p mut SourceConsumer) -> TransactionCommitter<'p> {
        TransactionCommitter { producer: self, source }
    }

    /// Ends the transaction as if it had never been; does nothing if there is none. The next record begins another.
    ///
    /// # Errors
    /// `Fenced` if another producer has taken over, which aborted the transaction; else what the client met.
    pub fn abort(&self) -> Result<()> {
        if !self.open.get() {
            return Ok(());
        }
        self.retried("cannot abort the transaction", |producer| {
            // The client waits until it was heard of every record of the transaction, and does not listen itself.
            producer.sender.take_reports();
            producer.sender.client().abort_transaction(ABORT_STEP)
        })?;
        self.open.set(false);
        // Deliveries of records that were aborted, and their failures, are nobody's any more.
        self.sender.forget();
        Ok(())
    }

    fn begin(&self) -> Result<()> {
        if !self.open.get() {
            let begun = self.sender.client().begin_transaction();
            begun.map_err(|error| self.why(transaction_error("cannot begin a transaction", error)))?;
            self.open.set(true);
        }
        Ok(())
    }

    /// The reason for what failed: records of a fenced producer are refused or thrown away, which says little.
    fn why(&self, failed: Error) -> Error {
        match self.sender.client().client().fatal_error() {
            Some((code, reason)) => fatal_error(code, &reason).with_source(failed),
            None => failed,
        }
    }

    /// Calls again for as long as the client says that this is the right thing, within the timeout.
    fn retried(&self, what: &str, call: impl Fn(&Self) -> rdkafka::error::KafkaResult<()>) -> Result<()> {
        let deadline = Instant::now() + self.sender.timeout();
        loop {
            match call(self) {
                Ok(()) => return Ok(()),
                Err(KafkaError::Transaction(error)) if error.is_retriable() && Instant::now() < deadline => {
                    tracing::debug!(transactional_id = self.transactional_id, %error, "{what}; trying again");
                }
                Err(error) => return Err(transaction_error(what, error)),
            }
        }
    }
}

impl ChangelogWriter for &TransactionalProducer {
    fn check(&self, record: ChangelogRecord<'_>) -> Result<()> {
        self.sender.check_change(record)
    }

    fn append(&mut self, partition: &TopicPartition, record: ChangelogRecord<'_>) -> Result<()> {
        self.sender.check_change(record)?;
        self.begin()?;
        self.sender.send_change(partition, record).map_err(|error| self.why(error))
    }

    fn flush(&mut self) -> Result<ChangelogOffsets> {
        self.sender.flush().map_err(|error| self.why(error))
    }
}

impl Drop for TransactionalProducer {
    fn drop(&mut self) {
        // The broker would do it too, after the transaction's timeout; until then readers would wait.
        if let Err(error) = self.abort() {
            tracing::warn!(transactional_id = self.transactional_id, %error, "a transaction was left to its timeout");
        }
    }
}

impl fmt::Debug for TransactionalProducer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactionalProducer")
            .field("transactional_id", &self.transactional_id)
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

/// Commits a transaction together with source positions.
#[derive(Debug)]
pub struct TransactionCommitter<'p> {
    producer: &'p TransactionalProducer,
    source: &'p mut SourceConsumer,
}

impl SourceCommitter for TransactionCommitter<'_> {
    fn commit(&mut self, position: &Position) -> Result<()> {
        let Self { producer, source } = self;
        let not_applied = |error: Error| error.with_commit_outcome(CommitOutcome::NotApplied);
        producer.begin().map_err(not_applied)?;
        // Outputs may be under way although no changelog was written. The client's own wait would not take in their
        // reports.
        producer.sender.flush().map_err(|error| not_applied(producer.why(error)))?;
        // The group refuses a member that it has gone on without, also one whose position has not moved.
        let unchanged = source.unchanged();
        let told = if position.is_empty() { &unchanged } else { position };
        if !told.is_empty() {
            let (positions, group) = source.for_transaction(told).map_err(not_applied)?;
            let client = producer.sender.client();
            producer
                .retried("cannot add the source's position to the transaction", |_| {
                    client.send_offsets_to_transaction(&positions, &group, CALL_TIMEOUT)
                })
                .map_err(not_applied)?;
        }
        let committed = producer.retried("cannot commit the transaction", |producer| {
            producer.sender.client().commit_transaction(CALL_TIMEOUT)
        });
        match committed {
            Ok(()) => {
                producer.open.set(false);
                source.has_committed(position);
                Ok(())
            }
            Err(error) => {
                // Only an error that asks for an abort says that nothing was committed: a commit whose answer was lost
                // may have happened before another producer took over.
                let outcome =
                    if error.kind() == ErrorKind::Aborted { CommitOutcome::NotApplied } else { CommitOutcome::Unknown };
                Err(error.with_commit_outcome(outcome))
            }
        }
    }
}
