use std::{any::Any, error::Error, fmt};

type Cause = Box<dyn Error + Send + Sync>;

/// Why a record could not be processed, and what is to be done.
///
/// Any error turns into a retry with `?`.
///
/// ```
/// use kstate_processing::ProcessError;
///
/// fn parse(record: &[u8]) -> Result<u64, ProcessError> {
///     // It will not be better next time.
///     let text = std::str::from_utf8(record).map_err(ProcessError::skip)?;
///     Ok(text.parse()?)
/// }
/// assert!(parse(b"x").is_err());
/// ```
#[derive(Debug)]
pub struct ProcessError {
    pub(crate) action: Action,
    pub(crate) cause: Cause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Retry,
    Skip,
    Halt,
}

impl ProcessError {
    /// Try it again, as often as the policy allows.
    ///
    /// ```
    /// # use kstate_processing::ProcessError;
    /// let error = ProcessError::retry("the service is down");
    /// ```
    pub fn retry(cause: impl Into<Cause>) -> Self {
        Self { action: Action::Retry, cause: cause.into() }
    }

    /// It will never work: to the dead letters with it, at once.
    ///
    /// ```
    /// # use kstate_processing::ProcessError;
    /// let error = ProcessError::skip("not a number");
    /// ```
    pub fn skip(cause: impl Into<Cause>) -> Self {
        Self { action: Action::Skip, cause: cause.into() }
    }

    /// Something is wrong beyond this record: halt the task.
    ///
    /// ```
    /// # use kstate_processing::ProcessError;
    /// let error = ProcessError::halt("the schema is not ours");
    /// ```
    pub fn halt(cause: impl Into<Cause>) -> Self {
        Self { action: Action::Halt, cause: cause.into() }
    }

    /// What a panic with `payload` comes to: a failure of the record, which may go better next time.
    pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        Self::retry(format!("the processor panicked: {}", text.unwrap_or("for a reason that is not text")))
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for ProcessError {
    fn from(cause: E) -> Self {
        Self::retry(Box::new(cause) as Cause)
    }
}

/// How a record failed for good.
///
/// ```
/// # use kstate_processing::RecordFailure;
/// fn header(failure: &RecordFailure) -> String {
///     format!("{} attempts: {}", failure.attempts, failure.cause)
/// }
/// ```
#[derive(Debug)]
pub struct RecordFailure {
    /// How many attempts it had.
    pub attempts: u32,
    /// What the last one met.
    pub cause: Cause,
}

impl fmt::Display for RecordFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed {} times, at last since {}", self.attempts, self.cause)
    }
}
