use std::{
    io::{self, BufRead as _, BufReader, Write as _},
    process::{self, ExitCode},
    sync::Arc,
    thread,
};

use crate::{
    counter::count,
    failure::Failure,
    job::Job,
    orders::Orders,
    protocol::{Command, Event},
    stop::Stop,
    teller::Emit,
};

/// The only argument of a process that counts for another one.
pub(crate) const ARGUMENT: &str = "count-for-parent";

/// Counts what the parent says on standard input, and tells it on standard output.
pub(crate) fn run() -> ExitCode {
    let orders = Orders::default();
    let emit: Emit = Arc::new(|event| tell(&event));
    match read_job(&orders).and_then(|job| count(&job, &orders, &Stop::default(), &emit)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // If the parent does not listen any more, nobody does.
            let _ = tell(&Event::Failed(failure.to_string()));
            ExitCode::FAILURE
        }
    }
}

fn read_job(orders: &Orders) -> Result<Job, Failure> {
    let mut lines = BufReader::new(io::stdin()).lines();
    let first = lines.next().transpose().map_err(broken)?.unwrap_or_default();
    let Ok(Command::Count(job)) = serde_json::from_str(&first) else {
        return Err(broken(io::Error::other("the first line is no job")));
    };
    let orders = orders.clone();
    thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            match serde_json::from_str(&line) {
                Ok(Command::End(ends)) => orders.end(ends),
                Ok(Command::Leave) => orders.leave(),
                Ok(Command::Count(_)) | Err(_) => {}
            }
        }
        // The parent is gone, and with it the cluster or at least whoever wants the counts.
        process::exit(1);
    });
    Ok(job)
}

fn tell(event: &Event) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let line = serde_json::to_string(event).map_err(io::Error::from);
    line.and_then(|line| writeln!(stdout, "{line}")).and_then(|()| stdout.flush()).map_err(broken)
}

fn broken(source: io::Error) -> Failure {
    Failure::System { what: "cannot talk to the feeding process", source }
}
