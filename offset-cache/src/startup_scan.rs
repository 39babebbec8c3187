use std::{
    fmt,
    num::NonZeroUsize,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use kstate_api::{ErrorKind, Result, TaskId};

use crate::{
    Cancellation, LeftOut, OffsetCache, ScanProgress, ScanReport, StateDirectory, StateLayout, StoreScan, TaskLock,
    TaskScan, TopologyStores,
    sync::{Mutex, lock},
};

type Progress<'s> = dyn Fn(ScanProgress) + Sync + 's;

/// Reads how far each task on the disk has come, before any is owned (clause C1).
///
/// Each store's supplier reads the offsets as cheaply as its engine can; where that is no open, none is made. Several
/// threads share the tasks. **One bad task never stops the start**: what is corrupt, locked or of a newer format is left
/// out and reported, and so is a store whose engine panics; the others go on. No task stays locked, whatever happens.
///
/// ```
/// use std::{sync::Arc, time::Duration};
///
/// use kstate_api::{ChangelogOffsets, KeyValueStoreSupplier, Offset, StagedSupplier, StateStore, TaskId};
/// use kstate_offset_cache::{CachedOffset, OffsetCache, StartupScan, StateDirectory, TopologyStores};
/// use kstate_store_redb::{RedbBackends, RedbOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let temporary = tempfile::tempdir()?;
/// let counts = Arc::new(StagedSupplier::new("counts", RedbBackends::new(RedbOptions::new()))?);
/// let stores = TopologyStores::new("word-count")?.with_logged(0, counts.clone())?;
/// let task = TaskId::new(0, 1);
/// let changelog = stores.changelogs(task).remove(0);
/// # {
/// #     let directory = StateDirectory::open(temporary.path(), "word-count")?;
/// #     let store = counts.open(&directory.lock(task)?.store_directory("counts")?, &[changelog.clone()])?;
/// #     store.commit(&ChangelogOffsets::new().with(changelog.clone(), Offset::new(41).unwrap()))?;
/// #     store.close()?;
/// # }
///
/// // A process that starts again finds what the one before it has left.
/// let directory = StateDirectory::open(temporary.path(), "word-count")?;
/// let cache = OffsetCache::new();
/// let report = StartupScan::new(&stores).within(Duration::from_secs(60)).run(&directory, &cache)?;
/// assert_eq!(report.left_out().count(), 0);
/// assert_eq!(cache.get(task, &changelog), Some(CachedOffset::At(Offset::new(41).unwrap())));
/// # Ok(())
/// # }
/// ```
pub struct StartupScan<'s> {
    stores: &'s TopologyStores,
    threads: NonZeroUsize,
    limit: Option<Duration>,
    cancellation: Cancellation,
    progress: Option<Box<Progress<'s>>>,
}

impl<'s> StartupScan<'s> {
    /// A scan for `stores` with as many threads as the machine has cores, and no deadline.
    ///
    /// ```
    /// # use kstate_offset_cache::{StartupScan, TopologyStores};
    /// let stores = TopologyStores::new("word-count").unwrap();
    /// let scan = StartupScan::new(&stores);
    /// ```
    #[must_use]
    pub fn new(stores: &'s TopologyStores) -> Self {
        let threads = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self { stores, threads, limit: None, cancellation: Cancellation::new(), progress: None }
    }

