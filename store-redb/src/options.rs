use std::{fmt, sync::Arc};

use kstate_api::Durability;

use crate::cache::{CacheBudget, CacheGrant};

/// 32 MiB.
const DEFAULT_CACHE_SIZE: usize = 32 << 20;

/// How a [`RedbBackend`](crate::RedbBackend) is opened.
///
/// ```
/// use kstate_api::Durability;
/// use kstate_store_redb::RedbOptions;
///
/// let options = RedbOptions::new().durability(Durability::Eventual).cache_size(64 << 20);
/// ```
#[derive(Clone)]
pub struct RedbOptions {
    pub(crate) durability: Durability,
    pub(crate) flush_commits: u32,
    pub(crate) flush_bytes: u64,
    pub(crate) check_integrity: bool,
    cache: Cache,
    configure: Option<Arc<Configure>>,
}

type Configure = dyn Fn(&mut redb::Builder) + Send + Sync;

#[derive(Clone, Debug)]
enum Cache {
    PerStore(usize),
    Shared(CacheBudget),
}

impl RedbOptions {
    /// The defaults: [`Durability::Sync`], 32 MiB of cache for each store.
    ///
    /// ```
    /// # use kstate_store_redb::RedbOptions;
    /// let options = RedbOptions::new();
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self {
            durability: Durability::Sync,
            flush_commits: 64,
            flush_bytes: 64 << 20,
            check_integrity: false,
            cache: Cache::PerStore(DEFAULT_CACHE_SIZE),
            configure: None,
        }
    }

    /// What each commit survives at least. The crate's front page has a table of what the levels cost.
    ///
    /// redb has nothing between losing commits with the process and syncing each: `Process` is served by `Sync`, and
    /// reported as `Sync`.
    ///
    /// ```
    /// # use kstate_store_redb::RedbOptions;
    /// use kstate_api::Durability;
    /// let options = RedbOptions::new().durability(Durability::Eventual);
    /// ```
    #[must_use]
    pub fn durability(mut self, at_least: Durability) -> Self {
        self.durability = match at_least {
            Durability::Eventual => Durability::Eventual,
            Durability::Process | Durability::Sync => Durability::Sync,
        };
        self
    }

    /// With [`Durability::Eventual`]: makes every `commits`th commit durable, and each that brings the records
    /// committed since the last durable one to `bytes`. By default 64 commits and 64 MiB.
    ///
    /// This bounds what a crash loses (and the changelog has to replay), and the pages that wait in the file to be
    /// used again. Values below one count as one, which makes each commit durable.
    ///
    /// ```
    /// # use kstate_store_redb::RedbOptions;
    /// let options = RedbOptions::new().flush_every(16, 8 << 20);
    /// ```
    #[must_use]
    pub fn flush_every(mut self, commits: u32, bytes: u64) -> Self {
        (self.flush_commits, self.flush_bytes) = (commits.max(1), bytes.max(1));
        self
    }

    /// The cache of each store, in bytes. The last call of this and [`cache_budget`](Self::cache_budget) counts.
    ///
    /// Up to half of it can hold pages that are not written yet.
    ///
    /// ```
    /// # use kstate_store_redb::RedbOptions;
    /// let options = RedbOptions::new().cache_size(8 << 20);
    /// ```
    #[must_use]
    pub fn cache_size(mut self, bytes: usize) -> Self {
        self.cache = Cache::PerStore(bytes);
        self
    }

    /// Takes each store's cache from a budget that all stores of the process share.
    ///
    /// ```
    /// # use kstate_store_redb::RedbOptions;
    /// use kstate_store_redb::CacheBudget;
    /// let options = RedbOptions::new().cache_budget(&CacheBudget::new(256 << 20, 8));
    /// ```
    #[must_use]
    pub fn cache_budget(mut self, budget: &CacheBudget) -> Self {
        self.cache = Cache::Shared(budget.clone());
        self
    }

    /// Whether each open reads the whole file and verifies the checksum of every page. Off by default.
    ///
    /// redb verifies checksums after a crash only. With this off, damage that something else did to the file is
    /// noticed where it is read: as `Corrupted` if the page makes no sense, or not at all.
    ///
    /// ```
    /// # use kstate_store_redb::RedbOptions;
    /// let options = RedbOptions::new().check_integrity(true);
    /// ```
    #[must_use]
    pub fn check_integrity(mut self, each_open: bool) -> Self {
        self.check_integrity = each_open;
        self
    }

    /// Sets what only redb's own builder has, after everything else was set. The concurrency mode is not to be had:
    /// a store has one owner.
    ///
    /// ```
    /// # use kstate_store_redb::RedbOptions;
    /// let options = RedbOptions::new().configure(|builder| {
    ///     builder.set_repair_callback(|repair| eprintln!("repairing: {:.0} %", 100.0 * repair.progress()));
    /// });
    /// ```
    #[must_use]
    pub fn configure(mut self, configure: impl Fn(&mut redb::Builder) + Send + Sync + 'static) -> Self {
        self.configure = Some(Arc::new(configure));
        self
    }

    /// The cache of one more store.
    pub(crate) fn grant_cache(&self) -> CacheGrant {
        match &self.cache {
            Cache::PerStore(bytes) => CacheGrant::fixed(*bytes),
            Cache::Shared(budget) => budget.grant(),
        }
    }

    pub(crate) fn builder(&self, cache: &CacheGrant) -> redb::Builder {
        let mut builder = redb::Builder::new();
        builder.set_cache_size(cache.bytes()).set_check_integrity_on_open(self.check_integrity);
        if let Some(configure) = &self.configure {
            configure(&mut builder);
        }
        builder.set_concurrency_mode(redb::ConcurrencyMode::ExclusiveWriter);
        builder
    }
}

impl Default for RedbOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for RedbOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbOptions")
            .field("durability", &self.durability)
            .field("flush_commits", &self.flush_commits)
            .field("flush_bytes", &self.flush_bytes)
            .field("check_integrity", &self.check_integrity)
            .field("cache", &self.cache)
            .field("configured", &self.configure.is_some())
            .finish()
    }
}
