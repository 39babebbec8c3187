//! The crash matrix: a process that is killed at each step of a checkpoint and of a restore, on a real broker, with each
//! guarantee and engine, in order or with workers, and then started again with its local state or from nothing. The state is that of a process
//! that never died; under exactly once so is the output.
//!
//! The process is this program, told to run the test [`a_task_that_may_be_told_to_die`]. It dies in adapters around the
//! traits of the checkpoint, so nothing in the product knows of it.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../../../kafka/tests/broker_support/mod.rs"]
mod broker_support;

mod death;
mod dying_store;
mod job;
mod life;

use std::{
    collections::BTreeMap,
    env, fs,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Command, ExitStatus, Stdio},
    slice,
    sync::Arc,
    time::Duration,
};

use broker_support::{cluster, read_all, unique};
use job::{CHECKPOINT_STEPS, Engine, Guarantee, Job, Mode, RESTORE_STEPS, Step};
use kstate_api::{Offset, Position, StagedStore, TopicPartition};
use kstate_checkpoint::{ChangelogRecord, ChangelogWriter, LoggedStore, RestoreOptions, restore};
use kstate_kafka::{ChangelogConsumer, ChangelogProducer, SourceConsumer, TopicSpec, Topics};
use kstate_store_memory::MemoryBackend;
use life::{key, numbers, reference};
use rustix::process::Signal;

const TIMEOUT: Duration = Duration::from_secs(60);
const EVENTS: i64 = 450;
const EVENTS_PER_CHECKPOINT: i64 = 100;
const KEYS: i64 = 37;
/// The variable that makes this program the process to be killed, and tells it what to do.
const JOB: &str = "KSTATE_CRASH_MATRIX";

/// The process that is killed.
#[test]
#[ignore = "the child of the crash matrix"]
fn a_task_that_may_be_told_to_die() {
    let Ok(words) = env::var(JOB) else { return };
    let (words, directory) = words.split_once('|').unwrap();
    life::run(&Job::read(words), Path::new(directory)).unwrap();
}

fn start(job: &Job, death: Option<(Step, u32)>, directory: &Path) -> (ExitStatus, String) {
    let job = Job { death, ..job.clone() };
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", "a_task_that_may_be_told_to_die", "--include-ignored", "--nocapture"])
        .env(JOB, format!("{}|{}", job.words(), directory.display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (output.status, String::from_utf8_lossy(&output.stderr).into_owned())
}

fn die(job: &Job, death: (Step, u32), directory: &Path) {
    let (status, errors) = start(job, Some(death), directory);
    assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "{job:?} did not come to {death:?}: {status} {errors}");
}

/// The first store has what the second lacks. Copies are asked, for the next process is to find what the dead one left.
fn assert_torn(job: &Job, directory: &Path) {
    let copies = tempfile::tempdir().unwrap();
    let [counts, total] = ["counts", "total"].map(|name| {
        let copy = copies.path().join(name);
        fs::create_dir(&copy).unwrap();
        for file in fs::read_dir(directory.join(name)).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), copy.join(file.file_name())).unwrap();
        }
        job.open(copies.path(), name).unwrap().position().unwrap()
    });
    assert_ne!(counts, total, "{job:?}: both stores are where the dead process was");
}

/// What a store holds that is built from its changelog alone.
fn rebuilt(job: &Job, committed: &Position, name: &str) -> BTreeMap<Vec<u8>, i64> {
    let changelog = job.changelog(name);
    let store = Arc::new(StagedStore::open(name, MemoryBackend::new(), slice::from_ref(&changelog)).unwrap());
    let logged = LoggedStore::new(store.clone(), changelog).unwrap();
    restore(&logged, committed, &mut job.reader().unwrap(), &RestoreOptions::new(), &mut |_| {}).unwrap();
    numbers(&*store)
}

/// The events in the output that a reader of committed records sees, in order.
fn output(job: &Job) -> Vec<i64> {
    let mut reader = ChangelogConsumer::read_committed(&cluster()).unwrap();
    let mut events = Vec::new();
    read_all(&mut reader, &job.output(), &mut |_, record| {
        events.push(i64::from_be_bytes(record.value.unwrap().try_into().unwrap()));
    });
    events
}

