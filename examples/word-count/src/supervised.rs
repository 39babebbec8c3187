use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use crate::{child::CountingChild, failure::Failure, job::Job, protocol::Event};

/// A process that finds nothing to count, for the input is too small, is killed after this.
const IDLE: Duration = Duration::from_millis(500);

/// One life of a counting process, as far as its supervisor knows it.
pub(crate) struct Supervised {
    pub(crate) number: u32,
    pub(crate) child: CountingChild,
    /// Whether it was started again after a kill.
    pub(crate) again: bool,
    /// Since when all tasks that it has count.
    running: Option<Instant>,
    counting: bool,
    /// The tasks that it has, and those of which it has copies.
    tasks: BTreeSet<String>,
    copies: BTreeSet<String>,
}

impl Supervised {
    /// Starts the process `number` on `job`.
    pub(crate) fn start(job: &Job, number: u32, again: bool) -> Result<Self, Failure> {
        let child = CountingChild::start(&Job { process: number, ..job.clone() })?;
        let (tasks, copies) = (BTreeSet::new(), BTreeSet::new());
        Ok(Self { number, child, again, running: None, counting: false, tasks, copies })
    }

    /// What it tells next, if it does within `timeout`.
    pub(crate) fn next_event(&mut self, timeout: Duration) -> Result<Option<Event>, Failure> {
        let event = self.child.next_event(timeout)?;
        match &event {
            Some(Event::Running(running)) => self.running = running.then(Instant::now),
            Some(Event::Restored(restored)) => {
                self.copies.remove(&restored.task);
                self.tasks.insert(restored.task.clone());
            }
            Some(Event::Closed(task)) => {
                self.tasks.remove(task);
            }
            Some(Event::Copied(task)) => {
                self.copies.insert(task.clone());
            }
            Some(Event::Counting) => self.counting = true,
            _ => {}
        }
        Ok(event)
    }

    /// How many tasks it counts; 0 while some of its tasks are on their way.
    pub(crate) fn tasks(&self) -> usize {
        if self.running.is_some() { self.tasks.len() } else { 0 }
    }

    /// How many tasks it has and counts, or has a copy of.
    pub(crate) fn tasks_and_copies(&self) -> usize {
        if self.running.is_some() { self.tasks.len() + self.copies.len() } else { 0 }
    }

    /// Whether it is where a kill can hurt.
    pub(crate) fn is_ripe(&self) -> bool {
        self.counting || self.running.is_some_and(|since| since.elapsed() >= IDLE)
    }
}
