//! What the tests of the app have in common: topics of their own, words to count, and somebody who listens.

#![allow(dead_code, reason = "each test target uses a part of it")]

use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    path::Path,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use kstate_api::{CursorExt as _, ReadOnlyKeyValueStoreExt as _, StagedSupplier, TaskId, TopicPartition};
use kstate_checkpoint::{
    ChangelogReader as _, ChangelogRecord, ChangelogWriter as _, Committed, Restored, StandbyUpdate,
};
use kstate_kafka::{
    ChangelogConsumer, ChangelogProducer, Cluster, EmbeddedCluster, TopicSpec, Topics,
    app::{
        App, AppState, Listener, OutputRecord, OwnedRecord, ProcessingResult, Queries, RunningApp, SourceRecord,
        TaskContext, TaskState,
    },
};
use kstate_processing::{ProcessError, RecordFailure, Work};
use kstate_store_redb::{RedbBackends, RedbOptions};
use tracing_subscriber::EnvFilter;

/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);
/// How many different words there are.
const WORDS: usize = 100;

/// A source of words, the app's changelog, and an output, used by one test only.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) id: String,
    pub(crate) source: String,
    pub(crate) output: String,
    pub(crate) partitions: u32,
    fed: BTreeMap<String, u64>,
    embedded: Option<EmbeddedCluster>,
    topics: Option<Topics>,
}

impl World {
    pub(crate) fn embedded(partitions: u32) -> Self {
        let embedded = EmbeddedCluster::start().unwrap();
        let mut world = Self::in_process(embedded.cluster(), partitions);
        for topic in world.all_topics() {
            embedded.create_topic(&topic, partitions).unwrap();
        }
        world.embedded = Some(embedded);
        world
    }

    /// A world on a cluster of this process that belongs to the test, which makes its topics.
    pub(crate) fn in_process(cluster: Cluster, partitions: u32) -> Self {
        log();
        Self {
            cluster,
            id: "app".into(),
            source: "words".into(),
            output: "out".into(),
            partitions,
            fed: BTreeMap::new(),
            embedded: None,
            topics: None,
        }
    }

    /// The world of the app `id` on a real broker, whose topics are made unless they are there.
    pub(crate) fn at(cluster: Cluster, id: &str, partitions: u32) -> Self {
        log();
        let topics = Topics::new(&cluster).unwrap();
        let world = Self {
            cluster: cluster.with("session.timeout.ms", "6000").with("heartbeat.interval.ms", "500"),
            id: id.into(),
            source: format!("{id}-words"),
            output: format!("{id}-out"),
            partitions,
            fed: BTreeMap::new(),
            embedded: None,
            topics: Some(topics),
        };
        for topic in [&world.source, &world.output] {
            world.topics.as_ref().unwrap().ensure(&TopicSpec::new(topic, partitions)).unwrap();
        }
        world
    }

    pub(crate) fn all_topics(&self) -> [String; 3] {
        [self.source.clone(), self.output.clone(), self.changelog()]
    }

    pub(crate) fn changelog(&self) -> String {
        format!("{}-counts-changelog", self.id)
    }

    /// Feeds `records` words, each word to a partition of its own choice, which never changes.
    pub(crate) fn feed(&mut self, records: usize) {
        let mut producer = ChangelogProducer::new(&self.cluster, PATIENCE).unwrap();
        for n in 0..records {
            let number = n * 7 % WORDS;
            let word = format!("word-{number}");
            let partition = i32::try_from(number % self.partitions as usize).unwrap();
            let partition = TopicPartition::new(self.source.as_str(), partition);
            producer.send(&partition, Some(word.as_bytes()), Some(b"1")).unwrap();
            *self.fed.entry(word).or_default() += 1;
        }
        producer.flush().unwrap();
    }

    /// Nothing was fed.
    pub(crate) fn forget_fed(&mut self) {
        self.fed.clear();
    }

    /// Makes a topic of the embedded cluster.
    pub(crate) fn create_topic(&self, topic: &str, partitions: u32) {
        self.embedded.as_ref().unwrap().create_topic(topic, partitions).unwrap();
    }

