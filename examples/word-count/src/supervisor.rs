use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use crate::{
    failure::Failure,
    job::{FIRST_PROCESS, Job},
    kill_gate::KillGate,
    progress::Progress,
    protocol::{Command, Event, TaskRestored},
    random::random_below,
    supervised::Supervised,
};

/// A kill comes at a random moment of so many milliseconds, once it is due and the processes count.
const KILL_WITHIN_MS: u64 = 300;

/// Runs the counting processes, kills one when the gate says so, and starts it again.
pub(crate) struct Supervisor {
    job: Job,
    processes: Vec<Supervised>,
    /// The number of the process that was killed, until it is started again.
    killed: Option<u32>,
    gate: KillGate,
    kills: u32,
    kill_at: Option<Instant>,
    progress: Progress,
    /// What killed processes had told, not heard yet.
    left_over: VecDeque<Event>,
    /// Where the source ends, until the processes are told.
    ends: Option<Vec<i64>>,
    ending: bool,
}

impl Supervisor {
    /// Starts the counting processes on `job`, of which one at a time is to be killed, `kills` times.
    pub(crate) fn start(job: Job, kills: u32, gate: KillGate, progress: Progress) -> Result<Self, Failure> {
        let numbers = (FIRST_PROCESS..).take(job.processes());
        let processes = numbers.map(|number| Supervised::start(&job, number, false)).collect::<Result<_, _>>()?;
        Ok(Self {
            job,
            processes,
            killed: None,
            gate,
            kills,
            kill_at: None,
            progress,
            left_over: VecDeque::new(),
            ends: None,
            ending: false,
        })
    }

    /// What a process tells next, if one does within `timeout`.
    pub(crate) fn next_event(&mut self, timeout: Duration) -> Result<Option<Event>, Failure> {
        if let Some(event) = self.left_over.pop_front() {
            return Ok(Some(event));
        }
        self.act()?;
        // They take turns: none waits for another one that has much to tell.
        self.processes.rotate_left(1);
        let share = timeout / u32::try_from(self.processes.len()).unwrap_or(u32::MAX).max(1);
        for index in 0..self.processes.len() {
            let Some(process) = self.processes.get_mut(index) else { continue };
            let Some(event) = process.next_event(share)? else { continue };
            match &event {
                Event::Restored(restored) => self.print_restored(index, restored),
                Event::Left => drop(self.processes.remove(index)),
                _ => {}
            }
            return Ok(Some(event));
        }
        Ok(None)
    }

    /// The source ends: the processes are told as soon as they are ready.
    pub(crate) fn end(&mut self, ends: Vec<i64>) {
        self.ends = Some(ends);
    }

    /// How many times a process was killed and started again.
    pub(crate) fn restarts(&self) -> u32 {
        self.gate.done()
    }

    /// Whether every process is there, all tasks count, and two processes have their share and copies of the rest.
    pub(crate) fn is_ready(&self) -> bool {
        // Fewer tasks than threads may all be dealt out to one process.
        let least = usize::from(self.all_tasks() >= self.job.processes() * self.job.threads.get());
        let shares = |process: &Supervised| process.tasks() >= least && process.tasks_and_copies() == self.all_tasks();
        self.killed.is_none()
            && self.processes.iter().map(Supervised::tasks).sum::<usize>() == self.all_tasks()
            && (!self.job.standby || self.processes.iter().all(shares))
    }

    fn all_tasks(&self) -> usize {
        usize::try_from(self.job.partitions).unwrap_or_default()
    }

    /// Does what is due.
    fn act(&mut self) -> Result<(), Failure> {
        let ready = self.is_ready();
        self.gate.set_ready(ready);
        if ready && self.gate.is_due() && self.processes.iter().all(Supervised::is_ripe) {
            let random = || Instant::now() + Duration::from_millis(random_below(KILL_WITHIN_MS));
            if *self.kill_at.get_or_insert_with(random) <= Instant::now() {
                self.kill()?;
            }
        } else if ready && let Some(ends) = self.ends.take() {
            self.ending = true;
            for process in &mut self.processes {
                let is_first = process.number == FIRST_PROCESS;
                process.child.tell(&if is_first { Command::End(ends.clone()) } else { Command::Leave })?;
            }
        }
        self.restart()
    }

    /// Starts the process that was killed again, once the other one, if there is one, has taken over.
    fn restart(&mut self) -> Result<(), Failure> {
        let taken_over = |process: &Supervised| process.tasks() == self.all_tasks();
        if (self.processes.is_empty() || self.processes.iter().any(taken_over))
            && let Some(number) = self.killed.take()
        {
            self.processes.push(Supervised::start(&self.job, number, true)?);
        }
        Ok(())
    }

    /// Kills one that has tasks: nobody would miss another.
    fn kill(&mut self) -> Result<(), Failure> {
        let mut worthwhile = (0..).zip(&self.processes).filter(|(_, process)| process.tasks() > 0);
        let choice = random_below(worthwhile.clone().count() as u64);
        let index = usize::try_from(choice).ok().and_then(|choice| worthwhile.nth(choice));
        let Some((index, _)) = index else { return Ok(()) };
        let mut process = self.processes.remove(index);
        self.left_over.extend(process.child.kill()?);
        self.kill_at = None;
        self.killed = Some(process.number);
        self.gate.kill_done();
        let (number, id) = (self.restarts(), process.child.id());
        self.progress.line(&format!("kill {number} of {}: process {id} was sent SIGKILL", self.kills));
        Ok(())
    }

    fn print_restored(&self, index: usize, restored: &TaskRestored) {
        let Some(process) = self.processes.get(index) else { return };
        let TaskRestored { task, held, applied, uncommitted, end, source_next } = restored;
        let (number, id) = (self.restarts(), process.child.id());
        let whose = if self.ending {
            format!("end: the copy of task {task} in process {id}")
        } else if self.killed.is_some() {
            format!("takeover {number}: the copy of task {task} in process {id}")
        } else if process.again {
            format!("restart {number}: the store of task {task}")
        } else {
            return;
        };
        let held = held.map_or_else(|| "nothing".into(), |offset| format!("the changelog up to offset {offset}"));
        self.progress.line(&format!(
            "{whose} held {held}; restored {applied} records, left out {uncommitted} that were never committed, up to \
             the end at {end}; counting goes on at source record {source_next}"
        ));
    }
}
