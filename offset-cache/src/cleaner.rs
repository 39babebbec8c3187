use std::{
    fmt,
    sync::{Arc, PoisonError},
    thread::{Builder, JoinHandle},
    time::Duration,
};

use kstate_api::{Error, Result};

use crate::{
    OffsetCache, StateDirectory,
    sync::{Condvar, Mutex, lock},
};

/// Deletes, again and again in a thread of its own, the tasks that nobody has used for long (clause D3).
///
/// It is [`StateDirectory::clean`] with the cache's [`forget`](OffsetCache::forget), first after one delay and then after
/// each. Dropping it stops it: a task that it is deleting is finished, and no other begun.
///
/// ```
/// use std::{sync::Arc, time::Duration};
///
/// use kstate_offset_cache::{Cleaner, OffsetCache, StateDirectory};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let temporary = tempfile::tempdir()?;
/// let directory = StateDirectory::open(temporary.path(), "word-count")?;
/// let cache = Arc::new(OffsetCache::new());
/// let cleaner = Cleaner::start(&directory, &cache, Duration::from_secs(600))?;
/// # Ok(())
/// # }
/// ```
pub struct Cleaner {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Stop {
    asked: Mutex<bool>,
    changed: Condvar,
}

impl Cleaner {
    /// Starts to delete what nobody has used for longer than `delay`. Kafka Streams' default is ten minutes.
    ///
    /// # Errors
    /// `Io` if the system gives no thread.
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # use kstate_offset_cache::{Cleaner, OffsetCache, StateDirectory};
    /// # let temporary = tempfile::tempdir().unwrap();
    /// # let directory = StateDirectory::open(temporary.path(), "word-count").unwrap();
    /// # let cache = Arc::new(OffsetCache::new());
    /// drop(Cleaner::start(&directory, &cache, Duration::from_secs(600)).unwrap());
    /// ```
    pub fn start(directory: &StateDirectory, cache: &Arc<OffsetCache>, delay: Duration) -> Result<Self> {
        let stop = Arc::new(Stop::default());
        let (directory, cache, told) = (directory.clone(), Arc::clone(cache), Arc::clone(&stop));
        let work = move || {
            while !told.sleep(delay) {
                let is_stopped = || *lock(&told.asked);
                if let Err(error) = directory.clean_until(delay, |owner| cache.forget(owner), is_stopped) {
                    tracing::warn!(%error, "cannot clean the state directory");
                }
            }
        };
        let thread = Builder::new().name("state-cleaner".into()).spawn(work);
        let thread = thread.map_err(|error| Error::io("cannot start the cleaner's thread", error))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Stop {
    /// Sleeps; whether to stop.
    fn sleep(&self, delay: Duration) -> bool {
        let asked = lock(&self.asked);
        let slept = self.changed.wait_timeout_while(asked, delay, |asked| !*asked);
        *slept.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        *lock(&self.stop.asked) = true;
        self.stop.changed.notify_all();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the cleaner's thread panicked");
        }
    }
}

impl fmt::Debug for Cleaner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cleaner").finish_non_exhaustive()
    }
}
