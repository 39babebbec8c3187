use std::{error::Error as StdError, fmt};

use kstate_api::TaskId;

use super::{SourceRecord, TaskContext};

/// What processing one record comes to. Any error will do: `?` takes them all.
pub type ProcessingResult = Result<(), Box<dyn StdError + Send + Sync>>;

/// What an application does with each record of one task.
///
/// A task is one partition of the source topics; its records come one after the other, in their order. Every function
/// `Fn(&SourceRecord, &TaskContext) -> ProcessingResult` is a processor.
///
/// Whatever it keeps besides its stores is lost when the task moves, and when what was done since the last checkpoint is
/// taken back: the task goes on with a new processor then.
///
/// ```
/// use kstate_kafka::app::{ProcessingResult, Processor, SourceRecord, TaskContext};
///
/// /// Counts records, and stores the count once for each checkpoint.
/// #[derive(Default)]
/// struct Count(u64);
///
/// impl Processor for Count {
///     fn process(&mut self, _record: &SourceRecord<'_>, _context: &TaskContext<'_>) -> ProcessingResult {
///         self.0 += 1;
///         Ok(())
///     }
///
///     fn before_checkpoint(&mut self, context: &TaskContext<'_>) -> ProcessingResult {
///         let counted = std::mem::take(&mut self.0);
///         context.store("counts")?.put(b"last", &counted.to_be_bytes())?;
///         Ok(())
///     }
/// }
/// ```
pub trait Processor: Send {
    /// Processes one record.
    ///
    /// # Errors
    /// Whatever it met. [`App::on_error`](super::App::on_error) decides what becomes of the record, unless a store or
    /// the client has failed: that is the runner's to mend.
    fn process(&mut self, record: &SourceRecord<'_>, context: &TaskContext<'_>) -> ProcessingResult;

    /// Called before each checkpoint of the task, for what was gathered to go to the stores or the outputs.
    ///
    /// # Errors
    /// Whatever it met; the app ends with it, since nobody could tell which records it is about.
    fn before_checkpoint(&mut self, context: &TaskContext<'_>) -> ProcessingResult {
        let _ = context;
        Ok(())
    }
}

impl<F> Processor for F
where
    F: FnMut(&SourceRecord<'_>, &TaskContext<'_>) -> ProcessingResult + Send,
{
    fn process(&mut self, record: &SourceRecord<'_>, context: &TaskContext<'_>) -> ProcessingResult {
        self(record, context)
    }
}

/// Makes the processor of each task. Every function `Fn(TaskId) -> Box<dyn Processor>` is one.
///
/// ```
/// use kstate_kafka::app::{ProcessorSupplier, Processor};
/// # use kstate_kafka::app::{ProcessingResult, SourceRecord, TaskContext};
/// # #[derive(Default)] struct Count;
/// # impl Processor for Count {
/// #     fn process(&mut self, _: &SourceRecord<'_>, _: &TaskContext<'_>) -> ProcessingResult { Ok(()) }
/// # }
/// fn supplier() -> impl ProcessorSupplier {
///     |_task| Box::new(Count::default()) as Box<dyn Processor>
/// }
/// # supplier().processor(kstate_api::TaskId::new(0, 0));
/// ```
pub trait ProcessorSupplier: Send + Sync {
    /// A new processor for `task`.
    fn processor(&self, task: TaskId) -> Box<dyn Processor>;
}

impl<F> ProcessorSupplier for F
where
    F: Fn(TaskId) -> Box<dyn Processor> + Send + Sync,
{
    fn processor(&self, task: TaskId) -> Box<dyn Processor> {
        self(task)
    }
}

/// What becomes of a record whose processing failed.
///
/// ```
/// use kstate_kafka::app::OnError;
///
/// assert_ne!(OnError::Skip, OnError::Fail);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// It counts as done, and with it what it had written before the error.
    Skip,
    /// The app ends with the error. Nothing since the last checkpoint is committed, so the record comes again.
    Fail,
}

/// A record whose processing failed, for [`App::on_error`](super::App::on_error).
///
/// ```
/// use kstate_kafka::app::{OnError, ProcessingFailure};
///
/// fn decide(failure: &ProcessingFailure<'_>) -> OnError {
///     eprintln!("{} of task {}: {}", failure.record().offset(), failure.task(), failure.error());
///     OnError::Skip
/// }
/// ```
pub struct ProcessingFailure<'f> {
    pub(crate) task: TaskId,
    pub(crate) record: &'f SourceRecord<'f>,
    pub(crate) error: &'f (dyn StdError + Send + Sync + 'static),
}

impl ProcessingFailure<'_> {
    /// The task.
    #[must_use]
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// The record.
    #[must_use]
    pub fn record(&self) -> &SourceRecord<'_> {
        self.record
    }

    /// What the processor met.
    #[must_use]
    pub fn error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        self.error
    }
}

impl fmt::Debug for ProcessingFailure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessingFailure")
            .field("task", &self.task)
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}