/// Everything in one column of the matrix.
fn column(guarantee: Guarantee, engine: Engine, mode: Mode) {
    let topics = Topics::new(&cluster()).unwrap();
    let column = unique(&format!("crash-{guarantee:?}-{engine:?}-{mode:?}"));
    let source = format!("{column}-events");
    topics.ensure(&TopicSpec::new(&source, 1)).unwrap();
    let mut events = ChangelogProducer::new(&cluster(), TIMEOUT).unwrap();
    for event in 0..EVENTS {
        let key = key(event);
        let record = ChangelogRecord { key: Some(&key), value: Some(b"event"), source_position: None };
        events.append(&TopicPartition::new(source.as_str(), 0), record).unwrap();
    }
    events.flush().unwrap();

    for (run, death) in CHECKPOINT_STEPS.into_iter().chain(RESTORE_STEPS).enumerate() {
        for from_nothing in [false, true] {
            let run = format!("{column}-{run}-{from_nothing}");
            let job = Job { guarantee, engine, mode, run, source: source.clone(), death: None };
            let (counts, total, out) = (job.changelog("counts"), job.changelog("total"), job.output());
            topics.ensure(&TopicSpec::changelog(counts.topic(), 1)).unwrap();
            topics.ensure(&TopicSpec::changelog(total.topic(), 1)).unwrap();
            topics.ensure(&TopicSpec::new(out.topic(), 1)).unwrap();
            let temporary = tempfile::tempdir().unwrap();
            let directory = temporary.path().join("state");
            let forget = || {
                if from_nothing {
                    fs::remove_dir_all(&directory).unwrap();
                }
            };
            if RESTORE_STEPS.contains(&death) {
                // Something to restore, whatever the engine kept.
                die(&job, (Step::StoreCommit, 3), &directory);
                fs::remove_dir_all(&directory).unwrap();
            }
            die(&job, death, &directory);
            if death.0 == Step::SecondStoreCommit {
                assert_torn(&job, &directory);
            }
            forget();
            let (status, errors) = start(&job, None, &directory);
            assert!(status.success(), "{job:?} after {death:?}, from nothing: {from_nothing}: {status} {errors}");

            let committed = SourceConsumer::assign(&cluster(), &job.run, slice::from_ref(&job.source())).unwrap();
            let committed = committed.committed();
            assert_eq!(committed.next(&job.source()), Offset::new(EVENTS), "{job:?} after {death:?}");
            assert_eq!(rebuilt(&job, committed, "counts"), reference(), "{job:?} after {death:?}");
            assert_eq!(rebuilt(&job, committed, "total").into_values().sum::<i64>(), EVENTS, "{job:?} after {death:?}");
            if guarantee == Guarantee::ExactlyOnce {
                let mut output = output(&job);
                if mode == Mode::Workers {
                    // Of a key they are in order, and the slow key's come last.
                    output.sort_unstable();
                }
                assert_eq!(output, (0..EVENTS).collect::<Vec<_>>(), "{job:?} after {death:?}");
            }
            topics.delete(&[counts.topic(), total.topic(), out.topic()]).unwrap();
        }
    }
    topics.delete(&[&source]).unwrap();
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn at_least_once_on_redb() {
    column(Guarantee::AtLeastOnce, Engine::Redb, Mode::InOrder);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn at_least_once_on_redb_with_workers() {
    column(Guarantee::AtLeastOnce, Engine::Redb, Mode::Workers);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn at_least_once_on_rocksdb() {
    column(Guarantee::AtLeastOnce, Engine::RocksDb, Mode::InOrder);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn at_least_once_on_rocksdb_with_workers() {
    column(Guarantee::AtLeastOnce, Engine::RocksDb, Mode::Workers);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn exactly_once_on_redb() {
    column(Guarantee::ExactlyOnce, Engine::Redb, Mode::InOrder);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn exactly_once_on_redb_with_workers() {
    column(Guarantee::ExactlyOnce, Engine::Redb, Mode::Workers);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn exactly_once_on_rocksdb() {
    column(Guarantee::ExactlyOnce, Engine::RocksDb, Mode::InOrder);
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn exactly_once_on_rocksdb_with_workers() {
    column(Guarantee::ExactlyOnce, Engine::RocksDb, Mode::Workers);
}