    pub(crate) fn fed(&self) -> &BTreeMap<String, u64> {
        &self.fed
    }

    /// The app, with its state in `directory`, that takes a checkpoint often.
    pub(crate) fn app(&self, directory: &Path, listener: &Recorder) -> App {
        let backends = RedbBackends::new(RedbOptions::new().cache_size(1 << 20));
        App::new(&self.cluster, self.id.as_str(), directory)
            .source(self.source.as_str())
            .store(StagedSupplier::new("counts", backends).unwrap())
            .commit_interval(Duration::from_millis(100))
            .retry_timeout(PATIENCE)
            .listener(listener.clone())
    }

    /// The counts of each word in the output, in their order, as a reader of committed records sees them.
    pub(crate) fn sent(&self) -> BTreeMap<String, Vec<u64>> {
        let mut sent: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        self.read_committed(&self.output, &mut |record| {
            let key = String::from_utf8(record.key.unwrap().to_vec()).unwrap();
            sent.entry(key).or_default().push(u64::from_be_bytes(record.value.unwrap().try_into().unwrap()));
        });
        sent
    }

    /// Each word was sent with each of its counts once, in order.
    pub(crate) fn assert_sent_exactly_once(&self) {
        let sent = self.sent();
        for (word, count) in &self.fed {
            assert_eq!(sent.get(word), Some(&(1..=*count).collect()), "{word}");
        }
        assert_eq!(sent.len(), self.fed.len());
    }

    /// Shows every record of `topic` that is committed to `read`.
    pub(crate) fn read_committed(&self, topic: &str, read: &mut dyn FnMut(ChangelogRecord<'_>)) {
        let mut reader = ChangelogConsumer::read_committed(&self.cluster).unwrap();
        let deadline = Instant::now() + PATIENCE;
        for partition in 0..self.partitions.cast_signed() {
            let partition = TopicPartition::new(topic, partition);
            let bounds = reader.bounds(&partition).unwrap();
            reader.seek(&partition, bounds.start).unwrap();
            while reader.position().unwrap() < bounds.end {
                assert!(Instant::now() < deadline, "{partition} cannot be read to its end");
                reader.poll(Duration::from_millis(100), &mut |_, record| read(record)).unwrap();
            }
        }
    }

    /// How many records of the changelog are committed, transactions' markers among them.
    pub(crate) fn changelog_records(&self) -> i64 {
        let mut reader = ChangelogConsumer::read_committed(&self.cluster).unwrap();
        let ends = (0..self.partitions.cast_signed()).map(|partition| {
            reader.bounds(&TopicPartition::new(self.changelog(), partition)).map_or(0, |bounds| bounds.end.get())
        });
        ends.sum()
    }

    /// Feeds until each of two apps runs two of the four tasks.
    pub(crate) fn feed_until_shared(&mut self, first: &RunningApp, second: &RunningApp) {
        let tasks = |app: &RunningApp| app.queries().tasks().len();
        wait_until("each gets two tasks", || {
            self.feed(20);
            (tasks(first), tasks(second)) == (2, 2)
        });
    }

    /// Waits until the stores have exactly what was fed, all `apps` together.
    pub(crate) fn wait_for_counts(&self, apps: &[&RunningApp]) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let counted = counts(apps);
            if counted.as_ref() == Some(&self.fed) {
                return;
            }
            assert!(
                Instant::now() < deadline && apps.iter().all(|app| !app.state().has_ended()),
                "counted {:?} of {:?} in states {:?}",
                counted.map(|counted| counted.values().sum::<u64>()),
                self.fed.values().sum::<u64>(),
                apps.iter().map(|app| app.state()).collect::<Vec<_>>()
            );
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(topics) = &self.topics {
            // Only tidiness: the names are unique, and the broker is thrown away.
            let all = self.all_topics();
            drop(topics.delete(&all.each_ref().map(String::as_str)));
        }
    }
}

/// Shows what `RUST_LOG` asks for, to find out why a test fails.
fn log() {
    let subscriber = tracing_subscriber::fmt().with_env_filter(EnvFilter::from_default_env()).with_test_writer();
    // Another test was first.
    let _ = subscriber.try_init();
}

