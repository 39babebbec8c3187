use std::time::Duration;

use kstate_api::{ErrorKind, Result, TaskId};
use kstate_checkpoint::update_standby;
use kstate_offset_cache::Wait;

use crate::{ChangelogConsumer, GroupOffsets, GroupPosition};

use super::{
    AppState, AppStats, cancellable::Cancellable, control::Control, definition::Definition, standbys::Standbys,
    task_stores::TaskStores,
};

/// How long at least to wait between two rounds, however often checkpoints are taken.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

/// Keeps the copies of tasks that run elsewhere up to date, in a thread of its own, until the app stops.
///
/// Whatever fails is tried again with the next round: a copy that is behind costs time at a take-over, and nothing else.
pub(crate) fn run(definition: &Definition, standbys: &Standbys, control: &Control) {
    let mut keeper = Keeper { definition, standbys, control, clients: None, stats: AppStats::default() };
    while !control.is_stopping() {
        // Until the group has dealt out its tasks, any copy would be in somebody's way.
        if control.state() != AppState::Joining
            && let Err(error) = keeper.round()
        {
            tracing::warn!(%error, "the standbys are not up to date");
            keeper.clients = None;
        }
        keeper.tell_stats();
        control.sleep(definition.commit_interval.max(SHORTEST_PAUSE));
    }
    keeper.close();
    keeper.tell_stats();
}

struct Keeper<'k> {
    definition: &'k Definition,
    standbys: &'k Standbys,
    control: &'k Control,
    clients: Option<Clients>,
    /// What was done for the copies, how many there are apart.
    stats: AppStats,
}

/// Made anew after an error: what they were about is unknown.
struct Clients {
    group: GroupOffsets,
    changelogs: ChangelogConsumer,
}

impl Keeper<'_> {
    /// Opens the copies that are missing, and updates all.
    fn round(&mut self) -> Result<()> {
        for partition in 0..self.definition.tasks {
            self.open(TaskId::new(0, partition));
        }
        let tasks = self.standbys.tasks();
        if tasks.is_empty() {
            return Ok(());
        }
        let clients = match &mut self.clients {
            Some(clients) => clients,
            None => self.clients.insert(Clients {
                group: GroupOffsets::new(&self.definition.cluster, &self.definition.id)?,
                changelogs: self.definition.changelog_reader()?,
            }),
        };
        // Asked for once the copies are open: a task that ran here before has committed no more than this says, so its
        // store is never taken for one that is ahead of the group.
        let sources: Vec<_> = tasks.iter().flat_map(|task| self.definition.sources_of(*task)).collect();
        let committed = clients.group.committed(&sources)?;
        let mut outcome = Ok(());
        for task in tasks {
            let Some((turn, copy)) = self.standbys.take(task) else { continue };
            let wanted = || {
                self.control.check_running()?;
                self.standbys.check(copy.task())
            };
            match update(self.definition, &copy, &committed, &mut clients.changelogs, &wanted, &mut self.stats) {
                Ok(()) => turn.put(copy),
                // Somebody takes it over, or the app stops.
                Err(error) if error.kind() == ErrorKind::Aborted => turn.put(copy),
                Err(error) => {
                    // It is opened anew with the next round, and wiped then if it is damaged. The others go on.
                    copy.close(self.definition);
                    clients.changelogs = self.definition.changelog_reader()?;
                    outcome = outcome.and(Err(error));
                }
            }
        }
        outcome
    }

    /// Opens the copy of `task`, unless it is there, or the task runs here.
    fn open(&self, task: TaskId) {
        let Some(turn) = self.standbys.begin_open(task) else { return };
        let lock = self.definition.directory.lock_within(task, &Wait::not());
        match lock.and_then(|lock| TaskStores::open(self.definition, lock)) {
            Ok(copy) => {
                tracing::info!(%task, "a standby begins");
                turn.put(copy);
            }
            // A thread of this process is closing it.
            Err(error) if error.kind() == ErrorKind::Locked => {}
            Err(error) => tracing::warn!(%task, %error, "a standby cannot be opened"),
        }
    }

    fn tell_stats(&self) {
        let standby_tasks = self.standbys.tasks().len();
        self.control.tell_standby_stats(AppStats { standby_tasks, ..self.stats });
    }

    fn close(&self) {
        for task in self.standbys.tasks() {
            if let Some((_turn, copy)) = self.standbys.take(task) {
                copy.close(self.definition);
            }
        }
    }
}

fn update(
    definition: &Definition,
    copy: &TaskStores,
    committed: &GroupPosition,
    changelogs: &mut ChangelogConsumer,
    check: &dyn Fn() -> Result<()>,
    stats: &mut AppStats,
) -> Result<()> {
    let task = copy.task();
    let options = definition.restore_options().bare_offsets(committed.bare.clone());
    for logged in copy.logged() {
        let mut reader = Cancellable::new(changelogs, check);
        let updated = update_standby(logged, &committed.position, &mut reader, &options, &mut |_| {});
        // Also what came before an error is in the store.
        copy.updated(definition, logged)?;
        let updated = updated?;
        stats.standby_records += updated.applied;
        stats.wiped_stores += u64::from(updated.wiped.is_some());
        definition.listener.standby_updated(task, logged.store().name(), &updated);
    }
    Ok(())
}
