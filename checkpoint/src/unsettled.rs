use std::collections::BTreeSet;

use kstate_api::Bytes;

/// Where a changelog and its store disagree after a checkpoint that failed, or was found unfinished by a restore.
///
/// The next checkpoint settles it. Only keys are kept: what belongs to them is the store's to say.
#[derive(Debug, Default)]
pub(crate) struct Unsettled {
    /// Keys whose last record belongs to a checkpoint that the group has not committed. Restores pass over it only
    /// until the group has come as far; so what the store has committed is written after it.
    pub(crate) uncommitted: BTreeSet<Bytes>,
    /// Keys that the group has committed, or may have, and the store has not. Their changes must still be staged, for
    /// the source records behind them do not come again.
    pub(crate) owed: BTreeSet<Bytes>,
}
