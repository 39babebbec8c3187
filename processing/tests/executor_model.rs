//! The executor against the same records, one after the other.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that fails by panicking says so at the right line"
)]

mod support;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Instant,
};

use kstate_api::{KeyValueStore, PartitionPosition, ReadOnlyKeyValueStore};
use kstate_processing::{
    Apply, CheckpointMode, Executor, ExecutorSettings, ProcessError, Processor, ProcessorFn, RecordOrder, Submission,
    Submitted, Work,
};
use proptest::prelude::*;
use support::{Applied, Log, at, drive, executor, memory_store, partition, quick_retries, rows};

/// A record: its offset, its key, how often it fails before it succeeds.
#[derive(Clone, Debug)]
struct Record {
    offset: i64,
    key: u8,
    failures: u32,
    panics: bool,
}

const ATTEMPTS: u32 = 3;

impl Record {
    fn is_poison(&self) -> bool {
        self.failures >= ATTEMPTS
    }
}

fn inputs() -> impl Strategy<Value = Vec<Record>> {
    let failures = prop_oneof![6 => Just(0_u32), 2 => 1..ATTEMPTS, 1 => Just(ATTEMPTS)];
    prop::collection::vec((0..3_i64, 0..5_u8, failures, any::<bool>()), 1..60).prop_map(|records| {
        let mut offset = -1;
        let records = records.into_iter().map(|(gap, key, failures, panics)| {
            offset += 1 + gap / 2;
            Record { offset, key, failures, panics }
        });
        records.collect()
    })
}

/// Appends the offset to the value of the key: what is lost, doubled or out of order shows for good.
fn append(
    attempts: Arc<Mutex<BTreeMap<i64, u32>>>,
    started: Log<i64>,
) -> impl Processor<Record = Record, Output = String> {
    ProcessorFn::new(move |record: &Record, work: &mut Work<'_, String>| {
        started.push(record.offset);
        let mut value = work.get(0, &[record.key])?.map_or(Vec::new(), |value| value.to_vec());
        value.extend(format!("{} ", record.offset).bytes());
        work.put(0, vec![record.key], value)?;
        let attempt = {
            let mut attempts = attempts.lock().unwrap();
            let attempt = attempts.entry(record.offset).or_default();
            *attempt += 1;
            *attempt
        };
        if attempt > record.failures {
            return Ok(());
        }
        // Without the hook, which would write to the standard error for each.
        if record.panics { std::panic::resume_unwind(Box::new("planted")) } else { Err(ProcessError::retry("planted")) }
    })
}

/// The rows if the records had come one after the other.
fn sequential(records: &[Record]) -> BTreeMap<u8, String> {
    let mut rows = BTreeMap::<u8, String>::new();
    for record in records.iter().filter(|record| !record.is_poison()) {
        let row = rows.entry(record.key).or_default();
        row.extend([record.offset.to_string().as_str(), " "]);
    }
    rows
}

fn stored(store: &dyn ReadOnlyKeyValueStore) -> BTreeMap<u8, String> {
    rows(store).into_iter().map(|(key, value)| (key[0], String::from_utf8(value.to_vec()).unwrap())).collect()
}

/// Submits `records` and, with the n-th of them in flight, calls `at_crash`, after which nothing more is done.
fn run(
    executor: &mut Executor<impl Processor<Record = Record, Output = String>>,
    position: PartitionPosition,
    records: &[Record],
    applied: &mut Applied,
    crash_after: Option<usize>,
) {
    let next = position.next();
    let epoch = executor.assign(partition(0), position);
    let now = Instant::now();
    for (n, record) in records.iter().filter(|record| at(record.offset) >= next).enumerate() {
        if crash_after == Some(n) {
            return;
        }
        let mut submission = Submission::new(at(record.offset), record.clone()).with_key(vec![record.key]);
        while let Submitted::Full(again) = executor.submit(epoch, submission, now, applied).unwrap() {
            submission = again;
            let _ = executor.wait(std::time::Duration::from_micros(100));
            executor.poll(executor.next_due().unwrap_or(now), applied).unwrap();
        }
        if n % 7 == 0 {
            executor.poll(now, applied).unwrap();
        }
    }
    if crash_after.is_none() {
        drive(executor, applied).unwrap();
    }
}

