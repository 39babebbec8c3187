//! What the threads of an executor meet at, in one place: the models in `tests/models` compile the files that use it
//! over the types of a model checker.

use std::sync::PoisonError;
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

/// The guard of `mutex`. No code of a user runs under it, and what a panicking thread left there is whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
