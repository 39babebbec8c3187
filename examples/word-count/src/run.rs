use std::{
    io::{self, Write as _},
    path::Path,
    sync::mpsc::{Receiver, TryRecvError, sync_channel},
    thread,
    time::{Duration, Instant},
};

use crate::{
    broker::Broker,
    cli::{Cli, Format, GuaranteeKind},
    counter::{EMBEDDED_WINDOW_BYTES, WINDOW_BYTES},
    counting::{Counting, CountingThread},
    failure::Failure,
    feeder::{CHUNK_BYTES, Fed, Feeder, Source},
    input::Inputs,
    job::{FIRST_PROCESS, Job, Names},
    kill_gate::KillGate,
    kill_pacer::{KillPacer, chunk_bytes},
    outcome::Outcome,
    plain_count::PlainCount,
    progress::Progress,
    random::random,
    report::Report,
    state_dir::StateDir,
    stop::Stop,
    stores::check_built,
    supervisor::Supervisor,
};

/// How long the main loop waits for news before it looks after everything else.
const TICK: Duration = Duration::from_millis(20);
/// How far the feeder may be ahead where the counting is killed: the kills shall meet it in the middle of its work.
const WINDOW_BYTES_WITH_KILLS: u64 = 8 << 20;
/// How long the feeder may take to end; it may be waiting for standard input.
const PATIENCE: Duration = Duration::from_millis(200);

/// Does what the command line says.
pub(crate) fn run(cli: &Cli) -> Result<(), Failure> {
    let stop = Stop::on_signals()?;
    check_built(cli.store)?;
    if cli.guarantee == GuaranteeKind::ExactlyOnce && cli.brokers.is_none() {
        return Err(Failure::ExactlyOnceEmbedded);
    }
    let inputs = if cli.input.is_empty() { Inputs::markdown_below(repository())? } else { Inputs::named(&cli.input)? };
    let state_dir = StateDir::open(cli.state_dir.as_deref())?;
    let names = Names::of_run(random());
    let partitions = cli.partitions.unsigned_abs();
    let broker = match &cli.brokers {
        None => Broker::embedded(names, partitions)?,
        Some(brokers) => Broker::real(brokers, names, partitions)?,
    };
    stop.check()?;

    let mut run = Run::start(cli, inputs, &state_dir, &broker, &stop)?;
    let mut outcome = Outcome::new(cli.top);
    let counted = run.hear_all(&mut outcome, &stop);
    let (restarts, bytes, elapsed) = (run.counting.restarts(), run.bytes, run.elapsed());
    run.close(&stop);
    counted?;

    let (top, totals) = outcome.into_result();
    let difference = totals.difference.clone();
    let report = Report::new(top, totals, cli.kills().map(|_| restarts), bytes, elapsed);
    print(&report, cli.format)?;
    difference.map_or(Ok(()), |(word, counted, plain)| Err(Failure::CountsDiffer { word, counted, plain }))
}

/// Where this repository was when the program was built.
fn repository() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package)
}

/// The parts at work.
struct Run {
    counting: Counting,
    /// What is to feed, until the counting is ready.
    feeder: Option<(Feeder, Source)>,
    /// What was fed, while it is not known yet.
    fed: Option<Receiver<Result<Fed, Failure>>>,
    /// The bytes of the input, once it was fed.
    bytes: u64,
    /// Since when it is fed: how long brokers take to deal out tasks tells nothing about stores.
    started: Instant,
    progress: Progress,
}

impl Run {
    fn start(cli: &Cli, inputs: Inputs, state_dir: &StateDir, broker: &Broker, stop: &Stop) -> Result<Self, Failure> {
        let job = Job {
            brokers: broker.cluster().brokers().to_owned(),
            embedded: broker.is_embedded(),
            names: broker.names().clone(),
            partitions: cli.partitions,
            store: cli.store,
            state_dir: state_dir.path().as_os_str().to_owned(),
            commit_interval: cli.commit_interval(),
            guarantee: cli.guarantee,
            threads: cli.threads,
            standby: cli.standby,
            process: FIRST_PROCESS,
        };
        let bytes = inputs.bytes();
        let progress = Progress::new(bytes);
        let kills = cli.kills();
        let window_bytes = match (broker.is_embedded(), kills) {
            (true, _) => EMBEDDED_WINDOW_BYTES,
            (false, None) => WINDOW_BYTES,
            (false, Some(_)) => WINDOW_BYTES_WITH_KILLS,
        };
        let feeder =
            Feeder::new(broker.cluster(), &job.names, cli.partitions, window_bytes, progress.fed(), stop.clone())?;
        let (counting, source) = match kills {
            None => {
                let counting = Counting::Here(CountingThread::start(job, stop.clone()));
                (counting, Source::Free(Box::new(inputs.chunks(CHUNK_BYTES, None))))
            }
            Some(kills) => {
                let gate = KillGate::default();
                let chunks = inputs.chunks(chunk_bytes(bytes, kills, CHUNK_BYTES), Some(PlainCount::default()));
                let pacer = KillPacer::new(chunks, bytes, kills, gate.clone());
                let supervisor = Supervisor::start(job, kills, gate, progress.clone())?;
                (Counting::Supervised(Box::new(supervisor)), Source::Paced(Box::new(pacer)))
            }
        };
        let feeder = Some((feeder, source));
        Ok(Self { counting, feeder, fed: None, bytes: 0, started: Instant::now(), progress })
    }

    /// Begins to feed, once the counting is ready.
    fn feed_when_ready(&mut self) {
        if let Some((feeder, source)) = self.feeder.take_if(|_| self.counting.is_ready()) {
            self.started = Instant::now();
            let (sender, fed) = sync_channel(1);
            self.fed = Some(fed);
            // Not joined: it may wait for standard input for ever.
            thread::spawn(move || {
                // If nobody listens any more, something else has failed.
                let _ = sender.send(feeder.feed(source));
            });
        }
    }

    /// Goes on until every count is told to `outcome`.
    fn hear_all(&mut self, outcome: &mut Outcome, stop: &Stop) -> Result<(), Failure> {
        while !outcome.is_finished() {
            stop.check()?;
            self.progress.refresh();
            self.feed_when_ready();
            match self.fed.as_ref().map(Receiver::try_recv) {
                Some(Ok(fed)) => self.end(fed?, outcome)?,
                Some(Err(TryRecvError::Disconnected)) => return Err(Failure::Panicked("feeding")),
                Some(Err(TryRecvError::Empty)) | None => {}
            }
            if let Some(event) = self.counting.next_event(TICK)? {
                outcome.hear(event)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, fed: Fed, outcome: &mut Outcome) -> Result<(), Failure> {
        self.fed = None;
        self.bytes = fed.bytes;
        if let Some(plain_count) = fed.plain_count {
            outcome.check_with(plain_count)?;
        }
        self.counting.end(fed.ends);
        Ok(())
    }

    /// How long it was fed and counted.
    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Ends every part, so that what they use can be taken away.
    fn close(self, stop: &Stop) {
        stop.request();
        self.counting.close();
        if let Some(fed) = self.fed {
            // What it says is not the reason of the end.
            let _ = fed.recv_timeout(PATIENCE);
        }
    }
}

fn print(report: &Report, format: Format) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let printed = match format {
        Format::Text => write!(stdout, "{report}"),
        Format::Json => {
            if let Some(comparison) = report.comparison() {
                eprintln!("{comparison}");
            }
            report.write_json(&mut stdout)
        }
    };
    match printed.and_then(|()| stdout.flush()) {
        // Whoever read it has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed.map_err(Failure::Output),
    }
}
