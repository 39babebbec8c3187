use std::{fmt, marker::PhantomData};

use kstate_api::{Offset, Result, TopicPartition};

use crate::{Effect, ProcessError, RecordFailure, Work};

/// What is done with each record, by any worker.
///
/// ```
/// use kstate_processing::{ProcessError, Processor, Work};
///
/// struct Count;
///
/// impl Processor for Count {
///     type Record = String;
///     type Output = String;
///
///     fn process(&self, word: &String, work: &mut Work<'_, String>) -> Result<(), ProcessError> {
///         let count = work.get(0, word.as_bytes())?.map_or(0, |count| count.len());
///         work.put(0, word.clone(), "x".repeat(count + 1))?;
///         Ok(())
///     }
/// }
/// ```
pub trait Processor: Send + Sync + 'static {
    /// A record, decoded or not.
    type Record: Send + 'static;
    /// What is sent on.
    type Output: Send + 'static;

    /// Processes `record`. What it makes of `work` is applied only if it succeeds.
    ///
    /// It may be called again for the same record: after a failure, and after a restart. A panic is a failure of the
    /// record.
    ///
    /// # Errors
    /// Whether to retry, to skip the record, or to halt.
    fn process(
        &self,
        record: &Self::Record,
        work: &mut Work<'_, Self::Output>,
    ) -> std::result::Result<(), ProcessError>;
}

/// A [`Processor`] made of a function.
///
/// ```
/// use kstate_processing::{ProcessorFn, Work};
///
/// let echo = ProcessorFn::new(|record: &String, work: &mut Work<'_, String>| {
///     work.output(record.clone());
///     Ok(())
/// });
/// ```
pub struct ProcessorFn<F, R, O> {
    function: F,
    types: PhantomData<fn(&R) -> O>,
}

impl<F, R, O> ProcessorFn<F, R, O>
where
    F: Fn(&R, &mut Work<'_, O>) -> std::result::Result<(), ProcessError>,
{
    /// The processor that calls `function`.
    ///
    /// ```
    /// # use kstate_processing::{ProcessorFn, Work};
    /// let nothing = ProcessorFn::new(|_: &String, _: &mut Work<'_, String>| Ok(()));
    /// ```
    pub const fn new(function: F) -> Self {
        Self { function, types: PhantomData }
    }
}

impl<F, R, O> fmt::Debug for ProcessorFn<F, R, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessorFn").finish_non_exhaustive()
    }
}

impl<F, R, O> Processor for ProcessorFn<F, R, O>
where
    F: Fn(&R, &mut Work<'_, O>) -> std::result::Result<(), ProcessError> + Send + Sync + 'static,
    R: Send + 'static,
    O: Send + 'static,
{
    type Record = R;
    type Output = O;

    fn process(&self, record: &R, work: &mut Work<'_, O>) -> std::result::Result<(), ProcessError> {
        (self.function)(record, work)
    }
}

/// A record and where it comes from.
///
/// ```
/// use kstate_processing::Source;
///
/// fn name(source: &Source<'_, String>) -> String {
///     format!("{}@{}", source.partition, source.offset)
/// }
/// ```
#[derive(Debug)]
pub struct Source<'r, R> {
    /// Its partition.
    pub partition: &'r TopicPartition,
    /// Its offset.
    pub offset: Offset,
    /// The record itself.
    pub record: &'r R,
}

/// What the task's own thread does with what workers bring back.
///
/// An error halts the executor, since the effects of a record may be applied in part: nothing is to be committed then.
///
/// ```
/// use kstate_api::Result;
/// use kstate_processing::{Effect, RecordFailure, Sink, Source};
///
/// #[derive(Default)]
/// struct Lines(Vec<String>);
///
/// impl Sink<String, String> for Lines {
///     fn apply(&mut self, _: &Source<'_, String>, effects: Vec<Effect<String>>) -> Result<()> {
///         effects.into_iter().try_for_each(|effect| effect.apply(&[], |line| Ok(self.0.push(line))))
///     }
///     fn dead_letter(&mut self, source: &Source<'_, String>, failure: &RecordFailure) -> Result<()> {
///         Ok(self.0.push(format!("{}@{} {failure}", source.partition, source.offset)))
///     }
/// }
/// ```
pub trait Sink<R, O> {
    /// Applies the effects of a record, in their order.
    ///
    /// # Errors
    /// What kept it from being done.
    fn apply(&mut self, source: &Source<'_, R>, effects: Vec<Effect<O>>) -> Result<()>;

    /// Keeps a record that failed for good. It is finished afterwards.
    ///
    /// # Errors
    /// What kept it from being done.
    fn dead_letter(&mut self, source: &Source<'_, R>, failure: &RecordFailure) -> Result<()>;
}
