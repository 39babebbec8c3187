/// What a commit that returned `Ok` survives (clause O6).
///
/// Consistency never depends on it: after any crash, records and offset are those of *some* earlier commit. It only
/// says how late that commit is at least. What is lost is replayed from the changelog. A backend gives at least what it
/// was asked for; levels are ordered by what they survive.
///
/// | level | the process is killed | the power fails |
/// | --- | --- | --- |
/// | `Eventual` | last [`flush`](crate::Backend::flush) or later | last flush or later |
/// | `Process` | the last commit | last flush or later |
/// | `Sync` | the last commit | the last commit |
///
/// ```
/// use kstate_api::Durability;
///
/// assert!(Durability::Eventual < Durability::Process && Durability::Process < Durability::Sync);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// Some earlier commit survives; the last flush at the earliest.
    Eventual,
    /// Every commit survives the end of the process, however it ends; the last flush survives a power loss.
    Process,
    /// Every commit survives a power loss.
    Sync,
}