    /// The same with so many threads. More than the machine has cores bring nothing.
    ///
    /// ```
    /// # use std::num::NonZero;
    /// # use kstate_offset_cache::{StartupScan, TopologyStores};
    /// # let stores = TopologyStores::new("word-count").unwrap();
    /// let scan = StartupScan::new(&stores).threads(NonZero::new(2).unwrap());
    /// ```
    #[must_use]
    pub fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = threads;
        self
    }

    /// The same, but tasks whose turn has not come after `limit` are left out. A task that was begun is finished.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kstate_offset_cache::{StartupScan, TopologyStores};
    /// # let stores = TopologyStores::new("word-count").unwrap();
    /// let scan = StartupScan::new(&stores).within(Duration::from_secs(60));
    /// ```
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// The same, but tasks whose turn has not come when `cancellation` is cancelled are left out.
    ///
    /// ```
    /// # use kstate_offset_cache::{Cancellation, StartupScan, TopologyStores};
    /// # let stores = TopologyStores::new("word-count").unwrap();
    /// let shutdown = Cancellation::new();
    /// let scan = StartupScan::new(&stores).cancelled_by(&shutdown);
    /// ```
    #[must_use]
    pub fn cancelled_by(mut self, cancellation: &Cancellation) -> Self {
        self.cancellation = cancellation.clone();
        self
    }

    /// The same, but `progress` is called after each task, by the thread that did it.
    ///
    /// ```
    /// # use kstate_offset_cache::{StartupScan, TopologyStores};
    /// # let stores = TopologyStores::new("word-count").unwrap();
    /// let scan = StartupScan::new(&stores).progress(|progress| eprintln!("{}/{}", progress.done, progress.total));
    /// ```
    #[must_use]
    pub fn progress(mut self, progress: impl Fn(ScanProgress) + Sync + 's) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Scans the tasks of `directory` into `cache`, each under its lock.
    ///
    /// # Errors
    /// `Io` if the directory cannot be listed. What is wrong with a task is in the report.
    ///
    /// ```
    /// # use kstate_offset_cache::{OffsetCache, StartupScan, StateDirectory, TopologyStores};
    /// # let temporary = tempfile::tempdir().unwrap();
    /// # let stores = TopologyStores::new("word-count").unwrap();
    /// # let directory = StateDirectory::open(temporary.path(), "word-count").unwrap();
    /// # let cache = OffsetCache::new();
    /// let report = StartupScan::new(&stores).run(&directory, &cache).unwrap();
    /// assert!(report.is_complete());
    /// ```
    pub fn run(&self, directory: &StateDirectory, cache: &OffsetCache) -> Result<ScanReport> {
        self.scan_all(directory.layout(), &|task| self.scan(task, directory, cache))
    }

    /// Scans the tasks of `layout` without owning or changing anything: beside the process that does, or where nothing
    /// can be written. A store that its engine lets nobody else read is reported as `Locked`.
    ///
    /// # Errors
    /// `Io` if the directory cannot be listed. What is wrong with a task is in the report.
    ///
    /// ```
    /// # use kstate_offset_cache::{StartupScan, StateLayout, TopologyStores};
    /// # let temporary = tempfile::tempdir().unwrap();
    /// # let stores = TopologyStores::new("word-count").unwrap();
    /// let layout = StateLayout::new(temporary.path(), "word-count").unwrap();
    /// assert!(StartupScan::new(&stores).look(&layout).unwrap().tasks().is_empty());
    /// ```
    pub fn look(&self, layout: &StateLayout) -> Result<ScanReport> {
        self.scan_all(layout, &|task| self.read(task, layout))
    }

    fn scan_all(&self, layout: &StateLayout, scan: &(dyn Fn(TaskId) -> TaskScan + Sync)) -> Result<ScanReport> {
        let start = Instant::now();
        let listing = layout.list()?;
        let tasks = listing.tasks();
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let found = Mutex::new(Vec::with_capacity(tasks.len()));
        let work = || {
            while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)).copied() {
                let scanned = self.cut_off(start).map_or_else(|| scan(task), |why| TaskScan::left(task, why));
                tell(&scanned);
                lock(&found).push(scanned);
                if let Some(progress) = &self.progress {
                    progress(ScanProgress { done: done.fetch_add(1, Ordering::Relaxed) + 1, total: tasks.len(), task });
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..self.threads.get().min(tasks.len()) {
                // Without another thread, this one does it all.
                if let Err(error) = thread::Builder::new().name("offset-scan".into()).spawn_scoped(scope, work) {
                    tracing::warn!(%error, "cannot start another thread for the scan");
                    break;
                }
            }
            work();
        });
        let found = std::mem::take(&mut *lock(&found));
        let report = ScanReport::new(found, listing.unfamiliar().to_vec(), start.elapsed());
        let (scanned, left_out) = (report.tasks().len(), report.left_out().count());
        tracing::info!(tasks = scanned, left_out, duration = ?report.duration(), "scanned the state directory");
        for path in report.unfamiliar() {
            tracing::warn!(path = %path.display(), "there is something unfamiliar in the state directory; it is left alone");
        }
        Ok(report)
    }

    /// Why no further task is begun.
    fn cut_off(&self, start: Instant) -> Option<LeftOut> {
        if self.cancellation.is_cancelled() {
            return Some(LeftOut::Cancelled);
        }
        self.limit.filter(|limit| start.elapsed() >= *limit).map(|_| LeftOut::DeadlinePassed)
    }

    /// Scans `task` into `cache`, under its lock.
    pub(crate) fn scan(&self, task: TaskId, directory: &StateDirectory, cache: &OffsetCache) -> TaskScan {
        let lock = match directory.lock_to_look(task) {
            Ok(lock) => lock,
            Err(error) if error.kind() == ErrorKind::Locked => return TaskScan::left(task, LeftOut::Owned),
            Err(error) => return TaskScan::left(task, LeftOut::Inaccessible).with_error(error),
        };
        let scanned = self.read(task, directory.layout());
        if scanned.left_out().is_none() {
            enter(&scanned, &lock, cache);
        }
        scanned
    }

    /// What the stores of `task` have committed.
    fn read(&self, task: TaskId, layout: &StateLayout) -> TaskScan {
        let contents = match layout.contents(task) {
            // Again: whoever had the task since it was listed may have deleted it.
            Ok(contents) if contents.is_empty() => return TaskScan::left(task, LeftOut::Gone),
            Ok(contents) => contents,
            Err(error) => return TaskScan::left(task, LeftOut::Inaccessible).with_error(error),
        };
        let stores = self.stores.of(task);
        let is_leftover = |name: &&String| !stores.iter().any(|store| store.supplier.name() == name.as_str());
        let leftovers = contents.stores().iter().filter(is_leftover).cloned().collect();
        let resumable = stores.iter().filter(|store| store.supplier.persistent());
        let mut scans = Vec::new();
        for (store, changelog) in resumable.filter_map(|store| Some((store, store.changelog_of(task)?))) {
            let name = store.supplier.name();
            // A store without anything on the disk has no copy here.
            if !contents.stores().iter().any(|found| found == name) {
                continue;
            }
            let directory = layout.task_directory(task).join(name);
            let committed = store.read_offset(&directory, &changelog).map_err(|error| error.with_store(name));
            scans.push(StoreScan { store: name.to_owned(), changelog, committed });
        }
        if scans.is_empty() {
            return TaskScan::left(task, LeftOut::NotInTopology).with_leftovers(leftovers);
        }
        TaskScan::found(task, scans, leftovers)
    }
}

impl fmt::Debug for StartupScan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stores, threads, limit, cancellation, progress: _ } = self;
        let mut debug = f.debug_struct("StartupScan");
        debug.field("stores", stores).field("threads", threads).field("limit", limit);
        debug.field("cancellation", cancellation).finish_non_exhaustive()
    }
}

fn enter(scanned: &TaskScan, lock: &TaskLock, cache: &OffsetCache) {
    let offsets = scanned.stores().iter().filter_map(|store| {
        let committed = store.committed.as_ref().ok()?;
        Some((store.changelog.clone(), (*committed).into()))
    });
    cache.scanned(lock, offsets);
}

fn tell(scanned: &TaskScan) {
    let Some(why) = scanned.left_out() else { return };
    let task = scanned.task();
    if let Some(error) = scanned.error() {
        tracing::warn!(%task, %error, "left a task out of the offset cache: {why}");
    } else {
        tracing::info!(%task, "left a task out of the offset cache: {why}");
    }
}
