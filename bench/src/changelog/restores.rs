//! Restores beside consuming only and applying only.

use kstate_api::{Bytes, Offset, Position, StateStore, WriteBatch};
use kstate_checkpoint::{ChangelogReader as _, RestoreOptions, SourceCommitter, checkpoint, restore};
use kstate_kafka::{ChangelogConsumer, ChangelogProducer};
use tempfile::TempDir;

use super::{ChangelogArguments, Scene, TIMEOUT, bare};
use crate::{Result, arguments::EngineName, data, sample::Sample, spread::Spread};

/// The lowest part of the slower one's rate that is good enough.
const AIM: f64 = 0.8;
/// As many bytes as a restore gathers.
const BATCH_BYTES: usize = 4 << 20;

/// A group that takes every commit.
struct AnyPosition;

impl SourceCommitter for AnyPosition {
    fn commit(&mut self, _position: &Position) -> kstate_api::Result<()> {
        Ok(())
    }
}

pub(crate) fn run(arguments: &ChangelogArguments, scene: &Scene) -> Result<()> {
    let ChangelogArguments { records, rounds, .. } = *arguments;
    fill(arguments, scene)?;
    let end = ChangelogConsumer::new(&scene.cluster)?.bounds(&scene.full)?.end;
    println!("Restores of {records} records of 116 bytes; medians of {rounds} rounds, in 1000 records per second\n");
    println!("| engine | consume only | apply only | restore | restore / slower one | aim |");
    println!("| --- | ---: | ---: | ---: | ---: | --- |");
    for engine in arguments.engines() {
        let (mut consumes, mut applies, mut restores) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            consumes.push(measure(records, || bare::consume(scene, end.get()))?);
            applies.push(measure(records, || apply(engine, scene, records))?);
            restores.push(measure(records, || restore_all(engine, scene, records))?);
        }
        let rate = |samples: Vec<Sample>| {
            let median = Spread::of(samples.iter().map(|sample| sample.wall)).median();
            #[expect(clippy::cast_precision_loss, reason = "there are far fewer records than 2^52")]
            let records = records as f64;
            records / median.as_secs_f64() / 1e3
        };
        let (consume, apply, restore) = (rate(consumes), rate(applies), rate(restores));
        let part = restore / consume.min(apply);
        let verdict = if part >= AIM { "met" } else { "missed" };
        println!("| {engine:?} | {consume:.0} | {apply:.0} | {restore:.0} | **{part:.2}** | ≥ {AIM}: {verdict} |");
    }
    println!();
    Ok(())
}

/// What `work` took, which has to come to `records`.
fn measure(records: u64, work: impl FnOnce() -> Result<u64>) -> Result<Sample> {
    let (found, sample) = Sample::of(work)?;
    if found == records { Ok(sample) } else { Err(format!("{found} records of {records}").into()) }
}

/// Writes the changelog as an app does: checkpoint after checkpoint.
fn fill(arguments: &ChangelogArguments, scene: &Scene) -> Result<()> {
    let directory = TempDir::new()?;
    let (store, task) = scene.open(EngineName::Memory, directory.path(), &scene.full)?;
    let mut producer = ChangelogProducer::new(&scene.cluster, TIMEOUT)?;
    for index in 0..arguments.records {
        store.put(&data::key(index), &data::value(index))?;
        let count = index + 1;
        if count.is_multiple_of(arguments.staged) || count == arguments.records {
            let position = scene.position(count)?;
            checkpoint(std::slice::from_ref(&task), &position, &mut producer, &mut AnyPosition)?;
        }
    }
    Ok(())
}

/// Applies the records as a restore does, without a broker.
fn apply(engine: EngineName, scene: &Scene, records: u64) -> Result<u64> {
    let directory = TempDir::new()?;
    let (store, _) = scene.open(engine, directory.path(), &scene.full)?;
    let mut batch = WriteBatch::new();
    for index in 0..records {
        batch.put(data::key(index), Bytes::copy_from_slice(&data::value(index)));
        if batch.byte_size() >= BATCH_BYTES || index + 1 == records {
            let offset = Offset::new(i64::try_from(index)?).ok_or("a negative offset")?;
            batch.set_offset(scene.full.clone(), offset);
            store.restore(&batch)?;
            batch = WriteBatch::new();
        }
    }
    store.close()?;
    Ok(records)
}

fn restore_all(engine: EngineName, scene: &Scene, records: u64) -> Result<u64> {
    let directory = TempDir::new()?;
    let (store, task) = scene.open(engine, directory.path(), &scene.full)?;
    let mut reader = ChangelogConsumer::new(&scene.cluster)?;
    let logged = task.stores().first().ok_or("the task has no store")?;
    let committed = scene.position(records)?;
    let restored = restore(logged, &committed, &mut reader, &RestoreOptions::new(), &mut |_| {})?;
    store.close()?;
    Ok(restored.applied)
}
