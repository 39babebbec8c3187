use std::sync::Arc;

use kstate_api::Result;
use parking_lot::RwLock;

use crate::view::View;

/// The view of the last commit that gets and scans share, for beginning one costs as much as a get.
///
/// It is let go *before* each commit: a commit reuses the pages of the one before only if nobody can read it any more,
/// and with a view always open the file would grow by the pages of one more commit.
#[derive(Debug, Default)]
pub(crate) struct Current(RwLock<Slot>);

#[derive(Debug, Default)]
struct Slot {
    view: Option<Arc<View>>,
    /// While a commit runs, readers get views of their own, which nobody keeps.
    committing: bool,
}

impl Current {
    /// The shared view; `begin` makes it if there is none.
    pub(crate) fn view(&self, begin: impl FnOnce() -> Result<View>) -> Result<Arc<View>> {
        if let Some(view) = &self.0.read().view {
            return Ok(Arc::clone(view));
        }
        let mut slot = self.0.write();
        if let Some(view) = &slot.view {
            return Ok(Arc::clone(view));
        }
        // Under the lock: a commit that ends meanwhile cannot miss this view when it drops the shared one.
        let view = Arc::new(begin()?);
        if !slot.committing {
            slot.view = Some(Arc::clone(&view));
        }
        Ok(view)
    }

    /// Drops the shared view, and shares none before the guard is dropped.
    pub(crate) fn committing(&self) -> Committing<'_> {
        let mut slot = self.0.write();
        slot.committing = true;
        slot.view = None;
        Committing(self)
    }

    pub(crate) fn clear(&self) {
        self.0.write().view = None;
    }
}

/// A commit that runs.
pub(crate) struct Committing<'c>(&'c Current);

impl Drop for Committing<'_> {
    fn drop(&mut self) {
        self.0.0.write().committing = false;
    }
}
