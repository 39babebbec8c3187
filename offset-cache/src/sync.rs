//! What this crate's threads meet at, in one place: the models in `tests/models` compile the files that use it over
//! the types of a model checker.

use std::sync::PoisonError;
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

/// The guard of `mutex`. Nothing that is done under one of this crate's locks leaves anything half done, so what a
/// panicking thread left there is whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
