//! What a closing store takes back from its cursors and snapshots.
//!
//! A cursor or snapshot holds the engine open, and with it the directory's lock. So each keeps what it holds in a
//! [`Lease`], and closing the store ends all leases, also those in other threads.

use std::{collections::HashMap, fmt, sync::Arc};

use kstate_api::Result;
use parking_lot::{Mutex, RwLock};

use crate::error;

/// All leases of one store.
#[derive(Debug, Default)]
pub(crate) struct Registry(Mutex<Leases>);

#[derive(Default)]
struct Leases {
    closed: bool,
    next_id: u64,
    live: HashMap<u64, Arc<dyn Revoke>>,
}

trait Revoke: Send + Sync {
    fn revoke(&self);
}

/// What a lease holds, until it is revoked.
struct Slot<T>(RwLock<Option<T>>);

impl<T: Send + Sync> Revoke for Slot<T> {
    fn revoke(&self) {
        // The value goes while the lock is held: whoever finds the slot empty may rely on its being gone.
        let mut held = self.0.write();
        *held = None;
    }
}

impl Registry {
    /// Ends every lease and refuses further ones. Waits for those that are in use.
    pub(crate) fn close(&self) {
        let live = {
            let mut leases = self.0.lock();
            leases.closed = true;
            std::mem::take(&mut leases.live)
        };
        for slot in live.into_values() {
            slot.revoke();
        }
    }
}

/// A value that lives until it is dropped or its store is closed, whatever comes first.
pub(crate) struct Lease<T: Send + Sync + 'static> {
    id: u64,
    slot: Arc<Slot<T>>,
    registry: Arc<Registry>,
}

impl<T: Send + Sync + 'static> Lease<T> {
    /// `Closed` if the store was closed meanwhile; `value` is gone then.
    pub(crate) fn new(registry: &Arc<Registry>, value: T) -> Result<Self> {
        let slot = Arc::new(Slot(RwLock::new(Some(value))));
        let mut leases = registry.0.lock();
        if leases.closed {
            return Err(error::closed());
        }
        let id = leases.next_id;
        leases.next_id += 1;
        leases.live.insert(id, Arc::clone(&slot) as Arc<dyn Revoke>);
        drop(leases);
        Ok(Self { id, slot, registry: Arc::clone(registry) })
    }

    pub(crate) const fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Several threads may read at once.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&T) -> Result<R>) -> Result<R> {
        self.slot.0.read().as_ref().map_or_else(|| Err(error::closed()), read)
    }

    pub(crate) fn write<R>(&mut self, write: impl FnOnce(&mut T) -> Result<R>) -> Result<R> {
        self.slot.0.write().as_mut().map_or_else(|| Err(error::closed()), write)
    }
}

impl<T: Send + Sync + 'static> Drop for Lease<T> {
    fn drop(&mut self) {
        // Before it leaves the registry: a store that closes now must not overlook it.
        self.slot.revoke();
        self.registry.0.lock().live.remove(&self.id);
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for Lease<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("id", &self.id).finish_non_exhaustive()
    }
}

impl fmt::Debug for Leases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leases").field("closed", &self.closed).field("live", &self.live.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use kstate_api::ErrorKind;

    use super::*;

    #[test]
    fn closing_takes_the_value_from_whoever_holds_it() {
        let registry = Arc::new(Registry::default());
        let value = Arc::new(());
        let mut lease = Lease::new(&registry, Arc::clone(&value)).unwrap();
        assert_eq!(lease.read(|value| Ok(Arc::strong_count(value))).unwrap(), 2);
        registry.close();
        assert_eq!(Arc::strong_count(&value), 1);
        assert_eq!(lease.read(|_| Ok(())).unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(lease.write(|_| Ok(())).unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(Lease::new(&registry, Arc::clone(&value)).unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn a_dropped_lease_leaves_nothing_behind() {
        let registry = Arc::new(Registry::default());
        let value = Arc::new(());
        drop(Lease::new(&registry, Arc::clone(&value)).unwrap());
        assert_eq!(Arc::strong_count(&value), 1);
        assert!(registry.0.lock().live.is_empty());
    }
}
