use std::{error::Error as StdError, fmt, io};

/// The result of every fallible call of this crate.
///
/// ```
/// fn check(name: &str) -> kstate_api::Result<()> {
///     kstate_api::validate_name("store", name)
/// }
/// # check("counts").unwrap();
/// ```
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, named by what a caller can do about it.
///
/// ```
/// use kstate_api::{Error, ErrorKind};
///
/// fn remedy(error: &Error) -> &'static str {
///     match error.kind() {
///         ErrorKind::Busy | ErrorKind::Unavailable => "try again",
///         ErrorKind::Poisoned | ErrorKind::DiskFull => "make room if it was full, then reopen",
///         ErrorKind::Corrupted => "wipe and restore from the changelog",
///         _ => "see the message",
///     }
/// }
/// # assert_eq!(remedy(&Error::new(ErrorKind::Busy, "")), "try again");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The call breaks a rule that its documentation states; nothing was done. Mend the call.
    InvalidArgument,
    /// The store, cursor or snapshot is closed; nothing was done. Open the store again.
    Closed,
    /// The directory has another owner, in this process or another. Wait for it or stop it.
    Locked,
    /// Somebody else is at it right now. Try again.
    Busy,
    /// The operating system or the engine failed to read or write. Try again, or reopen.
    Io,
    /// The disk or a quota is full. Make room, then reopen the store.
    DiskFull,
    /// The store no longer knows whether its last commit happened. Close it and open it again (clause O7).
    Poisoned,
    /// What is on disk is damaged. Wipe the store and restore it from its changelog.
    Corrupted,
    /// A newer version wrote this; nothing was touched. Upgrade, or wipe and restore.
    NewerFormat,
    /// The broker cannot be reached or did not answer in time. Try again.
    Unavailable,
    /// The transaction cannot be committed. Abort it, roll back, and process its source records again.
    Aborted,
    /// Another owner has taken over. Close without a commit; what was done since the last one is theirs to do.
    Fenced,
    /// This implementation cannot do that.
    Unsupported,
    /// The configuration asks for what cannot be had. Mend it.
    Config,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidArgument => "invalid argument",
            Self::Closed => "closed",
            Self::Locked => "locked",
            Self::Busy => "busy",
            Self::Io => "input/output",
            Self::DiskFull => "disk full",
            Self::Poisoned => "poisoned",
            Self::Corrupted => "corrupted",
            Self::NewerFormat => "newer format",
            Self::Unavailable => "unavailable",
            Self::Aborted => "aborted",
            Self::Fenced => "fenced",
            Self::Unsupported => "unsupported",
            Self::Config => "configuration",
        })
    }
}

/// Whether a commit that failed may have happened all the same (clause O7).
///
/// ```
/// use kstate_api::{CommitOutcome, Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::Io, "fsync failed").with_commit_outcome(CommitOutcome::Unknown);
/// assert_eq!(error.commit_outcome(), Some(CommitOutcome::Unknown));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommitOutcome {
    /// The commit did not happen; what was staged is still staged.
    NotApplied,
    /// The commit may or may not be there after a reopen, but whole; until then the store is poisoned.
    Unknown,
}

/// Any error of a store, a backend or what is built on them.
///
/// Match on [`kind`](Error::kind); the message is for people and may change.
///
/// ```
/// use kstate_api::{Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::Locked, "another process owns the directory").with_store("counts");
/// assert_eq!(error.kind(), ErrorKind::Locked);
/// assert_eq!(error.store(), Some("counts"));
/// assert_eq!(error.to_string(), "store `counts`: another process owns the directory");
/// ```
// Boxed: a `Result<()>` of this is one word, and errors are rare.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    store: Option<String>,
    commit_outcome: Option<CommitOutcome>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of `kind` that tells people `message`.
    ///
    /// ```
    /// # use kstate_api::{Error, ErrorKind};
    /// let error = Error::new(ErrorKind::Closed, "the store is closed");
    /// ```
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), store: None, commit_outcome: None, source: None }))
    }

    /// An error of the operating system, met while doing `what`: [`ErrorKind::DiskFull`] if a disk or quota is full,
    /// else [`ErrorKind::Io`].
    ///
    /// ```
    /// # use kstate_api::{Error, ErrorKind};
    /// let error = Error::io("cannot create the store's directory", std::io::ErrorKind::StorageFull.into());
    /// assert_eq!(error.kind(), ErrorKind::DiskFull);
    /// ```
    pub fn io(what: impl fmt::Display, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::DiskFull,
            _ => ErrorKind::Io,
        };
        Self::new(kind, format!("{what}: {source}")).with_source(source)
    }

    /// The same error, caused by `source`.
    ///
    /// ```
    /// # use kstate_api::{Error, ErrorKind};
    /// use std::error::Error as _;
    /// let error = Error::new(ErrorKind::Io, "cannot read").with_source(std::io::Error::other("bad sector"));
    /// assert_eq!(error.source().unwrap().to_string(), "bad sector");
    /// ```
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// The same error, of the store `name`, unless it has a store already.
    ///
    /// ```
    /// # use kstate_api::{Error, ErrorKind};
    /// let error = Error::new(ErrorKind::Closed, "closed").with_store("inner").with_store("outer");
    /// assert_eq!(error.store(), Some("inner"));
    /// ```
    #[must_use]
    pub fn with_store(mut self, name: &str) -> Self {
        self.0.store.get_or_insert_with(|| name.to_owned());
        self
    }

    /// The same error, as the answer of a commit of that outcome.
    ///
    /// ```
    /// # use kstate_api::{CommitOutcome, Error, ErrorKind};
    /// let error = Error::new(ErrorKind::Io, "").with_commit_outcome(CommitOutcome::NotApplied);
    /// ```
    #[must_use]
    pub fn with_commit_outcome(mut self, outcome: CommitOutcome) -> Self {
        self.0.commit_outcome = Some(outcome);
        self
    }

    /// What a caller can do about it.
    ///
    /// ```
    /// # use kstate_api::{Error, ErrorKind};
    /// assert_eq!(Error::new(ErrorKind::Busy, "").kind(), ErrorKind::Busy);
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The store it happened in, if it happened in one.
    ///
    /// ```
    /// # use kstate_api::{Error, ErrorKind};
    /// assert_eq!(Error::new(ErrorKind::Busy, "").store(), None);
    /// ```
    #[must_use]
    pub fn store(&self) -> Option<&str> {
        self.0.store.as_deref()
    }

    /// For a failed commit, restore step or wipe: whether it may have happened. `None` for other calls.
    ///
    /// ```
    /// # use kstate_api::{Error, ErrorKind};
    /// assert_eq!(Error::new(ErrorKind::Closed, "").commit_outcome(), None);
    /// ```
    #[must_use]
    pub fn commit_outcome(&self) -> Option<CommitOutcome> {
        self.0.commit_outcome
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(store) = &self.0.store {
            write!(f, "store `{store}`: ")?;
        }
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, message, store, commit_outcome, source } = &*self.0;
        f.debug_struct("Error")
            .field("kind", kind)
            .field("message", message)
            .field("store", store)
            .field("commit_outcome", commit_outcome)
            .field("source", source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}
