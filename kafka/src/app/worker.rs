use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc::channel},
    thread,
    time::{Duration, Instant},
};

use kstate_api::{Error, ErrorKind};

use crate::SourceConsumer;

use super::{
    Queries,
    control::{Control, WorkerState},
    definition::Definition,
    restorer::Restorer,
    session::{End, Session},
    standbys::Standbys,
};

/// How long to wait before a session is begun anew.
const REJOIN_PAUSE: Duration = Duration::from_millis(200);
/// How long a consumer may take to leave its group; it may be waiting for a broker that is gone.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs one thread of an app: one session after the other, until the app is to stop or cannot go on.
pub(crate) fn run(
    definition: &Arc<Definition>,
    control: &Control,
    queries: &Queries,
    standbys: &Standbys,
    thread: usize,
) {
    let mut failing_since = None;
    while !control.is_stopping() {
        let (ended, progressed) = run_session(definition, control, queries, standbys, thread);
        if progressed {
            failing_since = None;
        }
        match ended {
            Ok(()) => break,
            Err(End::Fail(error) | End::Halt(error)) => {
                control.fail(error);
                break;
            }
            Err(End::Rejoin(error)) => {
                let since = *failing_since.get_or_insert_with(Instant::now);
                if since.elapsed() > definition.timeouts.retry {
                    control.fail(error);
                    break;
                }
                tracing::warn!(thread, %error, "the thread begins anew");
                control.restarts(thread);
                control.sleep(REJOIN_PAUSE);
            }
        }
    }
    control.worker_changed(thread, WorkerState::Ended);
}

fn run_session(
    definition: &Arc<Definition>,
    control: &Control,
    queries: &Queries,
    standbys: &Standbys,
    thread: usize,
) -> (Result<(), End>, bool) {
    let mut session = match Session::open(definition, control, queries, standbys, thread) {
        Ok(session) => session,
        Err(end) => return (Err(end), false),
    };
    // Whatever the processor does, its task's stores are closed and its directory is given free.
    let ended = catch_unwind(AssertUnwindSafe(|| session.run())).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let message = format!("thread {thread} panicked: {}", said.unwrap_or("without a word"));
        Err(End::Fail(Error::new(ErrorKind::Io, message)))
    });
    let progressed = session.progressed;
    leave(session.close());
    (ended, progressed)
}

/// Leaves the group and ends the consumers, in bounded time.
fn leave(consumers: (SourceConsumer, Restorer)) {
    let (left, wait) = channel();
    let leaving = thread::Builder::new().name("kstate-leave".into()).spawn(move || {
        drop(consumers);
        // Nobody may wait any more.
        let _ = left.send(());
    });
    if leaving.is_err() || wait.recv_timeout(LEAVE_TIMEOUT).is_err() {
        tracing::warn!("a consumer takes long to leave its group; it is left to itself");
    }
}