/// What the stores of all `apps` have; `None` if a word is in two of them.
pub(crate) fn counts(apps: &[&RunningApp]) -> Option<BTreeMap<String, u64>> {
    let mut all = BTreeMap::new();
    for app in apps {
        for (word, count) in counts_of(&app.queries()) {
            if all.insert(word, count).is_some() {
                return None;
            }
        }
    }
    Some(all)
}

fn counts_of(queries: &Queries) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    for (_, snapshot) in queries.snapshots("counts").unwrap() {
        // It was closed just now: the next look finds it elsewhere.
        let Ok(mut cursor) = snapshot.all() else { continue };
        while let Ok(Some((word, count))) = cursor.next_row() {
            all.push((String::from_utf8(word.to_vec()).unwrap(), u64::from_be_bytes(count.try_into().unwrap())));
        }
    }
    all
}

/// Counts the record's key.
pub(crate) fn count(record: &SourceRecord<'_>, context: &TaskContext<'_>) -> ProcessingResult {
    count_next(record, context)?;
    Ok(())
}

/// Counts the record's key, and returns its count.
pub(crate) fn count_next(record: &SourceRecord<'_>, context: &TaskContext<'_>) -> kstate_api::Result<u64> {
    let counts = context.store("counts")?;
    let word = record.key().unwrap();
    let before = counts.get(word)?.map_or(0, |count| u64::from_be_bytes(count.as_ref().try_into().unwrap()));
    counts.put(word, &(before + 1).to_be_bytes())?;
    Ok(before + 1)
}

/// Counts the record's key in the first store, by a worker; the key and its count.
pub(crate) fn count_in(
    work: &mut Work<'_, OutputRecord>,
    record: &OwnedRecord,
) -> std::result::Result<(Vec<u8>, Vec<u8>), ProcessError> {
    let key = record.get().key().unwrap_or_default().to_vec();
    let before = work.get(0, &key)?.map_or(0, |count| u64::from_be_bytes(count.as_ref().try_into().unwrap()));
    let count = (before + 1).to_be_bytes().to_vec();
    work.put(0, key.clone(), count.clone())?;
    Ok((key, count))
}

pub(crate) fn threads(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

/// Waits until `done`, and panics with `what` if that takes too long.
pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Writes down what it hears.
#[derive(Clone, Default)]
pub(crate) struct Recorder(Arc<Mutex<Heard>>);

#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) states: Vec<AppState>,
    pub(crate) tasks: Vec<(TaskId, TaskState)>,
    pub(crate) restored: Vec<(TaskId, Restored)>,
    pub(crate) standbys: BTreeMap<TaskId, StandbyUpdate>,
    pub(crate) standby_records: u64,
    pub(crate) checkpoints: u64,
    pub(crate) dead_letters: Vec<String>,
}

impl Recorder {
    /// What was heard since the last time.
    pub(crate) fn take(&self) -> Heard {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// What `look` makes of all that was heard.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Heard) -> T) -> T {
        look(&self.0.lock().unwrap())
    }
}

impl Listener for Recorder {
    fn app_changed(&self, _from: AppState, to: AppState) {
        self.0.lock().unwrap().states.push(to);
    }

    fn task_changed(&self, task: TaskId, state: TaskState) {
        self.0.lock().unwrap().tasks.push((task, state));
    }

    fn restored(&self, task: TaskId, store: &str, restored: &Restored) {
        assert_eq!(store, "counts");
        self.0.lock().unwrap().restored.push((task, *restored));
    }

    fn standby_updated(&self, task: TaskId, store: &str, update: &StandbyUpdate) {
        assert_eq!(store, "counts");
        let mut heard = self.0.lock().unwrap();
        heard.standbys.insert(task, *update);
        heard.standby_records += update.applied;
    }

    fn dead_lettered(&self, _task: TaskId, record: &SourceRecord<'_>, failure: &RecordFailure) {
        self.0.lock().unwrap().dead_letters.push(format!("{}: {failure}", record.offset()));
    }

    fn checkpointed(&self, _tasks: &[TaskId], _committed: &Committed) {
        self.0.lock().unwrap().checkpoints += 1;
    }
}
