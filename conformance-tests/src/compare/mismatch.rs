use std::{error::Error, fmt};

/// Where two stores that are [compared](crate::Compare) differ.
///
/// ```
/// use std::error::Error;
///
/// use kstate_api::{KeyValueStore, ReadOnlyKeyValueStoreExt, StagedStore};
/// use kstate_conformance_tests::{Compare, Mismatch};
/// use kstate_store_memory::MemoryBackend;
///
/// # fn main() -> kstate_api::Result<()> {
/// # let trusted = StagedStore::open("counts", MemoryBackend::new(), &[])?;
/// # let candidate = StagedStore::open("counts", MemoryBackend::new(), &[])?;
/// candidate.put(b"word", b"2")?;
/// let error = Compare::new(trusted, candidate)?.get(b"word").unwrap_err();
/// let mismatch: &Mismatch = error.source().unwrap().downcast_ref().unwrap();
/// assert_eq!(mismatch.call(), r#"get_with(b"word")"#);
/// assert_eq!((mismatch.trusted(), mismatch.candidate()), ("None", r#"Some(b"2")"#));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    pub(super) call: String,
    pub(super) trusted: String,
    pub(super) candidate: String,
}

impl Mismatch {
    /// The call that they answered differently, with its arguments.
    #[must_use]
    pub fn call(&self) -> &str {
        &self.call
    }

    /// What the trusted store answered, for people; the middle of a long answer is left out.
    #[must_use]
    pub fn trusted(&self) -> &str {
        &self.trusted
    }

    /// What the candidate answered.
    #[must_use]
    pub fn candidate(&self) -> &str {
        &self.candidate
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: trusted: {}, candidate: {}", self.call, self.trusted, self.candidate)
    }
}

impl Error for Mismatch {}
