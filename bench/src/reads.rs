//! Workloads on a full store: the same files, opened by either side.

use std::{fs, path::Path};

use tempfile::TempDir;

use crate::{
    Result,
    arguments::Workload,
    comparison::interleave,
    data::{Key, ROWS_OF_A_SCAN},
    digest::Digest,
    kstate::KstateStore,
    plan::Plan,
    sample::Sample,
    store::Store,
    table::Table,
};

struct Loaded {
    raw: Box<dyn Store>,
    kstate: KstateStore,
    // Deleted after the stores are gone.
    _directories: [TempDir; 2],
}

/// Gets of single keys and scans, over nothing staged and over some staged records.
pub(crate) fn get_and_range(plan: &Plan<'_>, table: &mut Table) -> Result<()> {
    let mut loaded = load(plan)?;
    let (gets, starts) = (plan.sizes.gets(), plan.sizes.scan_starts());
    for overlay in ["", ", staged"] {
        if !overlay.is_empty() {
            loaded.kstate.stage(plan.sizes.staged())?;
        }
        let name = |workload: &str| format!("{workload}{overlay}");
        if plan.wants(Workload::Get) {
            compare(plan, table, &mut loaded, Workload::Get, &name("get"), &gets, |store| store.get(&gets))?;
        }
        if plan.wants(Workload::Range) {
            let scan = |store: &mut dyn Store| store.range(&starts, ROWS_OF_A_SCAN);
            compare(plan, table, &mut loaded, Workload::Range, &name("range"), &starts, scan)?;
        }
    }
    Ok(())
}

fn compare(
    plan: &Plan<'_>,
    table: &mut Table,
    loaded: &mut Loaded,
    workload: Workload,
    name: &str,
    keys: &[Key],
    work: impl Fn(&mut dyn Store) -> Result<Digest>,
) -> Result<()> {
    let Loaded { raw, kstate, .. } = loaded;
    // Not counted: they fill the caches.
    let expected = work(&mut **raw)?;
    if expected.rows < keys.len() as u64 || work(kstate)? != expected {
        return Err(format!("the loaded stores differ; the raw one answers {expected:?}").into());
    }
    let comparison = interleave(plan.rounds(), || Sample::of(|| work(&mut **raw)), || Sample::of(|| work(kstate)))?;
    plan.report(table, workload, name, keys.len(), comparison);
    Ok(())
}

fn load(plan: &Plan<'_>) -> Result<Loaded> {
    let (engine, sizes) = (plan.engine, plan.sizes);
    let directories = [plan.directory()?, plan.directory()?];
    let [for_raw, for_kstate] = &directories;
    let (mut raw, mut kstate);
    if engine.persistent() {
        let mut filled = engine.open_kstate(for_kstate.path())?;
        filled.load(sizes.records, sizes.commit_every)?;
        Box::new(filled).close()?;
        engine.settle(for_kstate.path())?;
        copy(for_kstate.path(), for_raw.path())?;
        raw = engine.open_raw(for_raw.path())?;
        kstate = engine.open_kstate(for_kstate.path())?;
    } else {
        raw = engine.open_raw(for_raw.path())?;
        raw.load(sizes.records, sizes.commit_every)?;
        kstate = engine.open_kstate(for_kstate.path())?;
        kstate.load(sizes.records, sizes.commit_every)?;
    }
    Ok(Loaded { raw, kstate, _directories: directories })
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}
