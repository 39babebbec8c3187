use crate::Durability;

/// What a backend can do.
///
/// ```
/// use kstate_api::{Capabilities, Durability};
///
/// assert!(!Capabilities::volatile().persistent());
/// assert_eq!(Capabilities::persisting(Durability::Sync).durability(), Some(Durability::Sync));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    durability: Option<Durability>,
}

impl Capabilities {
    /// A backend that keeps nothing once it is closed.
    ///
    /// ```
    /// # use kstate_api::Capabilities;
    /// assert_eq!(Capabilities::volatile().durability(), None);
    /// ```
    #[must_use]
    pub const fn volatile() -> Self {
        Self { durability: None }
    }

    /// A backend that keeps its commits over close and reopen, and over a crash as `durability` says.
    ///
    /// ```
    /// # use kstate_api::{Capabilities, Durability};
    /// assert!(Capabilities::persisting(Durability::Eventual).persistent());
    /// ```
    #[must_use]
    pub const fn persisting(durability: Durability) -> Self {
        Self { durability: Some(durability) }
    }

    /// Whether a clean close and reopen keeps everything committed.
    ///
    /// ```
    /// # use kstate_api::Capabilities;
    /// assert!(!Capabilities::volatile().persistent());
    /// ```
    #[must_use]
    pub const fn persistent(self) -> bool {
        self.durability.is_some()
    }

    /// What each commit survives as the backend was opened; `None` if it is not persistent.
    ///
    /// ```
    /// # use kstate_api::{Capabilities, Durability};
    /// assert_eq!(Capabilities::persisting(Durability::Process).durability(), Some(Durability::Process));
    /// ```
    #[must_use]
    pub const fn durability(self) -> Option<Durability> {
        self.durability
    }
}
