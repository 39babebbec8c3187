use std::{
    fs,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use kstate_api::{Offset, PartitionPosition, TopicPartition};
use kstate_processing::{
    Admission, CheckpointMode, Drained, Effect, Executor, ExecutorSettings, OffsetTracker, ProcessorFn, RecordFailure,
    Sink, Source, Submission, Submitted, TrackerLimits, Work,
};
use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};
use rand_distr::{Distribution, Zipf};

use super::{Aim, Row};
use crate::{Result, comparison::interleave, sample::Sample};

const LOOK_UP: Duration = Duration::from_millis(1);
const KEYS: u64 = 10_000;
const ZIPF_EXPONENT: f64 = 0.8;
const LONG: Duration = Duration::from_secs(600);

/// A record: its key, and its number among all.
type Record = (u64, u64);

/// Adds up what comes, and checks that each key's records come in order.
#[derive(Default)]
struct Sum {
    sum: u64,
    /// The number after the last one of each key.
    after: Vec<u64>,
}

impl Sum {
    fn add(&mut self, (key, number): Record, value: u64) -> Result<()> {
        let index = usize::try_from(key)?;
        if self.after.len() <= index {
            self.after.resize(index + 1, 0);
        }
        let after = self.after.get_mut(index).ok_or("no such key")?;
        if number < *after {
            return Err(format!("record {number} of key {key} came after {after}").into());
        }
        *after = number + 1;
        self.sum = self.sum.wrapping_add(value);
        Ok(())
    }
}

impl Sink<Record, u64> for Sum {
    fn apply(&mut self, source: &Source<'_, Record>, effects: Vec<Effect<u64>>) -> kstate_api::Result<()> {
        for effect in effects {
            let refuse = |error| kstate_api::Error::new(kstate_api::ErrorKind::InvalidArgument, format!("{error}"));
            effect.apply(&[], |value| self.add(*source.record, value).map_err(refuse))?;
        }
        Ok(())
    }

    fn dead_letter(&mut self, _: &Source<'_, Record>, failure: &RecordFailure) -> kstate_api::Result<()> {
        Err(kstate_api::Error::new(kstate_api::ErrorKind::InvalidArgument, failure.to_string()))
    }
}

/// Runs all records through an executor.
fn execute<F>(settings: ExecutorSettings, records: &[Record], function: F) -> Result<u64>
where
    F: Fn(&Record, &mut Work<'_, u64>) -> std::result::Result<(), kstate_processing::ProcessError>
        + Send
        + Sync
        + 'static,
{
    let mut executor = Executor::new(settings, ProcessorFn::new(function), vec![])?;
    let epoch = executor.assign(TopicPartition::new("records", 0), PartitionPosition::at(Offset::ZERO));
    let mut sum = Sum::default();
    let now = Instant::now();
    for (offset, record) in (0..).zip(records) {
        let mut submission =
            Submission::new(Offset::try_from(offset)?, *record).with_key(record.0.to_be_bytes().to_vec());
        while let Submitted::Full(again) = executor.submit(epoch, submission, now, &mut sum)? {
            submission = again;
            let _ = executor.wait(LONG);
            executor.poll(now, &mut sum)?;
        }
    }
    if executor.drain(Instant::now, Instant::now() + LONG, &mut sum)? != Drained::Idle {
        return Err("it did not end".into());
    }
    Ok(sum.sum)
}

/// One worker beside the same work in a loop.
pub(crate) fn compare_plain_path(rounds: u64, count: u64) -> Result<Row> {
    let records: Vec<Record> = (0..count).map(|number| (number % 100, number)).collect();
    let comparison = interleave(
        rounds,
        || {
            Sample::of(|| {
                let mut tracker = OffsetTracker::new(TrackerLimits::default());
                tracker.resume(PartitionPosition::at(Offset::ZERO));
                let mut sum = Sum::default();
                for (offset, record) in (0..).zip(&records) {
                    let Admission::Run(ticket) = tracker.admit(Offset::try_from(offset)?)? else {
                        return Err("there is always room".into());
                    };
                    sum.add(*record, record.1)?;
                    tracker.finish(ticket);
                }
                Ok(sum.sum)
            })
        },
        || {
            Sample::of(|| {
                execute(ExecutorSettings::default(), &records, |record, work| {
                    work.output(record.1);
                    Ok(())
                })
            })
        },
    )?;
    let (what, beside) = ("one worker, a record that does nothing", "a loop with a tracker");
    Ok(Row { what, beside, operations: count, comparison, cost: |one| one.cpu, aim: Aim::None })
}

/// Eight workers beside one, on a look-up of a millisecond, with the order of each key kept.
pub(crate) fn compare_workers(rounds: u64, count: u64) -> Result<Row> {
    #[expect(clippy::cast_precision_loss, reason = "there are far fewer keys than 2^52")]
    let ranks = Zipf::new(KEYS as f64, ZIPF_EXPONENT)?;
    let random = Xoshiro256PlusPlus::seed_from_u64(5);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank is a whole number from one on")]
    let records: Vec<Record> = ranks.sample_iter(random).map(|rank: f64| rank as u64).zip(0..count).collect();
    let with = |workers| {
        let settings = ExecutorSettings { workers, checkpoint: CheckpointMode::Holes, ..ExecutorSettings::default() };
        Sample::of(|| {
            execute(settings, &records, |record, work| {
                thread::sleep(LOOK_UP);
                work.output(record.1);
                Ok(())
            })
        })
    };
    let comparison = interleave(rounds.min(3), || with(1), || with(8))?;
    let (what, beside) = ("8 workers, look-up of 1 ms, keys zipf(0.8)", "1 worker");
    Ok(Row { what, beside, operations: count, comparison, cost: |one| one.wall, aim: Aim::TimesAsFast(7.0) })
}

/// What the operating system gives the process for records that all wait for the first of their lane.
#[expect(clippy::cast_precision_loss, reason = "these are small numbers")]
pub(crate) fn bytes_per_record() -> Result<f64> {
    const RECORDS: usize = 400_000;
    let resident = || -> Result<usize> {
        let pages = fs::read_to_string("/proc/self/statm")?;
        Ok(4096 * pages.split(' ').nth(1).ok_or("no resident size")?.parse::<usize>()?)
    };
    let (release, held) = mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let settings = ExecutorSettings {
        workers: 2,
        max_in_flight: RECORDS,
        limits: TrackerLimits::default().with_window(RECORDS),
        ..ExecutorSettings::default()
    };
    let wait = ProcessorFn::new(move |_: &Record, _: &mut Work<'_, u64>| {
        // It ends with the other side.
        let _ = held.lock().map(|held| held.recv());
        Ok(())
    });
    let mut executor = Executor::new(settings, wait, vec![])?;
    let epoch = executor.assign(TopicPartition::new("records", 0), PartitionPosition::at(Offset::ZERO));
    let before = resident()?;
    let mut sum = Sum::default();
    for offset in 0..i64::try_from(RECORDS)? {
        let submission = Submission::new(Offset::try_from(offset)?, (0, 0));
        executor.submit(epoch, submission, Instant::now(), &mut sum)?;
    }
    let after = resident()?;
    drop(release);
    Ok(after.saturating_sub(before) as f64 / RECORDS as f64)
}
