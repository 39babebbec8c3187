//! Checkpoints beside a bare producer that sends and flushes the same records.

use std::{slice, time::Duration};

use kstate_api::Position;
use kstate_checkpoint::{Committed, Task, checkpoint};
use kstate_kafka::{ChangelogProducer, SourceConsumer, TransactionalProducer, app::Guarantee};
use tempfile::TempDir;

use super::{ChangelogArguments, Scene, TIMEOUT, bare::BareProducer};
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
    println!("{checkpoints} checkpoints of {staged} records of 116 bytes, in turns with the bare producer\n");
    println!(
        "| engine | guarantee | bare producer | checkpoint | ratio of medians | p99 of the stall | longest | aim |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |");
    for engine in arguments.engines() {
        for guarantee in [Guarantee::AtLeastOnce, Guarantee::ExactlyOnce] {
            let (bare, own) = take_turns(arguments, scene, engine, guarantee)?;
            let ratio = own.median().as_secs_f64() / bare.median().as_secs_f64();
            let verdict = if ratio <= AIM { "met" } else { "missed" };
            println!(
                "| {engine:?} | {guarantee:?} | {:.1?} | {:.1?} | **{ratio:.2}** | {:.1?} | {:.1?} | ≤ {AIM}: {verdict} |",
                bare.median(),
                own.median(),
                own.quantile(990),
                own.quantile(1_000)
            );
        }
    }
    Ok(())
}

/// The times of the bare producer and of the checkpoints.
fn take_turns(
    arguments: &ChangelogArguments,
    scene: &Scene,
    engine: EngineName,
    guarantee: Guarantee,
) -> Result<(Spread, Spread)> {
    let staged = arguments.staged;
    let directory = TempDir::new()?;
    let (store, task) = scene.open(engine, directory.path(), &scene.changelog)?;
    let mut source = SourceConsumer::assign(&scene.cluster, scene.source.topic(), slice::from_ref(&scene.source))?;
    let producer = AnyProducer::new(guarantee, scene)?;
    let bare = BareProducer::new(scene)?;
    let (mut bare_times, mut own_times): (Vec<Duration>, Vec<Duration>) = (Vec::new(), Vec::new());
    for round in 0..arguments.checkpoints {
        let from = round % CHECKPOINTS_UNTIL_A_KEY_COMES_AGAIN * staged;
        let ((), sample) = Sample::of(|| bare.send(scene, from, from + staged))?;
        bare_times.push(sample.wall);

        for index in from..from + staged {
            store.put(&data::key(index), &data::value(index))?;
        }
        let position = scene.position((round + 1) * staged)?;
        let (committed, sample) = Sample::of(|| producer.checkpoint(&task, &position, &mut source))?;
        if committed.changelog_records != staged {
            return Err(format!("a checkpoint of {} records", committed.changelog_records).into());
        }
        own_times.push(sample.wall);
    }
    store.close()?;
    Ok((Spread::of(bare_times), Spread::of(own_times)))
}
