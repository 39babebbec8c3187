use std::{
    sync::mpsc::{Receiver, SyncSender, channel, sync_channel},
    thread::{self, Scope},
};

use kstate_api::{Error, ErrorKind, Result, WriteBatch};

use super::RestoreProgress;
use crate::LoggedStore;

/// How many batches may wait while one is applied. Reading is steady enough for one.
const WAITING: usize = 1;

/// Applies batches to a store in their order, in a thread of its own, so that the next one is read meanwhile. A restore
/// of a single batch needs none.
pub(super) struct Applier<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    logged: &'env LoggedStore,
    running: Option<Running>,
}

struct Running {
    batches: SyncSender<(WriteBatch, RestoreProgress)>,
    applied: Receiver<Result<RestoreProgress>>,
    /// Batches that were handed over and not heard of.
    pending: usize,
}

impl<'scope, 'env> Applier<'scope, 'env> {
    pub(super) fn new(scope: &'scope Scope<'scope, 'env>, logged: &'env LoggedStore) -> Self {
        Self { scope, logged, running: None }
    }

    /// Hands `batch` over, with which the restore comes as far as `then`; tells how far it has come.
    ///
    /// # Errors
    /// That of an earlier batch. Nothing after it is applied.
    pub(super) fn give(
        &mut self,
        batch: WriteBatch,
        then: RestoreProgress,
        progress: &mut dyn FnMut(RestoreProgress),
    ) -> Result<()> {
        let running = match &mut self.running {
            Some(running) => running,
            None => self.running.insert(Running::start(self.scope, self.logged)?),
        };
        // The thread that has met an error takes no more.
        let given = running.batches.send((batch, then));
        running.pending += usize::from(given.is_ok());
        while let Ok(applied) = running.applied.try_recv() {
            running.heard(applied, progress)?;
        }
        given.map_err(|_| ended())
    }

    /// Applies the last batch, after all others.
    ///
    /// # Errors
    /// That of the first batch that was not applied.
    pub(super) fn finish(
        mut self,
        batch: &WriteBatch,
        then: RestoreProgress,
        progress: &mut dyn FnMut(RestoreProgress),
    ) -> Result<()> {
        if let Some(mut running) = self.running.take() {
            while running.pending > 0 {
                let applied = running.applied.recv().map_err(|_| ended())?;
                running.heard(applied, progress)?;
            }
        }
        self.logged.store().restore(batch)?;
        progress(then);
        Ok(())
    }
}

impl Running {
    fn start<'scope>(scope: &'scope Scope<'scope, '_>, logged: &'scope LoggedStore) -> Result<Self> {
        let (batches, to_apply) = sync_channel::<(WriteBatch, RestoreProgress)>(WAITING);
        let (tell, applied) = channel();
        let apply = move || {
            for (batch, then) in to_apply {
                let restored = logged.store().restore(&batch).map(|()| then);
                let failed = restored.is_err();
                // A reader that failed listens no more; what it has read is applied all the same.
                drop(tell.send(restored));
                if failed {
                    return;
                }
            }
        };
        thread::Builder::new()
            .name("kstate-apply".into())
            .spawn_scoped(scope, apply)
            .map_err(|error| Error::io("cannot start a thread to apply in", error))?;
        Ok(Self { batches, applied, pending: 0 })
    }

    fn heard(&mut self, applied: Result<RestoreProgress>, progress: &mut dyn FnMut(RestoreProgress)) -> Result<()> {
        self.pending -= 1;
        progress(applied?);
        Ok(())
    }
}

/// The thread is gone without a word: it has panicked, which its scope passes on.
fn ended() -> Error {
    Error::new(ErrorKind::Io, "the thread that applies has ended")
}
