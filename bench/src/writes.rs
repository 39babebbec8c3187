//! Workloads that fill an empty store.

use std::path::Path;

use crate::{
    Result,
    arguments::Workload,
    comparison::{Comparison, interleave},
    data,
    digest::{Contents, Digest},
    plan::Plan,
    sample::Sample,
    store::{Store, last_offset},
    table::Table,
};

/// Puts in the order of arrival, committed now and then.
pub(crate) fn load(plan: &Plan<'_>, table: &mut Table) -> Result<()> {
    let records = plan.sizes.records;
    let mut all = Digest::default();
    (0..records).for_each(|index| all.read_row(&data::key(index), &data::value(index)));
    let rounds = plan.engine.load_rounds(plan.rounds());
    let is_right = |contents: &Contents| contents.rows == all && contents.offset == Some(last_offset(records));
    let comparison = compare(plan, rounds, is_right, |store| store.load(records, plan.sizes.commit_every))?;
    plan.report(table, Workload::Load, "load", usize::try_from(records)?, comparison);
    Ok(())
}

/// Counts in a few keys often and in many rarely.
pub(crate) fn zipf(plan: &Plan<'_>, table: &mut Table) -> Result<()> {
    let updates = plan.sizes.updates()?;
    let count = updates.len() as u64;
    let is_right = |contents: &Contents| contents.rows.sum == count && contents.offset == Some(last_offset(count));
    let comparison = compare(plan, plan.rounds(), is_right, |store| store.update(&updates, plan.sizes.commit_every))?;
    plan.report(table, Workload::Zipf, "zipf", updates.len(), comparison);
    Ok(())
}

/// Both sides must leave the same, and it must be right.
fn compare(
    plan: &Plan<'_>,
    rounds: u64,
    is_right: impl Fn(&Contents) -> bool,
    work: impl Fn(&mut dyn Store) -> Result<()>,
) -> Result<Comparison> {
    let turn = |open: &dyn Fn(&Path) -> Result<Box<dyn Store>>| {
        let (contents, sample) = on_empty(plan, open, &work)?;
        if is_right(&contents) { Ok((contents, sample)) } else { Err(format!("wrong contents: {contents:?}").into()) }
    };
    let engine = plan.engine;
    interleave(
        rounds,
        || turn(&|directory| engine.open_raw(directory)),
        || turn(&|directory| Ok(Box::new(engine.open_kstate(directory)?))),
    )
}

/// Does `work` on an empty store, and tells what it left. The time is that of `work`; the processor time is all that it
/// caused until the store was closed, in the background, too.
fn on_empty(
    plan: &Plan<'_>,
    open: &dyn Fn(&Path) -> Result<Box<dyn Store>>,
    work: impl Fn(&mut dyn Store) -> Result<()>,
) -> Result<(Contents, Sample)> {
    let directory = plan.directory()?;
    let mut store = open(directory.path())?;
    let ((), worked) = Sample::of(|| work(&mut *store))?;
    let contents = store.contents()?;
    let ((), closed) = Sample::of(|| store.close())?;
    Ok((contents, worked.with_cpu_of(closed)))
}
