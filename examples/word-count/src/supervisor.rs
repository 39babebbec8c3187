use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use crate::{
    child::CountingChild,
    failure::Failure,
    kill_gate::KillGate,
    progress::Progress,
    protocol::{Event, Job, TaskRestored},
    random::random_below,
};

/// A kill comes at a random moment of so many milliseconds, once it is due and the process counts.
const KILL_WITHIN_MS: u64 = 300;
/// A process that finds nothing to count, for the input is too small, is killed after this.
const IDLE: Duration = Duration::from_millis(500);

/// Runs the counting process, kills it when the gate says so, and starts it again.
pub(crate) struct Supervisor {
    job: Job,
    child: CountingChild,
    gate: KillGate,
    kills: u32,
    progress: Progress,
    /// What killed processes had told, not heard yet.
    left_over: VecDeque<Event>,
    ends: Option<Vec<i64>>,
    life: Life,
}

/// How far the running process is.
#[derive(Debug, Default)]
struct Life {
    restored: Option<Instant>,
    counting: bool,
    kill_at: Option<Instant>,
}

impl Supervisor {
    /// Starts the counting process on `job`, to be killed `kills` times.
    pub(crate) fn start(job: Job, kills: u32, gate: KillGate, progress: Progress) -> Result<Self, Failure> {
        let child = CountingChild::start(&job)?;
        let (left_over, life) = (VecDeque::new(), Life::default());
        Ok(Self { job, child, gate, kills, progress, left_over, ends: None, life })
    }

    /// What the process tells next, if it does within `timeout`.
    pub(crate) fn next_event(&mut self, timeout: Duration) -> Result<Option<Event>, Failure> {
        if let Some(event) = self.left_over.pop_front() {
            return Ok(Some(event));
        }
        if let Some(kill_at) = self.kill_time() {
            let left = kill_at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.kill_and_restart()?;
                return Ok(None);
            }
            return self.hear(timeout.min(left));
        }
        self.hear(timeout)
    }

    /// Tells this process, and those to come, that the source ends.
    pub(crate) fn end(&mut self, ends: Vec<i64>) -> Result<(), Failure> {
        self.child.end(&ends)?;
        self.ends = Some(ends);
        Ok(())
    }

    /// How many times the process was killed and started again.
    pub(crate) fn restarts(&self) -> u32 {
        self.gate.done()
    }

    fn hear(&mut self, timeout: Duration) -> Result<Option<Event>, Failure> {
        let event = self.child.next_event(timeout)?;
        match &event {
            Some(Event::Restored(tasks)) => {
                self.life.restored = Some(Instant::now());
                self.gate.set_ready(true);
                if self.restarts() > 0 {
                    self.print_restored(tasks);
                }
            }
            Some(Event::Counting) => self.life.counting = true,
            _ => {}
        }
        Ok(event)
    }

    /// When to kill the process, if a kill is due and the process is where a kill can hurt.
    fn kill_time(&mut self) -> Option<Instant> {
        let restored = self.life.restored.filter(|_| self.gate.is_due())?;
        if !self.life.counting && restored.elapsed() < IDLE {
            return None;
        }
        let random = || Instant::now() + Duration::from_millis(random_below(KILL_WITHIN_MS));
        Some(*self.life.kill_at.get_or_insert_with(random))
    }

    fn kill_and_restart(&mut self) -> Result<(), Failure> {
        let id = self.child.id();
        self.left_over.extend(self.child.kill()?);
        self.gate.kill_done();
        self.life = Life::default();
        self.progress.line(&format!("kill {} of {}: process {id} was sent SIGKILL", self.restarts(), self.kills));
        self.child = CountingChild::start(&self.job)?;
        self.ends.as_ref().map_or(Ok(()), |ends| self.child.end(ends))
    }

    fn print_restored(&self, tasks: &[TaskRestored]) {
        for restored in tasks {
            let TaskRestored { task, held, applied, uncommitted, end, source_next } = restored;
            let held = held.map_or_else(|| "nothing".into(), |offset| format!("the changelog up to offset {offset}"));
            let number = self.restarts();
            self.progress.line(&format!(
                "restart {number}: the store of task {task} held {held}; restored {applied} records, left out \
                 {uncommitted} that were never committed, up to the end at {end}; counting goes on at source record \
                 {source_next}"
            ));
        }
    }
}
