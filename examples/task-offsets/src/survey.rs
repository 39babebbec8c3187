use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::Arc,
};

use kstate_api::{Error, Result, TaskId};
use kstate_kafka::{Cluster, LogEndsConsumer};
use kstate_offset_cache::{AllLogEnds, LogEndsReader as _, StartupScan, StateLayout, TaskScan, TopologyStores};

use crate::{
    any_engine::AnyEngine,
    cli::Cli,
    report::{ApplicationReport, Report, TaskReport},
};

/// Looks at everything that the command line asks for.
pub(crate) fn survey(cli: &Cli) -> Result<Report> {
    let ids = match &cli.application {
        Some(id) => vec![id.clone()],
        None => applications(&cli.state_dir)?,
    };
    let applications = ids.iter().map(|id| application(cli, id)).collect::<Result<_>>()?;
    Ok(Report { applications })
}

/// The directories in the state directory that an application can have.
fn applications(state_dir: &Path) -> Result<Vec<String>> {
    let failed = |error| Error::io(format_args!("cannot read the state directory {}", state_dir.display()), error);
    let mut ids = BTreeSet::new();
    for entry in fs::read_dir(state_dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let id = entry.file_name().into_string().unwrap_or_default();
        if entry.file_type().map_err(failed)?.is_dir() && StateLayout::new(state_dir, &id).is_ok() {
            ids.insert(id);
        }
    }
    Ok(ids.into_iter().collect())
}

fn application(cli: &Cli, id: &str) -> Result<ApplicationReport> {
    let layout = StateLayout::new(&cli.state_dir, id)?;
    let listing = layout.list()?;
    let mut scans = Vec::new();
    // A topology of its own for each sub-topology: what is found need not be one application's of today.
    for (subtopology, stores) in stores_on_disk(&layout, listing.tasks()) {
        let topology = topology(cli, id, subtopology, stores)?;
        scans.push((subtopology, StartupScan::new(&topology).look(&layout)?));
    }
    let tasks = scans.iter().flat_map(|(subtopology, report)| {
        report.tasks().iter().filter(move |scan| scan.task().subtopology() == *subtopology)
    });
    let tasks: Vec<&TaskScan> = tasks.collect();
    let ends = cli.brokers.as_deref().map(|brokers| log_ends(brokers, &tasks)).transpose()?;
    Ok(ApplicationReport {
        application: id.to_owned(),
        in_use: layout.is_owned()?,
        tasks: tasks.into_iter().map(|scan| TaskReport::new(scan, ends.as_ref())).collect(),
        empty: listing.empty().iter().map(ToString::to_string).collect(),
        unfamiliar: listing.unfamiliar().iter().map(|path| path.display().to_string()).collect(),
    })
}

/// The topology of one sub-topology that has `stores`.
fn topology(cli: &Cli, id: &str, subtopology: u32, stores: BTreeSet<String>) -> Result<TopologyStores> {
    let mut topology = TopologyStores::new(id)?;
    for store in stores {
        let given = cli.changelog.iter().find(|(name, _)| *name == store).map(|(_, topic)| topic);
        let supplier = Arc::new(AnyEngine::new(store));
        topology = match given {
            Some(topic) => topology.with_logged_to(subtopology, supplier, topic)?,
            None => topology.with_logged(subtopology, supplier)?,
        };
    }
    Ok(topology)
}

/// Asks for the ends of all changelogs of `tasks` at once.
fn log_ends(brokers: &str, tasks: &[&TaskScan]) -> Result<AllLogEnds> {
    let stores = tasks.iter().flat_map(|task| task.stores());
    let changelogs: Vec<_> = stores.map(|store| store.changelog.clone()).collect();
    LogEndsConsumer::new(&Cluster::new(brokers))?.log_ends(&changelogs)
}

/// The names of the stores that each sub-topology has in any of its tasks.
fn stores_on_disk(layout: &StateLayout, tasks: &[TaskId]) -> BTreeMap<u32, BTreeSet<String>> {
    let mut stores = BTreeMap::<u32, BTreeSet<String>>::new();
    for task in tasks {
        // What cannot be listed has no stores here; the scan says why.
        let found = layout.contents(*task).map(|contents| contents.stores().to_vec()).unwrap_or_default();
        stores.entry(task.subtopology()).or_default().extend(found);
    }
    stores
}
