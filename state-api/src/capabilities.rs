use crate::{Durability, MAX_KEY_LEN};

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
    max_key_len: usize,
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
        Self { durability: None, max_key_len: MAX_KEY_LEN }
    }

    /// A backend that keeps its commits over close and reopen, and over a crash as `durability` says.
    ///
    /// ```
    /// # use kstate_api::{Capabilities, Durability};
    /// assert!(Capabilities::persisting(Durability::Eventual).persistent());
    /// ```
    #[must_use]
    pub const fn persisting(durability: Durability) -> Self {
        Self { durability: Some(durability), max_key_len: MAX_KEY_LEN }
    }

    /// The same, by an engine that takes no key of more than `bytes` bytes: less than [`MAX_KEY_LEN`].
    ///
    /// [`StagedStore`](crate::StagedStore) keeps longer ones from such a backend (clause R4): writing one is
    /// `InvalidArgument` before anything is staged, reading one finds nothing, and bounds of a scan are cut so that it
    /// means the same. The conformance suite wants 511 bytes at least.
    ///
    /// ```
    /// # use kstate_api::{Capabilities, Durability, MAX_KEY_LEN};
    /// assert_eq!(Capabilities::persisting(Durability::Sync).max_key_len(), MAX_KEY_LEN);
    /// assert_eq!(Capabilities::persisting(Durability::Sync).with_max_key_len(511).max_key_len(), 511);
    /// ```
    #[must_use]
    pub const fn with_max_key_len(self, bytes: usize) -> Self {
        Self { max_key_len: if bytes < MAX_KEY_LEN { bytes } else { MAX_KEY_LEN }, ..self }
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

    /// The longest key that the backend takes, in bytes; [`MAX_KEY_LEN`] at most.
    ///
    /// ```
    /// # use kstate_api::{Capabilities, MAX_KEY_LEN};
    /// assert_eq!(Capabilities::volatile().max_key_len(), MAX_KEY_LEN);
    /// ```
    #[must_use]
    pub const fn max_key_len(self) -> usize {
        self.max_key_len
    }
}
