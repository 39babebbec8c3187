use std::{
    fmt,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use kstate_api::{Error, ErrorKind, KeyValueStoreSupplier, Result, TaskId};
use kstate_checkpoint::TriggerOptions;
use kstate_offset_cache::{OffsetCache, StartupScan, StateDirectory, TopologyStores};
use kstate_processing::{ExecutorSettings, MetadataLimit, Role};

use crate::{Cluster, transactional_producer::TRANSACTION_TIMEOUT};

use super::{
    Guarantee, Listener, OnError, OutputRecord, OwnedRecord, ProcessingFailure, ProcessingResult, Processor,
    ProcessorSupplier, RebalanceProtocol, RunningApp, SourceRecord, TaskContext,
    definition::{Definition, ErrorHandler, Timeouts, changelog_topic, check_names, check_topics},
    listener::Silence,
    processing::{Processing, SharedProcessor, WorkerProcessing},
    roles::Roles,
};

/// How the app is made up, until it is started.
///
/// The id is the consumer group, the directory of the state below the state directory unless another one is
/// [named](App::directory_name), and the beginning of the changelogs' names, which are those of Kafka Streams:
/// `<id>-<store>-changelog`.
pub struct App {
    cluster: Cluster,
    id: String,
    state_directory: PathBuf,
    directory_name: Option<String>,
    sources: Vec<String>,
    suppliers: Vec<Arc<dyn KeyValueStoreSupplier>>,
    on_error: Box<ErrorHandler>,
    listener: Arc<dyn Listener>,
    guarantee: Guarantee,
    protocol: RebalanceProtocol,
    instance: Option<String>,
    alone: bool,
    threads: NonZeroUsize,
    standbys: bool,
    dead_letters: Option<String>,
    roles: Roles,
    commit_interval: Duration,
    max_records: u64,
    max_uncommitted_bytes: u64,
    timeouts: Timeouts,
}

impl App {
    /// An app of one thread, at least once, that moves partitions cooperatively, takes a checkpoint every 5 s and ends
    /// with the first error.
    ///
    /// ```
    /// use kstate_kafka::{Cluster, app::App};
    ///
    /// let app = App::new(&Cluster::new("localhost:9092"), "word-count", "/var/lib/word-count");
    /// ```
    pub fn new(cluster: &Cluster, id: impl Into<String>, state_directory: impl AsRef<Path>) -> Self {
        Self {
            cluster: cluster.clone(),
            id: id.into(),
            state_directory: state_directory.as_ref().to_owned(),
            directory_name: None,
            sources: Vec::new(),
            suppliers: Vec::new(),
            on_error: Box::new(|_| OnError::Fail),
            listener: Arc::new(Silence),
            guarantee: Guarantee::default(),
            protocol: RebalanceProtocol::default(),
            instance: None,
            alone: false,
            threads: NonZeroUsize::MIN,
            standbys: false,
            dead_letters: None,
            roles: Roles::default(),
            commit_interval: Duration::from_secs(5),
            max_records: u64::MAX,
            max_uncommitted_bytes: 64 << 20,
            timeouts: Timeouts {
                delivery: Duration::from_secs(60),
                stop: Duration::from_secs(30),
                retry: Duration::from_secs(300),
            },
        }
    }

    /// Keeps its state in the directory `name` below the state directory, not in one that has the id as its name: for
    /// processes of one app that share a state directory, or an id that is another one each time.
    #[must_use]
    pub fn directory_name(mut self, name: impl Into<String>) -> Self {
        self.directory_name = Some(name.into());
        self
    }

    /// Reads `topic`. All sources have the same number of partitions: the partitions of one number are one task.
    #[must_use]
    pub fn source(mut self, topic: impl Into<String>) -> Self {
        self.sources.push(topic.into());
        self
    }

    /// Has a store in each task.
    #[must_use]
    pub fn store(mut self, supplier: impl KeyValueStoreSupplier + 'static) -> Self {
        self.suppliers.push(Arc::new(supplier));
        self
    }

    /// How often each record takes effect.
    #[must_use]
    pub fn guarantee(mut self, guarantee: Guarantee) -> Self {
        self.guarantee = guarantee;
        self
    }

    /// How partitions move. With several sources it has to be [`RebalanceProtocol::Eager`].
    #[must_use]
    pub fn rebalance_protocol(mut self, protocol: RebalanceProtocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// A name of this process that no other member of the group has, and that it has again after a restart: static
    /// membership. The group deals nothing out anew if it comes back within `session.timeout.ms`, after a crash too;
    /// until then nobody else gets its partitions.
    #[must_use]
    pub fn instance_id(mut self, instance: impl Into<String>) -> Self {
        self.instance = Some(instance.into());
        self
    }

    /// Has no other process: its threads share all tasks out among themselves, and no group has to deal them out, so it
    /// begins as soon as it is started. It takes over from a predecessor that died at once.
    ///
    /// Nothing fences it. Whoever starts a second process has two that write to the same changelogs, and neither has the
    /// right counts: see to it by other means, such as a state directory that both would have to own.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// How many threads share the tasks. Each is a member of the group.
    #[must_use]
    pub fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = threads;
        self
    }

    /// Keeps a copy of every task that runs in another process, as far as the group has committed it: a *standby*. When
    /// such a task moves here, it is restored from its copy, which lacks no more than its last checkpoints.
    ///
    /// Every process of the group that keeps standbys has the state of all tasks then, in its directory, and reads all
    /// changelogs. A client's own assignors do not know who has which copy; so wherever a task moves, there is one.
    /// A store that is not persistent has to be filled from its changelog first, after each start and after each time
    /// its task ran here.
    #[must_use]
    pub fn standbys(mut self, standbys: bool) -> Self {
        self.standbys = standbys;
        self
    }

    /// The time between two checkpoints of a thread. Exactly once, readers of the outputs wait as long.
    #[must_use]
    pub fn commit_interval(mut self, interval: Duration) -> Self {
        self.commit_interval = interval;
        self
    }

    /// How many records at most a thread processes between two checkpoints.
    #[must_use]
    pub fn max_records_per_checkpoint(mut self, records: u64) -> Self {
        self.max_records = records;
        self
    }

    /// How many bytes at most the stores of a thread stage between two checkpoints; one record may pass it.
    #[must_use]
    pub fn max_uncommitted_bytes(mut self, bytes: u64) -> Self {
        self.max_uncommitted_bytes = bytes;
        self
    }

    /// How long the last checkpoint may take: that of an app that stops, and that of partitions that are given up.
    #[must_use]
    pub fn stop_timeout(mut self, timeout: Duration) -> Self {
        self.timeouts.stop = timeout;
        self
    }

    /// How long the app goes on while nothing works: brokers that do not answer, a fenced member that does not get back
    /// in. Then it ends with the last error. 5 minutes, unless set.
    #[must_use]
    pub fn retry_timeout(mut self, timeout: Duration) -> Self {
        self.timeouts.retry = timeout;
        self
    }

    /// How long the records of one checkpoint may take to the brokers. 60 s, unless set.
    #[must_use]
    pub fn delivery_timeout(mut self, timeout: Duration) -> Self {
        self.timeouts.delivery = timeout;
        self
    }

    /// Hears what the app does.
    #[must_use]
    pub fn listener(mut self, listener: impl Listener + 'static) -> Self {
        self.listener = Arc::new(listener);
        self
    }

    /// Decides about records whose processing failed.
    #[must_use]
    pub fn on_error(mut self, handler: impl Fn(&ProcessingFailure<'_>) -> OnError + Send + Sync + 'static) -> Self {
        self.on_error = Box::new(handler);
        self
    }

    /// Where records go, key and value, that the workers of [`start_workers`](Self::start_workers) have failed to process
    /// for good. Without a topic only the [listener](Self::listener) hears of them.
    #[must_use]
    pub fn dead_letters(mut self, topic: impl Into<String>) -> Self {
        self.dead_letters = Some(topic.into());
        self
    }

    /// How much the outputs to `topic` have to say about the records that they are sent for. Unless set, an output is
    /// [`Required`](Role::Required): as long as it is not delivered, nothing is committed.
    ///
    /// Of the outputs that one record has to topics that are [`AnyOf`](Role::AnyOf), one has to be delivered, whichever;
    /// they are sent once the record is processed. Outputs that are [`Ignored`](Role::Ignored) are not waited for, and
    /// counted if they fail ([`AppStats::ignored_failures`](super::AppStats::ignored_failures)). At least once only: a
    /// transaction has all of its records or none.
    ///
    /// ```
    /// use kstate_kafka::{Cluster, app::App};
    /// use kstate_processing::Role;
    ///
    /// // An order is billed for certain, shows up in one of two search indexes at least, and is advertised if it works out.
    /// let app = App::new(&Cluster::new("localhost:9092"), "orders", "/var/lib/orders")
    ///     .output_role("search-1", Role::AnyOf)
    ///     .output_role("search-2", Role::AnyOf)
    ///     .output_role("advertisements", Role::Ignored);
    /// ```
    #[must_use]
    pub fn output_role(mut self, topic: impl Into<String>, role: Role) -> Self {
        self.roles.set(topic.into(), role);
        self
    }

    /// Starts it, with the same function for every task.
    ///
    /// # Errors
    /// As [`start_with`](Self::start_with).
    pub fn start<F>(self, process: F) -> Result<RunningApp>
    where
        F: Fn(&SourceRecord<'_>, &TaskContext<'_>) -> ProcessingResult + Send + Sync + 'static,
    {
        let process = Arc::new(process);
        self.start_with(move |_task: TaskId| -> Box<dyn Processor> {
            let process = Arc::clone(&process);
            Box::new(move |record: &SourceRecord<'_>, context: &TaskContext<'_>| process(record, context))
        })
    }

    /// Starts it, with a processor for each task.
    ///
    /// The topics are checked, and changelogs that are not there are created, before any store is opened.
    ///
    /// # Errors
    /// `Config` for what does not fit together: topics that are not there or have other numbers of partitions, a
    /// changelog that is not compacted, a commit interval that is longer than a transaction may take, an output
    /// role that it cannot have; `Locked` if
    /// another process has the state directory; `InvalidArgument` for a bad name; or what the brokers answer.
    pub fn start_with(self, processors: impl ProcessorSupplier + 'static) -> Result<RunningApp> {
        self.start_processing(Processing::InOrder(Box::new(processors)))
    }

    /// Starts it, with several workers for each task, which process records while others wait: for a look-up in another
    /// system, or for their next attempt. `settings.exactly_once` is the app's [`guarantee`](Self::guarantee).
    ///
    /// Workers only read the stores, which they name by the order in which the app was given them; what they write and
    /// send is applied by the task's thread. See [`Executor`](kstate_processing::Executor).
    ///
    /// ```
    /// use kstate_kafka::app::{App, OutputRecord, OwnedRecord, RunningApp};
    /// use kstate_processing::{CheckpointMode, ExecutorSettings, ProcessorFn, Work};
    ///
    /// fn start(app: App) -> kstate_api::Result<RunningApp> {
    ///     let settings = ExecutorSettings { workers: 8, checkpoint: CheckpointMode::Holes, ..ExecutorSettings::default() };
    ///     let enrich = ProcessorFn::new(|record: &OwnedRecord, work: &mut Work<'_, OutputRecord>| {
    ///         let key = record.get().key().unwrap_or_default().to_vec();
    ///         let address = "looked up, slowly";
    ///         work.put(0, key.clone(), address)?;
    ///         work.output(OutputRecord::by_key("enriched", key, address));
    ///         Ok(())
    ///     });
    ///     app.dead_letters("poisoned").start_workers(settings, enrich)
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`start_with`](Self::start_with); `Config` also for settings that cannot be had.
    pub fn start_workers(
        self,
        settings: ExecutorSettings,
        processor: impl kstate_processing::Processor<Record = OwnedRecord, Output = OutputRecord>,
    ) -> Result<RunningApp> {
        let settings = ExecutorSettings { exactly_once: self.guarantee == Guarantee::ExactlyOnce, ..settings };
        settings.check()?;
        let (limit, committed) = (settings.limits.metadata(), MetadataLimit::default().characters());
        if let Some(limit) = limit.filter(|limit| limit.characters() > committed) {
            let message = format!(
                "positions may take {} characters of metadata, and the group is given {committed} at most: lower the limit",
                limit.characters()
            );
            return Err(Error::new(ErrorKind::Config, message));
        }
        let processor = SharedProcessor(Arc::new(processor));
        self.start_processing(Processing::Workers(WorkerProcessing { settings, processor }))
    }

    fn start_processing(self, processing: Processing) -> Result<RunningApp> {
        let changelogs: Vec<_> =
            self.suppliers.iter().map(|supplier| changelog_topic(&self.id, supplier.name())).collect();
        check_names(&self.id, &self.sources, &changelogs, self.protocol)?;
        self.check_interval()?;
        self.roles.check(self.guarantee, self.dead_letters.as_deref())?;
        let partitions = check_topics(&self.cluster, &self.sources, &changelogs)?;
        let name = self.directory_name.as_ref().unwrap_or(&self.id);
        let directory = StateDirectory::open(&self.state_directory, name)?;
        let cache = Arc::new(OffsetCache::new());
        let mut stores = TopologyStores::new(&self.id)?;
        for supplier in &self.suppliers {
            stores = stores.with_logged(0, Arc::clone(supplier))?;
        }
        let scanned = StartupScan::new(&stores).run(&directory, &cache)?;
        for left_out in scanned.left_out() {
            tracing::warn!(?left_out, "the state of a task could not be looked at");
        }
        tracing::info!(id = self.id, partitions, threads = self.threads, guarantee = ?self.guarantee, "the app starts");
        let definition = Definition {
            commit_interval: self.commit_interval,
            trigger: TriggerOptions::new()
                .interval(self.commit_interval)
                .max_records(self.max_records)
                .max_uncommitted_bytes(self.max_uncommitted_bytes),
            cluster: self.cluster,
            id: self.id,
            sources: self.sources,
            suppliers: self.suppliers,
            changelogs,
            processing,
            dead_letters: self.dead_letters,
            roles: self.roles,
            on_error: self.on_error,
            listener: self.listener,
            guarantee: self.guarantee,
            protocol: self.protocol,
            instance: self.instance,
            alone: self.alone.then_some(self.threads),
            timeouts: self.timeouts,
            directory,
            cache,
            tasks: partitions,
        };
        RunningApp::start(definition, self.threads.get(), self.standbys)
    }

    fn check_interval(&self) -> Result<()> {
        let set = self.cluster.property("transaction.timeout.ms").and_then(|ms| ms.parse().ok());
        let limit = set.map_or(TRANSACTION_TIMEOUT, Duration::from_millis);
        if self.guarantee == Guarantee::ExactlyOnce && self.commit_interval >= limit {
            let message = format!(
                "a commit interval of {:?}; the broker aborts a transaction that takes longer than {limit:?}",
                self.commit_interval
            );
            return Err(Error::new(ErrorKind::Config, message));
        }
        Ok(())
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("id", &self.id)
            .field("sources", &self.sources)
            .field("suppliers", &self.suppliers)
            .field("guarantee", &self.guarantee)
            .finish_non_exhaustive()
    }
}
