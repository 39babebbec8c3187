use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Tells whoever waits or works on something long that it is no longer wanted.
///
/// Clones are one and the same: cancel one, and all are. There is no way back.
///
/// ```
/// use kstate_offset_cache::Cancellation;
///
/// let cancellation = Cancellation::new();
/// let of_another_thread = cancellation.clone();
/// assert!(!of_another_thread.is_cancelled());
/// cancellation.cancel();
/// assert!(of_another_thread.is_cancelled());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    /// One that nobody has cancelled yet.
    ///
    /// ```
    /// # use kstate_offset_cache::Cancellation;
    /// assert!(!Cancellation::new().is_cancelled());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels, for good. What waits notices within 10 ms; what works, after the step that it is in.
    ///
    /// ```
    /// # use kstate_offset_cache::Cancellation;
    /// Cancellation::new().cancel();
    /// ```
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether somebody cancelled.
    ///
    /// ```
    /// # use kstate_offset_cache::Cancellation;
    /// assert!(!Cancellation::new().is_cancelled());
    /// ```
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
