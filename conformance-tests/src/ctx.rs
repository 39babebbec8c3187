use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use kstate_api::{ChangelogOffsets, KeyValueStore, Offset, Result, TopicPartition, WriteBatch};

use crate::{
    Capability, Case, Declared, Faults, Violation,
    child::{self, ChildProcess, apart_from_starts},
    harness::{AnyHarness, Opened},
    suite::Respawn,
};

/// What a case gets: a directory of its own, and the way to open the store under test in it.
///
/// Only a [`Suite`](crate::Suite) makes one.
pub struct Ctx {
    pub(crate) harness: Arc<dyn AnyHarness>,
    pub(crate) declared: Declared,
    pub(crate) case: &'static Case,
    /// The case's own directory; the store's directory and the suite's own files lie in it.
    pub(crate) root: PathBuf,
    pub(crate) respawn: Option<Respawn>,
    pub(crate) is_child: bool,
}

impl fmt::Debug for Ctx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { harness: _, declared, case, root, respawn, is_child } = self;
        f.debug_struct("Ctx")
            .field("declared", declared)
            .field("case", &case.name)
            .field("root", root)
            .field("respawn", respawn)
            .field("is_child", is_child)
            .finish_non_exhaustive()
    }
}

/// A changelog partition that every store is opened with.
pub(crate) fn changelog() -> TopicPartition {
    TopicPartition::new("conformance-changelog", 0)
}

/// A second changelog partition that every store is opened with.
pub(crate) fn other_changelog() -> TopicPartition {
    TopicPartition::new("conformance-changelog", 1)
}

/// A changelog partition that no store is opened with unless a case says so.
pub(crate) fn foreign_changelog() -> TopicPartition {
    TopicPartition::new("conformance-changelog", 2)
}

/// A source partition.
pub(crate) fn source() -> TopicPartition {
    TopicPartition::new("conformance-source", 0)
}

/// A second source partition.
pub(crate) fn other_source() -> TopicPartition {
    TopicPartition::new("conformance-source", 1)
}

/// The offset `value`; cases use no negative ones.
pub(crate) fn offset(value: i64) -> Offset {
    Offset::new(value).unwrap_or(Offset::ZERO)
}

/// The offset `value` of [`changelog`].
pub(crate) fn at(value: i64) -> ChangelogOffsets {
    ChangelogOffsets::new().with(changelog(), offset(value))
}

/// A batch that sets `key` to `value` and the offset of [`changelog`].
pub(crate) fn put_at(key: &'static [u8], value: &'static [u8], last: i64) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put(key, value);
    batch.set_offset(changelog(), offset(last));
    batch
}

/// The committed offset of [`changelog`], as a number.
pub(crate) fn committed(store: &dyn KeyValueStore) -> Result<Option<i64>> {
    Ok(store.committed_offset(&changelog())?.map(Offset::get))
}

impl Ctx {
    /// Opens the store in the case's directory, as the owner of two changelog partitions.
    ///
    /// # Errors
    /// What the store says.
    pub fn open(&self) -> Result<Arc<dyn KeyValueStore>> {
        self.open_as_owner_of(&[changelog(), other_changelog()])
    }

    /// Opens the store in the case's directory, as the owner of `changelog_partitions`.
    ///
    /// # Errors
    /// What the store says.
    pub fn open_as_owner_of(&self, changelog_partitions: &[TopicPartition]) -> Result<Arc<dyn KeyValueStore>> {
        Ok(apart_from_starts(|| self.harness.open(&self.directory(), changelog_partitions))?.store)
    }

    /// Opens the store so that what it stands on fails as `faults` say.
    ///
    /// # Errors
    /// What the store says.
    pub fn open_faulty(&self, faults: &Faults) -> Result<Arc<dyn KeyValueStore>> {
        apart_from_starts(|| self.harness.open_faulty(&self.directory(), &[changelog(), other_changelog()], faults))
    }

    /// Opens another store of the same name, as another task has it: in a directory of its own, deeper down.
    ///
    /// # Errors
    /// What the store says.
    pub fn open_another(&self) -> Result<Arc<dyn KeyValueStore>> {
        self.open_at(&self.root.join("another").join("0_1").join("store"))
    }

    /// Opens the store in `directory`.
    ///
    /// # Errors
    /// What the store says.
    pub fn open_at(&self, directory: &Path) -> Result<Arc<dyn KeyValueStore>> {
        Ok(apart_from_starts(|| self.harness.open(directory, &[changelog(), other_changelog()]))?.store)
    }

    /// Closes `store` and opens it again.
    ///
    /// # Errors
    /// What the store says.
    pub fn reopen(&self, store: Arc<dyn KeyValueStore>) -> Result<Arc<dyn KeyValueStore>> {
        store.close()?;
        drop(store);
        self.open()
    }

    /// Closes `store` and opens it again if it is persistent, for what has to outlive a reopen in such a store.
    ///
    /// # Errors
    /// What the store says.
    pub fn reopen_if_persistent(&self, store: Arc<dyn KeyValueStore>) -> Result<Arc<dyn KeyValueStore>> {
        if self.declares(Capability::Persistent) { self.reopen(store) } else { Ok(store) }
    }

    /// Opens the store, with what it tells of itself.
    pub(crate) fn open_told(&self) -> Result<Opened> {
        apart_from_starts(|| self.harness.open(&self.directory(), &[changelog(), other_changelog()]))
    }

    /// The offsets in the case's directory, read while the store is closed.
    ///
    /// # Errors
    /// What the store says.
    pub fn read_offsets(&self, changelog_partitions: &[TopicPartition]) -> Result<ChangelogOffsets> {
        apart_from_starts(|| self.harness.read_offsets(&self.directory(), changelog_partitions))
    }

    /// The directory that the store is opened in. It does not exist before.
    #[must_use]
    pub fn directory(&self) -> PathBuf {
        self.root.join("store")
    }

    /// The directory around the store's.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the store declares `capability`.
    #[must_use]
    pub fn declares(&self, capability: Capability) -> bool {
        self.declared.has(capability)
    }

    /// Whether this is the process that a case started, to be killed by it.
    pub(crate) const fn is_child(&self) -> bool {
        self.is_child
    }

    /// Runs this case again in a process of its own, on the same directory.
    pub(crate) fn spawn(&self) -> std::result::Result<ChildProcess, Violation> {
        child::spawn(self)
    }
}
