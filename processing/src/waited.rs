use crate::Submission;

/// What became of a submission up to the deadline of [`Executor::process`](crate::Executor::process).
///
/// ```
/// use kstate_api::Offset;
/// use kstate_processing::{Submission, Waited};
///
/// let waited = Waited::Full(Submission::new(Offset::ZERO, "a line"));
/// if let Waited::Full(submission) = waited {
///     println!("submit {} again, before any later record", submission.offset());
/// }
/// ```
#[derive(Debug)]
#[must_use = "a record for which there was no room comes back with it"]
pub enum Waited<R> {
    /// It is finished: its effects are applied, it went to the dead letters, or it was finished before the restart.
    Finished,
    /// It was taken and is still in flight: go on driving.
    InFlight,
    /// There was no room until the deadline; here it is, with what is to be called with its outcome. Submit it again.
    Full(Submission<R>),
}
