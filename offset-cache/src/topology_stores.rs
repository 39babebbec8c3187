use std::{
    any::Any,
    collections::{BTreeMap, btree_map::Entry},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    slice,
    sync::Arc,
};

use kstate_api::{Error, ErrorKind, KeyValueStoreSupplier, Offset, Result, TaskId, TopicPartition, validate_name};

use crate::layout::validate_store_name;

/// The stores of an application, by sub-topology, with the changelog of each: what tells the start-up scan where to look
/// for what.
///
/// All names are checked here, when the topology is built and before anything is made (clause D1, case HO-65): store,
/// application and topic names must be legal, no two may meet in one path or one topic, not even on a file system that
/// does not tell `A` from `a`, nor in Kafka, which does not tell `.` from `_`.
///
/// ```
/// use std::sync::Arc;
///
/// use kstate_api::{StagedSupplier, TaskId, TopicPartition};
/// use kstate_offset_cache::TopologyStores;
/// use kstate_store_redb::{RedbBackends, RedbOptions};
///
/// # fn main() -> kstate_api::Result<()> {
/// let counts = Arc::new(StagedSupplier::new("counts", RedbBackends::new(RedbOptions::new()))?);
/// let stores = TopologyStores::new("word-count")?.with_logged(0, counts)?;
/// let changelogs = stores.changelogs(TaskId::new(0, 3));
/// assert_eq!(changelogs, [TopicPartition::new("word-count-counts-changelog", 3)]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TopologyStores {
    application_id: String,
    stores: BTreeMap<u32, Vec<TopologyStore>>,
    /// Each name as it meets others, and as it is.
    names: BTreeMap<String, String>,
    topics: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
pub(crate) struct TopologyStore {
    pub(crate) supplier: Arc<dyn KeyValueStoreSupplier>,
    pub(crate) changelog: Option<Arc<str>>,
}

impl TopologyStores {
    /// No stores yet.
    ///
    /// # Errors
    /// `InvalidArgument` for an application id that is no legal name.
    ///
    /// ```
    /// # use kstate_offset_cache::TopologyStores;
    /// assert!(TopologyStores::new("word-count").is_ok());
    /// assert!(TopologyStores::new("word count").is_err());
    /// ```
    pub fn new(application_id: &str) -> Result<Self> {
        validate_name("application", application_id)?;
        let application_id = application_id.to_owned();
        Ok(Self { application_id, stores: BTreeMap::new(), names: BTreeMap::new(), topics: BTreeMap::new() })
    }

    /// These and the stores of `supplier` in `subtopology`, logged to `<application id>-<store>-changelog`, as Kafka
    /// Streams names it.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that is not legal or already taken.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kstate_api::StagedSupplier;
    /// # use kstate_offset_cache::TopologyStores;
    /// # use kstate_store_memory::MemoryBackends;
    /// let counts = Arc::new(StagedSupplier::new("counts", MemoryBackends::new()).unwrap());
    /// let stores = TopologyStores::new("app").unwrap().with_logged(0, counts.clone()).unwrap();
    /// assert!(stores.with_logged(1, counts).is_err(), "the name is taken");
    /// ```
    pub fn with_logged(self, subtopology: u32, supplier: Arc<dyn KeyValueStoreSupplier>) -> Result<Self> {
        let topic = format!("{}-{}-changelog", self.application_id, supplier.name());
        self.with_logged_to(subtopology, supplier, &topic)
    }

    /// These and the stores of `supplier` in `subtopology`, logged to `topic`.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that is not legal or already taken.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kstate_api::{StagedSupplier, TaskId, TopicPartition};
    /// # use kstate_offset_cache::TopologyStores;
    /// # use kstate_store_memory::MemoryBackends;
    /// let table = Arc::new(StagedSupplier::new("table", MemoryBackends::new()).unwrap());
    /// let stores = TopologyStores::new("app").unwrap().with_logged_to(0, table, "input").unwrap();
    /// assert_eq!(stores.changelogs(TaskId::new(0, 1)), [TopicPartition::new("input", 1)]);
    /// ```
    pub fn with_logged_to(
        mut self,
        subtopology: u32,
        supplier: Arc<dyn KeyValueStoreSupplier>,
        topic: &str,
    ) -> Result<Self> {
        // The store first: its own name is what a developer knows.
        validate_store_name(supplier.name())?;
        validate_name("changelog topic", topic)?;
        take(&mut self.topics, "changelog topics", topic, topic.replace('.', "_"))?;
        self.add(subtopology, supplier, Some(topic.into()))
    }

