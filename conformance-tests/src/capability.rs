use std::fmt;

/// What a store under test says it can do: the mandatory `true`/`false` tokens of
/// [`conformance_tests!`](crate::conformance_tests).
///
/// A case that needs a capability the store does not declare is ignored, with the reason; the case
/// `declaration_matches_the_store` fails if the store can do what is declared `false`, or cannot do what is declared
/// `true`.
///
/// ```
/// use kstate_conformance_tests::Capability;
///
/// assert_eq!(Capability::DurableCommit.to_string(), "durable_commit");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// `persistent`: a clean close and reopen keeps what was committed.
    Persistent,
    /// `manages_offsets`: the store keeps changelog offsets and the source position itself.
    ManagesOffsets,
    /// `durable_commit`: each commit survives the death of the process ([`Durability::Process`] or more). Without it
    /// only a flush promises that.
    ///
    /// [`Durability::Process`]: kstate_api::Durability::Process
    DurableCommit,
    /// `synced_commit`: each commit survives a power loss ([`Durability::Sync`]).
    ///
    /// [`Durability::Sync`]: kstate_api::Durability::Sync
    SyncedCommit,
    /// `snapshots`: `snapshot()` works; else it answers `Unsupported`.
    Snapshots,
    /// `reverse_scan`: scans in descending order work; else they answer `Unsupported`.
    ReverseScan,
    /// `long_keys`: keys of up to [`MAX_KEY_LEN`](kstate_api::MAX_KEY_LEN) are stored. Else the store's engine takes
    /// fewer bytes, and the store refuses every longer key before it is staged.
    LongKeys,
    /// `multi_process_lock`: a directory that is open cannot be opened again, by this process or another.
    MultiProcessLock,
    /// `closed_offsets`: the offsets can be read from the directory of a closed store
    /// ([`Harness::read_offsets`](crate::Harness::read_offsets)).
    ClosedOffsets,
    /// `faults`: commits and reads can be made to fail
    /// ([`Harness::open_faulty`](crate::Harness::open_faulty)).
    Faults,
    /// `state_store_only`: the store is a [`StateStore`](kstate_api::StateStore) with an interface of its own beside it,
    /// and no [`KeyValueStore`](kstate_api::KeyValueStore); see [`StateStoreHarness`](crate::StateStoreHarness). What a
    /// store lacks rather than what it can do: it is not in [`ALL`](Capability::ALL).
    StateStoreOnly,
}

impl Capability {
    /// Every capability of a key-value store, in the order in which the macro takes them.
    pub const ALL: [Self; 10] = [
        Self::Persistent,
        Self::ManagesOffsets,
        Self::DurableCommit,
        Self::SyncedCommit,
        Self::Snapshots,
        Self::ReverseScan,
        Self::LongKeys,
        Self::MultiProcessLock,
        Self::ClosedOffsets,
        Self::Faults,
    ];
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Persistent => "persistent",
            Self::ManagesOffsets => "manages_offsets",
            Self::DurableCommit => "durable_commit",
            Self::SyncedCommit => "synced_commit",
            Self::Snapshots => "snapshots",
            Self::ReverseScan => "reverse_scan",
            Self::LongKeys => "long_keys",
            Self::MultiProcessLock => "multi_process_lock",
            Self::ClosedOffsets => "closed_offsets",
            Self::Faults => "faults",
            Self::StateStoreOnly => "state_store_only",
        })
    }
}

/// The capabilities that a store under test declares.
///
/// ```
/// use kstate_conformance_tests::{Capability, Declared};
///
/// let declared = Declared::new(&[Capability::Snapshots]);
/// assert!(declared.has(Capability::Snapshots));
/// assert!(!declared.has(Capability::Persistent));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    // One bit for each capability.
    bits: u16,
}

impl Declared {
    /// Declares `capabilities`, and no other.
    ///
    /// ```
    /// # use kstate_conformance_tests::{Capability, Declared};
    /// let everything = Declared::new(&Capability::ALL);
    /// ```
    #[must_use]
    pub fn new(capabilities: &[Capability]) -> Self {
        Self { bits: capabilities.iter().fold(0, |bits, capability| bits | 1 << *capability as u16) }
    }

    /// Declares each capability of [`Capability::ALL`] as the value at its place says.
    ///
    /// ```
    /// # use kstate_conformance_tests::{Capability, Declared};
    /// assert_eq!(Declared::from_values([true; 10]), Declared::new(&Capability::ALL));
    /// ```
    #[must_use]
    pub fn from_values(values: [bool; Capability::ALL.len()]) -> Self {
        let declared = Capability::ALL.into_iter().zip(values).filter(|(_, value)| *value);
        Self::new(&declared.map(|(capability, _)| capability).collect::<Vec<_>>())
    }

    /// Declares `capability`, too.
    ///
    /// ```
    /// # use kstate_conformance_tests::{Capability, Declared};
    /// let declared = Declared::new(&[Capability::Persistent]).and(Capability::StateStoreOnly);
    /// assert!(declared.has(Capability::Persistent) && declared.has(Capability::StateStoreOnly));
    /// ```
    #[must_use]
    pub const fn and(self, capability: Capability) -> Self {
        Self { bits: self.bits | 1 << capability as u16 }
    }

    /// Whether `capability` is declared.
    ///
    /// ```
    /// # use kstate_conformance_tests::{Capability, Declared};
    /// assert!(!Declared::new(&[]).has(Capability::Faults));
    /// ```
    #[must_use]
    pub fn has(self, capability: Capability) -> bool {
        self.bits & 1 << capability as u16 != 0
    }
}
