use kstate_api::Offset;

/// What finishing a record did.
///
/// ```
/// use kstate_processing::Finish;
///
/// assert_ne!(Finish::Held, Finish::Late);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It was the lowest in flight; the offset to commit is now this.
    Advanced(Offset),
    /// A lower record is still in flight.
    Held,
    /// Its partition was revoked in the meantime. It was counted, and changed nothing.
    Late,
}
