use std::fmt;

use kstate_api::{Bytes, Offset};

use crate::{Outcome, completion::OnFinished};

/// A record for an [`Executor`](crate::Executor).
///
/// ```
/// use kstate_api::Offset;
/// use kstate_processing::Submission;
///
/// let submission = Submission::new(Offset::ZERO, "a line".to_owned()).with_key("a key");
/// ```
pub struct Submission<R> {
    pub(crate) offset: Offset,
    pub(crate) key: Option<Bytes>,
    pub(crate) record: R,
    pub(crate) on_finished: Option<OnFinished>,
}

impl<R> Submission<R> {
    /// The record at `offset`, without a key.
    ///
    /// ```
    /// # use kstate_api::Offset;
    /// # use kstate_processing::Submission;
    /// let submission = Submission::new(Offset::ZERO, "a line");
    /// ```
    #[must_use]
    pub const fn new(offset: Offset, record: R) -> Self {
        Self { offset, key: None, record, on_finished: None }
    }

    /// The same record with a key.
    ///
    /// ```
    /// # use kstate_api::Offset;
    /// # use kstate_processing::Submission;
    /// let submission = Submission::new(Offset::ZERO, "a line").with_key("a key");
    /// ```
    #[must_use]
    pub fn with_key(self, key: impl Into<Bytes>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// The same record, and what is to be called with its outcome, by the task's own thread: the caller goes on.
    ///
    /// If it is not even taken, nothing is called: the submission comes back. A panic in it is logged and goes no further.
    /// [`Completion`](crate::Completion) makes a future of it.
    ///
    /// ```
    /// # use kstate_api::Offset;
    /// # use kstate_processing::Submission;
    /// let submission = Submission::new(Offset::ZERO, "a line").on_finished(|outcome| println!("{outcome:?}"));
    /// ```
    #[must_use]
    pub fn on_finished(self, on_finished: impl FnOnce(Outcome) + Send + 'static) -> Self {
        Self { on_finished: Some(Box::new(on_finished)), ..self }
    }

    /// The record's offset.
    ///
    /// ```
    /// # use kstate_api::Offset;
    /// # use kstate_processing::Submission;
    /// assert_eq!(Submission::new(Offset::ZERO, "a line").offset(), Offset::ZERO);
    /// ```
    #[must_use]
    pub const fn offset(&self) -> Offset {
        self.offset
    }

    /// The record.
    ///
    /// ```
    /// # use kstate_api::Offset;
    /// # use kstate_processing::Submission;
    /// assert_eq!(Submission::new(Offset::ZERO, "a line").into_record(), "a line");
    /// ```
    #[must_use]
    pub fn into_record(self) -> R {
        self.record
    }
}

impl<R: fmt::Debug> fmt::Debug for Submission<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, key, record, .. } = self;
        f.debug_struct("Submission")
            .field("offset", offset)
            .field("key", key)
            .field("record", record)
            .finish_non_exhaustive()
    }
}

/// What became of a submission at once.
///
/// ```
/// use kstate_processing::Submitted;
///
/// let submitted: Submitted<String> = Submitted::Taken;
/// ```
#[derive(Debug)]
pub enum Submitted<R> {
    /// It is in flight, or finished already.
    Taken,
    /// It was finished before the restart; here it is. It does not run again.
    Finished(Submission<R>),
    /// There is no room; here it is. Pause the partition, go on driving, and submit it again later.
    Full(Submission<R>),
}
