use std::sync::Arc;

use parking_lot::Mutex;

/// The smallest cache a store is opened with, in bytes.
const MIN_CACHE: usize = 1 << 20;

/// One budget of cache memory for all stores of a process.
///
/// redb has one cache for each store, of a size that is fixed when the store is opened. A budget is therefore *shared
/// out*: a store gets `total / expected_stores` bytes when it is opened, or what is left of the total if that is less,
/// and gives them back when it is closed. As long as no more than `expected_stores` are open at once, they get equal
/// shares and the total holds. Each further one gets 1 MiB, which is the least that is useful: by that much the total
/// can be exceeded.
///
/// Clones share the same budget: give one to the options of every supplier of the process.
///
/// ```
/// use kstate_store_redb::{CacheBudget, RedbOptions};
///
/// // 256 MiB for the four tasks that one instance runs at most, with two stores each.
/// let budget = CacheBudget::new(256 << 20, 8);
/// let counts = RedbOptions::new().cache_budget(&budget);
/// let totals = RedbOptions::new().cache_budget(&budget);
/// assert_eq!(budget.granted_bytes(), 0);
/// ```
#[derive(Clone, Debug)]
pub struct CacheBudget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    total: usize,
    share: usize,
    granted: Mutex<usize>,
}

impl CacheBudget {
    /// A budget of `total_bytes` for about `expected_stores` open at the same time (at least one).
    ///
    /// ```
    /// # use kstate_store_redb::CacheBudget;
    /// let budget = CacheBudget::new(64 << 20, 4);
    /// assert_eq!(budget.total_bytes(), 64 << 20);
    /// ```
    #[must_use]
    pub fn new(total_bytes: usize, expected_stores: usize) -> Self {
        let share = (total_bytes / expected_stores.max(1)).max(MIN_CACHE);
        Self(Arc::new(Inner { total: total_bytes, share, granted: Mutex::new(0) }))
    }

    /// The bytes there are to share out.
    ///
    /// ```
    /// # use kstate_store_redb::CacheBudget;
    /// assert_eq!(CacheBudget::new(1 << 20, 1).total_bytes(), 1 << 20);
    /// ```
    #[must_use]
    pub fn total_bytes(&self) -> usize {
        self.0.total
    }

    /// The bytes that the stores open now were given.
    ///
    /// ```
    /// # use kstate_store_redb::CacheBudget;
    /// assert_eq!(CacheBudget::new(1 << 20, 1).granted_bytes(), 0);
    /// ```
    #[must_use]
    pub fn granted_bytes(&self) -> usize {
        *self.0.granted.lock()
    }

    /// One store's share, until the grant is dropped.
    pub(crate) fn grant(&self) -> CacheGrant {
        let mut granted = self.0.granted.lock();
        let bytes = self.0.share.min(self.0.total.saturating_sub(*granted)).max(MIN_CACHE);
        *granted += bytes;
        CacheGrant { bytes, budget: Some(self.clone()) }
    }
}

/// The cache memory of one open store.
#[derive(Debug)]
pub(crate) struct CacheGrant {
    bytes: usize,
    budget: Option<CacheBudget>,
}

impl CacheGrant {
    /// Memory of no budget.
    pub(crate) fn fixed(bytes: usize) -> Self {
        Self { bytes, budget: None }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for CacheGrant {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            *budget.0.granted.lock() -= self.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_stores_get_equal_shares_and_give_them_back() {
        let budget = CacheBudget::new(8 << 20, 4);
        let grants: Vec<_> = (0..4).map(|_| budget.grant()).collect();
        assert!(grants.iter().all(|grant| grant.bytes() == 2 << 20));
        assert_eq!(budget.granted_bytes(), 8 << 20);
        drop(grants);
        assert_eq!(budget.granted_bytes(), 0);
    }

    #[test]
    fn further_stores_get_what_is_left_and_then_the_least() {
        let budget = CacheBudget::new(7 << 20, 2);
        let first = budget.grant();
        let _second = budget.grant();
        let third = budget.grant();
        assert_eq!((first.bytes(), third.bytes()), (7 << 19, MIN_CACHE));
        drop(first);
        assert_eq!(budget.grant().bytes(), (7 << 19) - MIN_CACHE, "no more than is left");
    }
}
