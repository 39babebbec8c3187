//! Checkpoints beside a bare producer that sends and flushes the same records, and beside what they cannot do without: the
//! same, the group's commit, and the commit of a store that logs nothing.

use std::slice;

use kstate_api::{ChangelogOffsets, KeyValueStore, Offset, Position};
use kstate_checkpoint::{Committed, Task, checkpoint};
use kstate_kafka::{ChangelogProducer, SourceConsumer, TransactionalProducer, app::Guarantee};
use tempfile::TempDir;

use super::{
    ChangelogArguments, Scene, TIMEOUT,
    bare::{BareGroup, BareProducer},
};
use crate::{Result, arguments::EngineName, data, sample::Sample, spread::Spread};

/// The largest ratio of times that is good enough.
const AIM: f64 = 1.3;
/// The keys of so many checkpoints are different; then they come again.
const CHECKPOINTS_UNTIL_A_KEY_COMES_AGAIN: u64 = 20;

/// A producer of changelogs.
enum AnyProducer {
    AtLeastOnce(ChangelogProducer),
    ExactlyOnce(TransactionalProducer),
}

impl AnyProducer {
    fn new(guarantee: Guarantee, scene: &Scene) -> Result<Self> {
        Ok(match guarantee {
            Guarantee::ExactlyOnce => {
                let id = scene.source.topic();
                Self::ExactlyOnce(TransactionalProducer::new(&scene.cluster, id, TIMEOUT)?)
            }
            Guarantee::AtLeastOnce => Self::AtLeastOnce(ChangelogProducer::new(&scene.cluster, TIMEOUT)?),
        })
    }

    fn checkpoint(&self, task: &Task, position: &Position, source: &mut SourceConsumer) -> Result<Committed> {
        let tasks = slice::from_ref(task);
        Ok(match self {
            Self::AtLeastOnce(producer) => checkpoint(tasks, position, &mut &*producer, source)?,
            Self::ExactlyOnce(producer) => {
                checkpoint(tasks, position, &mut &*producer, &mut producer.committer(source))?
            }
        })
    }
}

pub(crate) fn run(arguments: &ChangelogArguments, scene: &Scene) -> Result<()> {
    let ChangelogArguments { staged, checkpoints, .. } = *arguments;
    println!("{checkpoints} checkpoints of {staged} records of 116 bytes, in turns with the parts of one\n");
    println!(
        "| engine | guarantee | bare producer | group's commit | store's commit | checkpoint | to the bare producer | to all \
         parts | p99 of the stall | longest | aim |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |");
    for engine in arguments.engines() {
        for guarantee in [Guarantee::AtLeastOnce, Guarantee::ExactlyOnce] {
            let Times { bare, group, store, own } = take_turns(arguments, scene, engine, guarantee)?;
            let seconds = |spread: &Spread| spread.median().as_secs_f64();
            let ratio = seconds(&own) / seconds(&bare);
            let to_parts = seconds(&own) / (seconds(&bare) + seconds(&group) + seconds(&store));
            let verdict = if ratio <= AIM { "met" } else { "missed" };
            println!(
                "| {engine:?} | {guarantee:?} | {:.1?} | {:.1?} | {:.1?} | {:.1?} | **{ratio:.2}** | {to_parts:.2} | {:.1?} | \
                 {:.1?} | ≤ {AIM}: {verdict} |",
                bare.median(),
                group.median(),
                store.median(),
                own.median(),
                own.quantile(990),
                own.quantile(1_000)
            );
        }
    }
    Ok(())
}

/// How long each turn took.
struct Times {
    bare: Spread,
    group: Spread,
    store: Spread,
    own: Spread,
}

fn take_turns(
    arguments: &ChangelogArguments,
    scene: &Scene,
    engine: EngineName,
    guarantee: Guarantee,
) -> Result<Times> {
    let staged = arguments.staged;
    let (directory, other_directory) = (TempDir::new()?, TempDir::new()?);
    let (store, task) = scene.open(engine, directory.path(), &scene.changelog)?;
    let (alone, _) = scene.open(engine, other_directory.path(), &scene.changelog)?;
    let mut source = SourceConsumer::assign(&scene.cluster, scene.source.topic(), slice::from_ref(&scene.source))?;
    let producer = AnyProducer::new(guarantee, scene)?;
    let (bare, group) = (BareProducer::new(scene)?, BareGroup::new(scene)?);
    let (mut bare_times, mut group_times, mut store_times, mut own_times) = (vec![], vec![], vec![], vec![]);
    for round in 0..arguments.checkpoints {
        let from = round % CHECKPOINTS_UNTIL_A_KEY_COMES_AGAIN * staged;
        let ((), sample) = Sample::of(|| bare.send(scene, from, from + staged))?;
        bare_times.push(sample.wall);

        let next = (round + 1) * staged;
        let ((), sample) = Sample::of(|| group.commit(scene, next))?;
        group_times.push(sample.wall);

        let offset = Offset::new(i64::try_from(next)?).ok_or("a negative offset")?;
        let offsets: ChangelogOffsets = [(scene.changelog.clone(), offset)].into_iter().collect();
        put(&*alone, from, staged)?;
        let ((), sample) = Sample::of(|| Ok(alone.commit(&offsets)?))?;
        store_times.push(sample.wall);

        put(&*store, from, staged)?;
        let position = scene.position(next)?;
        let (committed, sample) = Sample::of(|| producer.checkpoint(&task, &position, &mut source))?;
        if committed.changelog_records != staged {
            return Err(format!("a checkpoint of {} records", committed.changelog_records).into());
        }
        own_times.push(sample.wall);
    }
    store.close()?;
    alone.close()?;
    Ok(Times {
        bare: Spread::of(bare_times),
        group: Spread::of(group_times),
        store: Spread::of(store_times),
        own: Spread::of(own_times),
    })
}

fn put(store: &dyn KeyValueStore, from: u64, count: u64) -> Result<()> {
    for index in from..from + count {
        store.put(&data::key(index), &data::value(index))?;
    }
    Ok(())
}