    /// These and the stores of `supplier` in `subtopology`, which have no changelog. Nothing can restore them, and they
    /// never enter the cache.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that is not legal or already taken.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kstate_api::{StagedSupplier, TaskId};
    /// # use kstate_offset_cache::TopologyStores;
    /// # use kstate_store_memory::MemoryBackends;
    /// let scratch = Arc::new(StagedSupplier::new("scratch", MemoryBackends::new()).unwrap());
    /// let stores = TopologyStores::new("app").unwrap().with_unlogged(0, scratch).unwrap();
    /// assert!(stores.changelogs(TaskId::new(0, 1)).is_empty());
    /// ```
    pub fn with_unlogged(self, subtopology: u32, supplier: Arc<dyn KeyValueStoreSupplier>) -> Result<Self> {
        validate_store_name(supplier.name())?;
        self.add(subtopology, supplier, None)
    }

    fn add(
        mut self,
        subtopology: u32,
        supplier: Arc<dyn KeyValueStoreSupplier>,
        changelog: Option<Arc<str>>,
    ) -> Result<Self> {
        take(&mut self.names, "stores", supplier.name(), supplier.name().to_ascii_lowercase())?;
        self.stores.entry(subtopology).or_default().push(TopologyStore { supplier, changelog });
        Ok(self)
    }

    /// The application's id.
    ///
    /// ```
    /// # use kstate_offset_cache::TopologyStores;
    /// assert_eq!(TopologyStores::new("word-count").unwrap().application_id(), "word-count");
    /// ```
    #[must_use]
    pub fn application_id(&self) -> &str {
        &self.application_id
    }

    /// All changelog partitions of `task`, those of stores in memory too: what its lag is counted over.
    ///
    /// ```
    /// # use kstate_api::TaskId;
    /// # use kstate_offset_cache::TopologyStores;
    /// assert!(TopologyStores::new("word-count").unwrap().changelogs(TaskId::new(0, 0)).is_empty());
    /// ```
    #[must_use]
    pub fn changelogs(&self, task: TaskId) -> Vec<TopicPartition> {
        self.of(task).iter().filter_map(|store| store.changelog_of(task)).collect()
    }

    /// The stores of `task`.
    pub(crate) fn of(&self, task: TaskId) -> &[TopologyStore] {
        self.stores.get(&task.subtopology()).map_or(&[], Vec::as_slice)
    }
}

impl TopologyStore {
    /// The partition that the store of `task` is logged to, if it is.
    pub(crate) fn changelog_of(&self, task: TaskId) -> Option<TopicPartition> {
        // Kafka counts partitions in an `i32`: there is no task beyond.
        let partition = i32::try_from(task.partition()).ok()?;
        Some(TopicPartition::new(Arc::clone(self.changelog.as_ref()?), partition))
    }

    /// The offset that the store in `directory` has committed for `changelog`. A panic in its engine is damage, as far as
    /// anyone can tell.
    pub(crate) fn read_offset(&self, directory: &Path, changelog: &TopicPartition) -> Result<Option<Offset>> {
        // Whatever is left half done belongs to an open that is over.
        let read = catch_unwind(AssertUnwindSafe(|| self.supplier.read_offsets(directory, slice::from_ref(changelog))));
        let offsets = read.unwrap_or_else(|panic| {
            let message = format!("cannot read the store's offsets: its engine panicked: {}", panic_message(&*panic));
            Err(Error::new(ErrorKind::Corrupted, message))
        })?;
        Ok(offsets.get(changelog))
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// Takes `name`, which is `key` to whoever does not tell it from others.
fn take(taken: &mut BTreeMap<String, String>, what: &str, name: &str, key: String) -> Result<()> {
    match taken.entry(key) {
        Entry::Vacant(free) => {
            free.insert(name.to_owned());
            Ok(())
        }
        Entry::Occupied(other) => {
            let message = format!("two {what} of one application would meet: `{}` and `{name}`", other.get());
            Err(Error::new(ErrorKind::InvalidArgument, message))
        }
    }
}