fn settings() -> impl Strategy<Value = ExecutorSettings> {
    let order = prop_oneof![4 => Just(RecordOrder::Key), 1 => Just(RecordOrder::Partition)];
    let apply = prop_oneof![Just(Apply::AsCompleted), Just(Apply::InInputOrder)];
    (1..4_usize, order, apply, 0..20_usize).prop_map(|(workers, order, apply, room)| ExecutorSettings {
        workers,
        order,
        apply,
        max_in_flight: workers + room,
        retry: quick_retries(ATTEMPTS),
        checkpoint: if apply == Apply::InInputOrder { CheckpointMode::InOrder } else { CheckpointMode::Holes },
        ..ExecutorSettings::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn each_record_is_applied_once_and_in_the_order_of_its_key(records in inputs(), settings in settings()) {
        let store = memory_store();
        let mut executor = executor(settings, append(Arc::default(), Log::default()), vec![store.clone()]);
        let mut applied = Applied::to(store.clone());
        run(&mut executor, PartitionPosition::at(at(0)), &records, &mut applied, None);
        prop_assert_eq!(stored(&*store), sequential(&records));
        let mut dead: Vec<_> = applied.dead.iter().map(|(offset, _)| *offset).collect();
        dead.sort_unstable();
        let poison = records.iter().filter(|record| record.is_poison());
        prop_assert_eq!(dead, poison.map(|record| record.offset).collect::<Vec<_>>());
        let retries = records.iter().map(|record| u64::from(record.failures.min(ATTEMPTS - 1))).sum::<u64>();
        prop_assert_eq!(executor.stats().retries, retries);
        let positions = executor.positions().unwrap().unwrap();
        prop_assert_eq!(positions[0].1.position(), &PartitionPosition::at(at(records.last().unwrap().offset + 1)));
        if settings.apply == Apply::InInputOrder {
            prop_assert!(applied.offsets.is_sorted());
        }
    }

    /// The store and the position are taken in one step, as `StateStore::commit` does; everything else is lost.
    #[test]
    fn a_restart_runs_exactly_what_was_not_done(
        records in inputs(),
        settings in settings(),
        crash in any::<prop::sample::Index>(),
    ) {
        let store = memory_store();
        let attempts = Arc::<Mutex<BTreeMap<i64, u32>>>::default();
        let mut first = executor(settings, append(attempts.clone(), Log::default()), vec![store.clone()]);
        let mut applied = Applied::to(store.clone());
        run(&mut first, PartitionPosition::at(at(0)), &records, &mut applied, Some(crash.index(records.len() + 1)));
        let position = first.positions().unwrap().unwrap()[0].1.position().clone();
        let survived = memory_store();
        for (key, value) in rows(&*store) {
            survived.put(&key, &value).unwrap();
        }
        drop(first);

        let started = Log::default();
        let mut second = executor(settings, append(Arc::default(), started.clone()), vec![survived.clone()]);
        let mut after = Applied::to(survived.clone());
        run(&mut second, position.clone(), &records, &mut after, None);
        prop_assert_eq!(stored(&*survived), sequential(&records));
        let mut ran = started.entries();
        ran.sort_unstable();
        ran.dedup();
        let left = records.iter().map(|record| record.offset).filter(|offset| !position.is_finished(at(*offset)));
        prop_assert_eq!(ran, left.collect::<Vec<_>>());
        let mut done: Vec<_> = applied.offsets.iter().chain(&after.offsets).map(|(_, offset)| *offset).collect();
        done.sort_unstable();
        let good = records.iter().filter(|record| !record.is_poison());
        prop_assert_eq!(done, good.map(|record| record.offset).collect::<Vec<_>>());
    }
}
