//! Standbys of the app, on the embedded cluster.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::{path::Path, time::Duration};

use kstate_api::{KeyValueStoreSupplier, StagedSupplier, TaskId};
use kstate_checkpoint::Restored;
use kstate_kafka::app::{App, RunningApp, TaskState};
use kstate_store_memory::MemoryBackends;
use kstate_store_redb::{RedbBackends, RedbOptions};

mod app_support;
use app_support::{PATIENCE, Recorder, World, count, wait_until};

/// One member of the group, with everything it has.
struct Member {
    app: RunningApp,
    heard: Recorder,
    _state: tempfile::TempDir,
}

impl Member {
    fn start(world: &World, supplier: impl KeyValueStoreSupplier + 'static) -> Self {
        let (state, heard) = (tempfile::tempdir().unwrap(), Recorder::default());
        let app = app(world, state.path(), &heard).store(supplier).standbys(true).start(count).unwrap();
        Self { app, heard, _state: state }
    }

    fn tasks(&self) -> Vec<TaskId> {
        self.app.queries().tasks()
    }

    /// Forgets what it heard and waits until its copies of `tasks` have everything that is in their changelogs.
    fn wait_for_copies(&self, tasks: &[TaskId]) {
        self.heard.take();
        wait_until("the copies follow", || {
            self.heard.look(|heard| {
                let follows = |task| heard.standbys.get(task).is_some_and(|copy| copy.next == copy.end);
                tasks.iter().all(follows)
            })
        });
    }

    /// How the stores of `tasks` were restored since what was heard was forgotten.
    fn restored(&self, tasks: &[TaskId]) -> Vec<Restored> {
        self.heard.look(|heard| {
            heard.restored.iter().filter(|(task, _)| tasks.contains(task)).map(|(_, restored)| *restored).collect()
        })
    }

    fn stop(self) {
        self.app.stop_handle().stop();
        self.app.join().unwrap();
    }
}

fn app(world: &World, state: &Path, heard: &Recorder) -> App {
    App::new(&world.cluster, world.id.as_str(), state)
        .source(world.source.as_str())
        .commit_interval(Duration::from_millis(100))
        .retry_timeout(PATIENCE)
        .listener(heard.clone())
}

fn redb() -> StagedSupplier<RedbBackends> {
    StagedSupplier::new("counts", RedbBackends::new(RedbOptions::new().cache_size(1 << 20))).unwrap()
}

fn memory() -> StagedSupplier<MemoryBackends> {
    StagedSupplier::new("counts", MemoryBackends::new()).unwrap()
}

/// Two members of four tasks, two of them with each.
fn two_members<S: KeyValueStoreSupplier + 'static>(world: &mut World, supplier: fn() -> S) -> (Member, Member) {
    world.feed(1000);
    let first = Member::start(world, supplier());
    world.wait_for_counts(&[&first.app]);
    let second = Member::start(world, supplier());
    world.feed_until_shared(&first.app, &second.app);
    world.feed(200);
    world.wait_for_counts(&[&first.app, &second.app]);
    (first, second)
}

fn a_task_that_moves_is_restored_from_its_copy<S: KeyValueStoreSupplier + 'static>(supplier: fn() -> S) {
    let mut world = World::embedded(4);
    let (first, second) = two_members(&mut world, supplier);
    let (of_first, of_second) = (first.tasks(), second.tasks());
    first.wait_for_copies(&of_second);
    second.wait_for_copies(&of_first);

    first.stop();
    wait_until("the second member gets all tasks", || second.tasks().len() == 4);
    let restored = second.restored(&of_first);
    assert_eq!(restored.len(), 2, "{restored:?}");
    for restored in restored {
        assert!(restored.from.is_some() && restored.wiped.is_none() && restored.applied == 0, "{restored:?}");
    }
    wait_until("no copies are told of", || second.app.stats().standby_tasks == 0);
    world.feed(200);
    world.wait_for_counts(&[&second.app]);

    // It has copies of nothing any more, and of what goes elsewhere again.
    let third = Member::start(&world, supplier());
    wait_until("the third member gets two tasks", || {
        world.feed(20);
        third.tasks().len() == 2
    });
    second.wait_for_copies(&third.tasks());
    world.wait_for_counts(&[&second.app, &third.app]);
}

#[test]
fn a_task_that_moves_is_restored_from_its_copy_on_disk() {
    a_task_that_moves_is_restored_from_its_copy(redb);
}

/// The open store is handed over: there is nothing on disk to open again.
#[test]
fn a_task_that_moves_is_restored_from_its_copy_in_memory() {
    a_task_that_moves_is_restored_from_its_copy(memory);
}

#[test]
fn an_app_without_standbys_copies_nothing() {
    let mut world = World::embedded(2);
    world.feed(100);
    let (state, heard) = (tempfile::tempdir().unwrap(), Recorder::default());
    let alone = Member::start(&world, redb());
    world.wait_for_counts(&[&alone.app]);
    let other = app(&world, state.path(), &heard).store(redb()).start(count).unwrap();
    wait_until("each gets a task", || {
        world.feed(20);
        alone.tasks().len() == 1 && other.queries().tasks().len() == 1
    });
    alone.wait_for_copies(&other.queries().tasks());
    assert!(heard.take().standbys.is_empty());
    assert_eq!((other.stats().standby_tasks, other.stats().standby_records), (0, 0));
}

/// A copy is no task: it is not told of, nobody can ask it, and the directory is the task's owner's at once.
#[test]
fn a_copy_is_not_a_task() {
    let mut world = World::embedded(4);
    let (first, second) = two_members(&mut world, redb);
    let of_first = first.tasks();
    wait_until("the numbers are told", || {
        let (stats, applied) = (second.app.stats(), second.heard.look(|heard| heard.standby_records));
        stats.standby_tasks == 2 && applied > 0 && stats.standby_records == applied
    });
    second.wait_for_copies(&of_first);
    let told = second.heard.look(|heard| heard.tasks.clone());
    assert!(told.iter().all(|(task, state)| *state != TaskState::Assigned || !of_first.contains(task)), "{told:?}");
    assert!(second.app.queries().snapshot("counts", of_first[0]).is_err());
    let copied = second
        .app
        .offsets()
        .get(of_first[0], &kstate_api::TopicPartition::new(world.changelog(), of_first[0].partition().cast_signed()));
    assert!(matches!(copied, Some(kstate_offset_cache::CachedOffset::At(_))), "{copied:?}");
}
