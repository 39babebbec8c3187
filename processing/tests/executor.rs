//! Single cases of the executor.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that fails by panicking says so at the right line"
)]

mod support;

use std::{
    sync::{Arc, Barrier, mpsc},
    thread,
    time::{Duration, Instant},
};

use kstate_api::{ErrorKind, KeyRange, KeyValueStore, Order, PartitionPosition};
use kstate_processing::{
    Apply, CheckpointMode, Completion, Drained, Epoch, Executor, ExecutorSettings, MetadataLimit, OnExhausted, Outcome,
    PositionMetadata as _, ProcessError, Processor, ProcessorFn, RecordOrder, RetryPolicy, Sink, StoreAbilities,
    Submission, Submitted, TrackerLimits, Waited, Work,
};
use support::{Applied, Log, SECOND, at, drive, executor, memory_store, partition, quick_retries, rows};

type Done = std::result::Result<(), ProcessError>;

fn function<F>(function: F) -> ProcessorFn<F, i64, String>
where
    F: Fn(&i64, &mut Work<'_, String>) -> Done,
{
    ProcessorFn::new(function)
}

fn assign<P: Processor>(executor: &mut Executor<P>) -> Epoch {
    executor.assign(partition(0), PartitionPosition::at(at(0)))
}

/// Submits the record at `offset`, which is its own number, at `now`.
fn submit_at<P: Processor<Record = i64, Output = String>>(
    executor: &mut Executor<P>,
    epoch: Epoch,
    (offset, key): (i64, &'static str),
    now: Instant,
    sink: &mut dyn Sink<i64, String>,
) {
    let submission = Submission::new(at(offset), offset).with_key(key);
    assert!(matches!(executor.submit(epoch, submission, now, sink), Ok(Submitted::Taken)));
}

fn submit<P: Processor<Record = i64, Output = String>>(
    executor: &mut Executor<P>,
    epoch: Epoch,
    record: (i64, &'static str),
    sink: &mut dyn Sink<i64, String>,
) {
    submit_at(executor, epoch, record, Instant::now(), sink);
}

#[test]
fn impossible_settings_are_refused_with_the_reason_and_the_way_out() {
    let good = ExecutorSettings::default();
    let no_concurrent_reads = StoreAbilities { concurrent_reads: false, ..StoreAbilities::default() };
    let no_positions = StoreAbilities { atomic_positions: false, ..StoreAbilities::default() };
    let holes = ExecutorSettings { checkpoint: CheckpointMode::Holes, ..good };
    for (settings, reason) in [
        (ExecutorSettings { workers: 0, ..good }, "have one at least"),
        (ExecutorSettings { workers: 8, max_in_flight: 7, ..good }, "raise `max_in_flight`"),
        (ExecutorSettings { workers: 2, stores: no_concurrent_reads, ..good }, "have one worker"),
        (ExecutorSettings { checkpoint: CheckpointMode::InOrder, ..good }, "Apply::InInputOrder"),
        (ExecutorSettings { exactly_once: true, stores: no_positions, ..holes }, "choose `CheckpointMode::Drain`"),
        (ExecutorSettings { limits: TrackerLimits::default().with_metadata(MetadataLimit::new(80)), ..holes }, "raise"),
        (ExecutorSettings { retry: RetryPolicy::new(0), ..good }, "never retry"),
        (
            ExecutorSettings { retry: RetryPolicy::default().with_backoff(2 * SECOND, SECOND), ..good },
            "raise the longest",
        ),
    ] {
        let error = Executor::new(settings, function(|_, _| Ok(())), vec![]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains(reason), "{error}");
    }
    for settings in [
        ExecutorSettings { workers: 1, stores: no_concurrent_reads, ..good },
        ExecutorSettings { workers: 4, apply: Apply::InInputOrder, checkpoint: CheckpointMode::InOrder, ..good },
        ExecutorSettings { exactly_once: false, stores: no_positions, ..holes },
        ExecutorSettings { exactly_once: true, stores: no_positions, ..good },
    ] {
        assert!(settings.check().is_ok(), "{settings:?}");
    }
}

#[test]
fn one_worker_is_the_owner_itself_and_done_when_submit_returns() {
    let owner = thread::current().id();
    let mut executor = executor(
        ExecutorSettings::default(),
        function(move |record, work| {
            assert_eq!(thread::current().id(), owner);
            work.output(record.to_string());
            Ok(())
        }),
        vec![],
    );
    let (epoch, mut applied) = (assign(&mut executor), Applied::default());
    for offset in 0..3 {
        submit(&mut executor, epoch, (offset, "k"), &mut applied);
        assert_eq!((executor.in_flight(), executor.next(epoch)), (0, Some(at(offset + 1))));
    }
    assert_eq!(applied.outputs, ["0", "1", "2"]);
}

#[test]
fn workers_read_what_they_wrote_and_effects_keep_their_order() {
    let store = memory_store();
    for key in ["a", "c", "e"] {
        store.put(key.as_bytes(), b"old").unwrap();
    }
    let seen = Log::default();
    let saw = seen.clone();
    let processor = function(move |_, work| {
        work.put(0, "a", "new")?;
        work.output("between".into());
        work.delete(0, "c")?;
        work.put(0, "b", "new")?;
        work.put(0, "f", "new")?;
        work.delete(0, "never there")?;
        saw.push(format!("{:?} {:?} {:?}", work.get(0, b"a")?, work.get(0, b"c")?, work.get(0, b"e")?));
        for (range, order) in [
            (KeyRange::all(), Order::Ascending),
            (KeyRange::all(), Order::Descending),
            (KeyRange::between(b"b", b"e"), Order::Ascending),
            (KeyRange::between(b"e", b"b"), Order::Descending),
        ] {
            let mut keys = String::new();
            work.scan(0, &range, order, |key, value| {
                keys.extend([key[0] as char, value[0] as char, ' ']);
                std::ops::ControlFlow::Continue(())
            })?;
            saw.push(keys);
        }
        let mut first = None;
        work.scan(0, &KeyRange::all(), Order::Ascending, |key, _| {
            first = Some(key.to_vec());
            std::ops::ControlFlow::Break(())
        })?;
        saw.push(String::from_utf8(first.unwrap())?);
        assert!(work.put(1, "a", "b").is_err() && work.get(1, b"a").is_err());
        Ok(())
    });
    let mut executor =
        executor(ExecutorSettings { workers: 2, ..ExecutorSettings::default() }, processor, vec![store.clone()]);
    let (epoch, mut applied) = (assign(&mut executor), Applied::to(store.clone()));
    submit(&mut executor, epoch, (0, "k"), &mut applied);
    assert_eq!(rows(&*store).len(), 3, "nothing is applied but by the owner");
    drive(&mut executor, &mut applied).unwrap();
    let expected = ["Some(b\"new\") None Some(b\"old\")", "an bn eo fn ", "fn eo bn an ", "bn eo ", "", "a"];
    assert_eq!(seen.entries(), expected);
    assert_eq!(rows(&*store).keys().map(|key| key[0] as char).collect::<String>(), "abef");
    assert_eq!(applied.outputs, ["between"]);
}

#[test]
fn a_record_that_fails_waits_without_a_worker_and_holds_up_its_lane_only() {
    for workers in [1, 2] {
        let attempts = Log::default();
        let ran = attempts.clone();
        let processor = function(move |record, work| {
            ran.push(*record);
            if *record == 0 && ran.entries().iter().filter(|other| **other == 0).count() < 3 {
                work.output("of a failed attempt".into());
                return Err(ProcessError::retry("not yet"));
            }
            work.output(record.to_string());
            Ok(())
        });
        let retry = RetryPolicy::new(3).with_backoff(SECOND, 10 * SECOND);
        let mut executor =
            executor(ExecutorSettings { workers, retry, ..ExecutorSettings::default() }, processor, vec![]);
        let (epoch, mut applied) = (assign(&mut executor), Applied::default());
        let now = Instant::now();
        let poll = |executor: &mut Executor<_>, now, applied: &mut Applied| {
            while executor.running() > 0 {
                let _ = executor.wait(SECOND);
                executor.poll(now, applied).unwrap();
            }
            executor.poll(now, applied).unwrap();
            while executor.running() > 0 {
                let _ = executor.wait(SECOND);
                executor.poll(now, applied).unwrap();
            }
        };
        for record in [(0, "hot"), (1, "hot"), (2, "other")] {
            submit_at(&mut executor, epoch, record, now, &mut applied);
        }
        poll(&mut executor, now, &mut applied);
        assert_eq!(applied.outputs, ["2"], "others go on");
        assert_eq!((executor.parked(), executor.running(), executor.in_flight()), (1, 0, 2));
        assert_eq!((executor.next(epoch), executor.next_due()), (Some(at(0)), Some(now + SECOND)));
        poll(&mut executor, now + Duration::from_millis(999), &mut applied);
        assert_eq!(attempts.entries().len(), 2);
        poll(&mut executor, now + SECOND, &mut applied);
        assert_eq!(executor.next_due(), Some(now + 3 * SECOND), "the wait is doubled");
        poll(&mut executor, now + 3 * SECOND, &mut applied);
        assert_eq!(applied.outputs, ["2", "0", "1"], "the order of the key is kept");
        assert_eq!((executor.next(epoch), executor.stats().retries), (Some(at(3)), 2));
    }
}

#[test]
fn a_poison_record_goes_to_the_dead_letters_after_its_attempts_and_the_position_moves_on() {
    for workers in [1, 3] {
        let processor = function(|record, _| match record {
            1 => Err("poison".parse::<u8>().unwrap_err().into()),
            2 => panic!("at {record}"),
            3 => Err(ProcessError::skip("undecodable")),
            _ => Ok(()),
        });
        let settings = ExecutorSettings { workers, retry: quick_retries(5), ..ExecutorSettings::default() };
        let mut executor = executor(settings, processor, vec![]);
        let (epoch, mut applied) = (assign(&mut executor), Applied::default());
        for record in [(0, "a"), (1, "b"), (2, "c"), (3, "d"), (4, "b")] {
            submit(&mut executor, epoch, record, &mut applied);
        }
        drive(&mut executor, &mut applied).unwrap();
        applied.dead.sort();
        let dead: Vec<_> = applied.dead.iter().map(|(offset, cause)| (*offset, cause.as_str())).collect();
        assert_eq!(
            dead,
            [
                (1, "failed 5 times, at last since invalid digit found in string"),
                (2, "failed 5 times, at last since the processor panicked: at 2"),
                (3, "failed 1 times, at last since undecodable"),
            ]
        );
        assert_eq!(executor.next(epoch), Some(at(5)));
        assert_eq!((executor.stats().dead_letters, executor.stats().done), (3, 2));
    }
}

#[test]
fn ho_57_a_stretch_of_undecodable_records_moves_the_position() {
    let processor = function(|_, _| Err(ProcessError::skip("undecodable")));
    let mut executor = executor(ExecutorSettings { workers: 2, ..ExecutorSettings::default() }, processor, vec![]);
    let (epoch, mut applied) = (assign(&mut executor), Applied::default());
    (0..10).for_each(|offset| submit(&mut executor, epoch, (offset, "k"), &mut applied));
    drive(&mut executor, &mut applied).unwrap();
    assert_eq!((executor.next(epoch), executor.stats().dead_letters), (Some(at(10)), 10));
}

#[test]
fn a_halt_freezes_the_position_at_the_record() {
    for (on_exhausted, error) in [
        (OnExhausted::Halt, ProcessError::retry as fn(&'static str) -> ProcessError),
        (OnExhausted::DeadLetter, ProcessError::halt),
    ] {
        let processor = function(move |record, _| if *record == 1 { Err(error("poison")) } else { Ok(()) });
        let settings = ExecutorSettings { on_exhausted, retry: RetryPolicy::new(1), ..ExecutorSettings::default() };
        let mut executor = executor(settings, processor, vec![]);
        let (epoch, mut applied) = (assign(&mut executor), Applied::default());
        submit(&mut executor, epoch, (0, "a"), &mut applied);
        let outcome = Log::default();
        let tell = outcome.clone();
        let poison = Submission::new(at(1), 1).on_finished(move |outcome| tell.push(format!("{outcome:?}")));
        let error = executor.submit(epoch, poison, Instant::now(), &mut applied).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Poisoned);
        assert!(error.to_string().contains("source-0@1, which failed 1 times: poison"), "{error}");
        let again = executor.submit(epoch, Submission::new(at(2), 2), Instant::now(), &mut applied).unwrap_err();
        assert_eq!(again.to_string(), error.to_string());
        assert_eq!(executor.poll(Instant::now(), &mut applied).unwrap_err().kind(), ErrorKind::Poisoned);
        assert_eq!((executor.next(epoch), outcome.entries()), (Some(at(1)), vec!["Abandoned".to_owned()]));
    }
}

#[test]
fn a_sink_that_fails_lets_nothing_be_committed_any_more() {
    for workers in [1, 2] {
        let settings = ExecutorSettings { workers, checkpoint: CheckpointMode::Holes, ..ExecutorSettings::default() };
        let mut executor = executor(settings, function(|_, _| Ok(())), vec![]);
        let epoch = assign(&mut executor);
        let mut applied = Applied { fails_at: Some(0), ..Applied::default() };
        let (on_finished, completion) = Completion::new();
        let submission = Submission::new(at(0), 0).on_finished(on_finished);
        let submitted = executor.submit(epoch, submission, Instant::now(), &mut applied);
        let error = submitted.and_then(|_| drive(&mut executor, &mut applied)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Poisoned);
        assert_eq!(executor.positions().unwrap_err().kind(), ErrorKind::Poisoned);
        assert_eq!(executor.next(epoch), Some(at(0)));
        assert!(matches!(completion.wait(Duration::ZERO), Some(Outcome::Abandoned)));
    }
}

#[test]
fn effects_in_input_order_wait_for_their_turn() {
    let (release, held) = mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let processor = function(move |record, work| {
        if *record == 0 {
            held.lock().unwrap().recv()?;
        }
        if *record == 2 {
            return Err(ProcessError::skip("undecodable"));
        }
        work.output(record.to_string());
        Ok(())
    });
    let settings = ExecutorSettings {
        workers: 3,
        order: RecordOrder::Unordered,
        apply: Apply::InInputOrder,
        checkpoint: CheckpointMode::InOrder,
        ..ExecutorSettings::default()
    };
    let mut executor = executor(settings, processor, vec![]);
    let (epoch, mut applied) = (assign(&mut executor), Applied::default());
    (0..5).for_each(|offset| submit(&mut executor, epoch, (offset, "k"), &mut applied));
    while executor.running() > 1 {
        let _ = executor.wait(SECOND);
        executor.poll(Instant::now(), &mut applied).unwrap();
    }
    assert!(applied.outputs.is_empty() && applied.dead.is_empty(), "all but the first are processed, none is applied");
    let positions = executor.positions().unwrap().unwrap();
    assert_eq!(positions[0].1.position(), &PartitionPosition::at(at(0)));
    release.send(()).unwrap();
    drive(&mut executor, &mut applied).unwrap();
    assert_eq!(applied.outputs, ["0", "1", "3", "4"]);
    assert_eq!((applied.dead.len(), executor.next(epoch)), (1, Some(at(5))));
}

/// Workers that hold every record until the test lets them go.
fn gated() -> (mpsc::Sender<()>, impl Processor<Record = i64, Output = String>) {
    let (release, held) = mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let processor = function(move |record, work| {
        held.lock().unwrap().recv()?;
        work.output(record.to_string());
        Ok(())
    });
    (release, processor)
}

#[test]
fn ho_53_what_is_revoked_in_mid_flight_is_not_committed_and_its_results_are_dropped() {
    let (release, processor) = gated();
    let settings = ExecutorSettings { workers: 2, checkpoint: CheckpointMode::Holes, ..ExecutorSettings::default() };
    let mut executor = executor(settings, processor, vec![]);
    let mut applied = Applied::default();
    let epoch = executor.assign(partition(0), PartitionPosition::at(at(329_888)));
    let other = executor.assign(partition(1), PartitionPosition::at(at(0)));
    let outcomes = Log::default();
    for offset in 329_888..329_892 {
        let tell = outcomes.clone();
        let submission = Submission::new(at(offset), offset).with_key("k").on_finished(move |outcome| {
            tell.push(format!("{outcome:?}"));
        });
        executor.submit(epoch, submission, Instant::now(), &mut applied).unwrap();
    }
    assert_eq!(executor.revoke(epoch), Some(PartitionPosition::at(at(329_888))), "still to do");
    assert_eq!(executor.in_flight(), 0, "nothing of it is counted as load any more");
    let positions = executor.positions().unwrap().unwrap();
    assert_eq!(positions.iter().map(|(partition, _)| partition.partition()).collect::<Vec<_>>(), [1]);

    // The same partition again, and a record of the other: neither is held up by what still runs.
    let again = executor.assign(partition(0), PartitionPosition::at(at(329_888)));
    submit(&mut executor, again, (329_888, "k"), &mut applied);
    submit(&mut executor, other, (0, "k"), &mut applied);
    (0..6).for_each(|_| release.send(()).unwrap());
    drive(&mut executor, &mut applied).unwrap();
    while executor.running() > 0 {
        let _ = executor.wait(SECOND);
        executor.poll(Instant::now(), &mut applied).unwrap();
    }
    applied.offsets.sort_unstable();
    assert_eq!(applied.offsets, [(0, 329_888), (1, 0)], "each once");
    assert_eq!(executor.next(again), Some(at(329_889)));
    assert_eq!(outcomes.entries(), vec!["Abandoned"; 4]);
    let late = executor.submit(epoch, Submission::new(at(329_892), 0), Instant::now(), &mut applied);
    assert_eq!(late.unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn ho_56_dropping_an_executor_waits_for_no_worker() {
    let (release, processor) = gated();
    let mut executor = executor(ExecutorSettings { workers: 2, ..ExecutorSettings::default() }, processor, vec![]);
    let (epoch, mut applied) = (assign(&mut executor), Applied::default());
    let (on_finished, completion) = Completion::new();
    let submission = Submission::new(at(0), 0).on_finished(on_finished);
    executor.submit(epoch, submission, Instant::now(), &mut applied).unwrap();
    let drained = executor.drain(Instant::now, Instant::now() + Duration::from_millis(20), &mut applied).unwrap();
    assert_eq!(drained, Drained::TimedOut { lowest: Some((partition(0), at(0))) });
    drop(executor);
    assert!(
        matches!(completion.wait(Duration::ZERO), Some(Outcome::Abandoned)),
        "nor does whoever waits for the record"
    );
    release.send(()).unwrap();
    assert!(applied.outputs.is_empty());
}

#[test]
fn whoever_is_called_back_hears_once_and_at_once_of_what_a_dropped_executor_leaves() {
    for halts in [false, true] {
        let (release, held) = mpsc::channel::<()>();
        let held = std::sync::Mutex::new(held);
        let processor = function(move |record, _| match record {
            0 => Ok(held.lock().unwrap().recv()?),
            1 if halts => Err(ProcessError::halt("stop")),
            _ => Ok(()),
        });
        let mut executor = executor(ExecutorSettings { workers: 2, ..ExecutorSettings::default() }, processor, vec![]);
        let (epoch, mut applied) = (assign(&mut executor), Applied::default());
        let outcomes = Log::default();
        // A worker has the first all the time; the third waits for it; the others are brought.
        for (offset, key) in [(0, "a"), (1, "b"), (2, "a"), (3, "c")] {
            let tell = outcomes.clone();
            let submission = Submission::new(at(offset), offset).with_key(key).on_finished(move |outcome| {
                tell.push((offset, format!("{outcome:?}"), thread::current().id()));
            });
            executor.submit(epoch, submission, Instant::now(), &mut applied).unwrap();
        }
        assert!(executor.wait(10 * SECOND));
        if halts {
            assert_eq!(executor.poll(Instant::now(), &mut applied).unwrap_err().kind(), ErrorKind::Poisoned);
            assert_eq!(outcomes.entries().len(), 1, "the others may be asked for still");
        }
        drop(executor);
        let mut expected = [0, 1, 2, 3].map(|offset| (offset, "Abandoned".to_owned(), thread::current().id()));
        if halts {
            expected.swap(0, 1);
        }
        assert_eq!(outcomes.entries(), expected, "while a worker still has a record");
        // Until the workers have ended, and the processor with them.
        while release.send(()).is_ok() {
            thread::yield_now();
        }
        assert_eq!(outcomes.entries().len(), 4);
        assert!(applied.offsets.is_empty());
    }
}

#[test]
fn a_panic_of_who_is_called_back_goes_no_further() {
    let processor = function(|record, _| if *record == 3 { Err(ProcessError::retry("not yet")) } else { Ok(()) });
    let settings = ExecutorSettings { workers: 2, order: RecordOrder::Unordered, ..ExecutorSettings::default() };
    let mut executor = executor(settings, processor, vec![]);
    let (epoch, mut applied) = (assign(&mut executor), Applied::default());
    let calls = Log::default();
    let submission = |offset| {
        let tell = calls.clone();
        Submission::new(at(offset), offset).on_finished(move |outcome| {
            tell.push(format!("{outcome:?}"));
            panic!("at {offset}");
        })
    };
    for offset in 0..3 {
        executor.submit(epoch, submission(offset), Instant::now(), &mut applied).unwrap();
    }
    drive(&mut executor, &mut applied).unwrap();
    assert_eq!((executor.in_flight(), executor.running(), executor.next(epoch)), (0, 0, Some(at(3))));
    for offset in 3..5 {
        executor.submit(epoch, submission(offset), Instant::now(), &mut applied).unwrap();
    }
    let unwinding = thread::spawn(move || {
        let _dropped = executor;
        panic!("the owner panics");
    });
    assert!(unwinding.join().is_err());
    assert_eq!(calls.entries(), ["Done", "Done", "Done", "Abandoned", "Abandoned"]);
}

#[test]
fn one_bound_decides_whether_there_is_room() {
    let processor = function(|record, _| if *record == 0 { Err(ProcessError::retry("no")) } else { Ok(()) });
    let settings = ExecutorSettings { max_in_flight: 2, ..ExecutorSettings::default() };
    let mut executor = executor(settings, processor, vec![]);
    let (epoch, mut applied, now) = (assign(&mut executor), Applied::default(), Instant::now());
    submit_at(&mut executor, epoch, (0, "hot"), now, &mut applied);
    submit_at(&mut executor, epoch, (1, "hot"), now, &mut applied);
    let third = Submission::new(at(2), 2).with_key("other");
    let Submitted::Full(third) = executor.submit(epoch, third, now, &mut applied).unwrap() else { panic!("full") };
    assert_eq!((executor.parked(), executor.stats().full), (1, 1), "what is parked counts, too");
    drive(&mut executor, &mut applied).unwrap();
    assert!(matches!(executor.submit(epoch, third, now, &mut applied), Ok(Submitted::Taken)));
    assert_eq!(executor.next(epoch), Some(at(3)));
}

#[test]
fn drained_checkpoints_wait_and_holes_do_not() {
    for (checkpoint, expected) in [
        (CheckpointMode::Drain, None),
        (CheckpointMode::Holes, Some(PartitionPosition::new(at(0), [at(1)..at(3)]).unwrap())),
    ] {
        let processor = function(|record, _| if *record == 0 { Err(ProcessError::retry("no")) } else { Ok(()) });
        let settings = ExecutorSettings { checkpoint, retry: quick_retries(2), ..ExecutorSettings::default() };
        let mut executor = executor(settings, processor, vec![]);
        let (epoch, mut applied) = (assign(&mut executor), Applied::default());
        for record in [(0, "a"), (1, "b"), (2, "c")] {
            submit(&mut executor, epoch, record, &mut applied);
        }
        let positions = executor.positions().unwrap();
        assert_eq!(positions.as_ref().map(|positions| positions[0].1.position().clone()), expected);
        executor.committed(&positions.unwrap_or_default());
        assert_eq!(executor.is_dirty(), checkpoint == CheckpointMode::Drain);
        drive(&mut executor, &mut applied).unwrap();
        let positions = executor.positions().unwrap().unwrap();
        assert_eq!(positions[0].1.position(), &PartitionPosition::at(at(3)));
        executor.committed(&positions);
        assert!(!executor.is_dirty());
    }
}

#[test]
fn every_mode_keeps_what_was_finished_at_the_start_until_it_is_passed() {
    for (checkpoint, apply) in [
        (CheckpointMode::Drain, Apply::AsCompleted),
        (CheckpointMode::InOrder, Apply::InInputOrder),
        (CheckpointMode::Holes, Apply::AsCompleted),
    ] {
        let processor = function(|record, _| if *record == 0 { Err(ProcessError::retry("slow")) } else { Ok(()) });
        let settings = ExecutorSettings {
            checkpoint,
            apply,
            order: RecordOrder::Unordered,
            retry: quick_retries(2),
            ..ExecutorSettings::default()
        };
        let start = PartitionPosition::new(at(0), [at(1)..at(4), at(6)..at(8)]).unwrap();
        let mut executor = executor(settings, processor, vec![]);
        let (epoch, mut applied) = (executor.assign(partition(0), start.clone()), Applied::default());
        let committed =
            |executor: &Executor<_>| executor.positions().unwrap().map(|positions| positions[0].1.position().clone());
        assert_eq!(committed(&executor), Some(start.clone()), "{checkpoint:?}: nothing came yet");
        for offset in 0..5 {
            let submission = Submission::new(at(offset), offset);
            let submitted = executor.submit(epoch, submission, Instant::now(), &mut applied).unwrap();
            assert_eq!(matches!(submitted, Submitted::Finished(_)), (1..4).contains(&offset), "{checkpoint:?}");
        }
        // The record at 4 has ended: its effects are applied, or wait for those of 0.
        let slow = match checkpoint {
            CheckpointMode::Drain => None,
            CheckpointMode::InOrder => Some(start),
            CheckpointMode::Holes => Some(PartitionPosition::new(at(0), [at(1)..at(5), at(6)..at(8)]).unwrap()),
        };
        assert_eq!(committed(&executor), slow, "{checkpoint:?}");
        drive(&mut executor, &mut applied).unwrap();
        let done = PartitionPosition::new(at(5), [at(6)..at(8)]).unwrap();
        assert_eq!(committed(&executor), Some(done), "{checkpoint:?}");
        for offset in 5..9 {
            executor.submit(epoch, Submission::new(at(offset), offset), Instant::now(), &mut applied).unwrap();
        }
        assert_eq!(committed(&executor), Some(PartitionPosition::at(at(9))), "{checkpoint:?}");
        assert_eq!((applied.dead.len(), applied.offsets), (1, [4, 5, 8].map(|offset| (0, offset)).to_vec()));
    }
}

#[test]
fn a_caller_goes_on_and_learns_the_outcome_or_waits_for_it() {
    let together = Arc::new(Barrier::new(2));
    let meets = Arc::clone(&together);
    let processor = function(move |record, _| match record {
        // Two records run at once, or this never ends.
        0 | 1 => {
            meets.wait();
            Ok(())
        }
        2 => Err(ProcessError::skip("undecodable")),
        _ => Ok(()),
    });
    let settings = ExecutorSettings { workers: 2, order: RecordOrder::Unordered, ..ExecutorSettings::default() };
    let mut executor = executor(settings, processor, vec![]);
    let (epoch, mut applied) = (assign(&mut executor), Applied::default());
    let mut futures = Vec::new();
    for offset in 0..3 {
        let (on_finished, completion) = Completion::new();
        let submission = Submission::new(at(offset), offset).on_finished(on_finished);
        executor.submit(epoch, submission, Instant::now(), &mut applied).unwrap();
        assert!(completion.wait(Duration::ZERO).is_none(), "only the owner finishes records");
        futures.push(completion);
    }
    let others: Vec<_> = futures.into_iter().map(|future| thread::spawn(move || block_on(future))).collect();
    drive(&mut executor, &mut applied).unwrap();
    let outcomes: Vec<_> = others.into_iter().map(|other| other.join().unwrap()).collect();
    assert!(matches!(outcomes[..], [Outcome::Done, Outcome::Done, Outcome::DeadLettered(_)]), "{outcomes:?}");

    let deadline = Instant::now() + 10 * SECOND;
    let finished = executor.process(epoch, Submission::new(at(3), 3), Instant::now, deadline, &mut applied);
    assert!(matches!(finished.unwrap(), Waited::Finished));
    assert_eq!(executor.next(epoch), Some(at(4)));
}

#[test]
fn a_record_without_room_until_the_deadline_comes_back_and_one_in_flight_does_not() {
    let (release, processor) = gated();
    let settings = ExecutorSettings { workers: 2, max_in_flight: 2, ..ExecutorSettings::default() };
    let mut executor = executor(settings, processor, vec![]);
    let (epoch, mut applied) = (assign(&mut executor), Applied::default());
    let soon = || Instant::now() + Duration::from_millis(20);
    for offset in 0..2 {
        let taken = Submission::new(at(offset), offset).with_key("k");
        let waited = executor.process(epoch, taken, Instant::now, soon(), &mut applied).unwrap();
        assert!(matches!(waited, Waited::InFlight));
    }
    let (on_finished, completion) = Completion::new();
    let third = Submission::new(at(2), 2).with_key("k").on_finished(on_finished);
    let waited = executor.process(epoch, third, Instant::now, soon(), &mut applied).unwrap();
    let Waited::Full(third) = waited else { panic!("there was no room, but {waited:?}") };
    assert_eq!((third.offset(), executor.in_flight()), (at(2), 2));
    assert!(completion.wait(Duration::ZERO).is_none(), "nothing has become of it yet");

    (0..3).for_each(|_| release.send(()).unwrap());
    let deadline = Instant::now() + 10 * SECOND;
    let waited = executor.process(epoch, third, Instant::now, deadline, &mut applied).unwrap();
    assert!(matches!(waited, Waited::Finished));
    assert!(matches!(completion.wait(Duration::ZERO), Some(Outcome::Done)));
    assert_eq!((applied.outputs, executor.next(epoch)), (vec!["0".to_owned(), "1".into(), "2".into()], Some(at(3))));
}

#[test]
fn the_blocking_form_waits_for_its_own_record_and_no_other() {
    let processor = function(|record, _| if *record == 0 { Err(ProcessError::retry("not yet")) } else { Ok(()) });
    let retry = RetryPolicy::new(2).with_backoff(60 * SECOND, 60 * SECOND);
    let mut executor = executor(ExecutorSettings { retry, ..ExecutorSettings::default() }, processor, vec![]);
    let (epoch, mut applied) = (assign(&mut executor), Applied::default());
    submit(&mut executor, epoch, (0, "a"), &mut applied);
    let other = Submission::new(at(1), 1).with_key("b");
    let now = Instant::now();
    // The clock stands still: whoever waited for more than the record would never end.
    let waited = executor.process(epoch, other, || now, now, &mut applied).unwrap();
    assert!(matches!(waited, Waited::Finished));
    assert_eq!((executor.in_flight(), executor.next(epoch)), (1, Some(at(0))));
}

/// Polls a future on this thread, which sleeps in between.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(output) => return output,
            std::task::Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn a_restart_passes_over_what_the_committed_metadata_says() {
    let mut executor = executor(ExecutorSettings::default(), function(|_, _| Ok(())), vec![]);
    let mut applied = Applied::default();
    let position = PartitionPosition::new(at(0), [at(1)..at(3)]).unwrap();
    let metadata = position.to_metadata(MetadataLimit::default()).unwrap();
    let (epoch, ignored) = executor.assign_committed(partition(0), at(0), &metadata);
    assert_eq!(ignored, None);
    for offset in 0..4 {
        let submitted =
            executor.submit(epoch, Submission::new(at(offset), offset), Instant::now(), &mut applied).unwrap();
        assert_eq!(matches!(submitted, Submitted::Finished(_)), (1..3).contains(&offset));
    }
    assert_eq!(applied.offsets, [(0, 0), (0, 3)]);
    let (other, ignored) = executor.assign_committed(partition(1), at(1), &metadata);
    assert!(ignored.is_some());
    assert_eq!((executor.next(other), executor.stats().ranges_ignored), (Some(at(1)), 1));
}

#[test]
fn the_oldest_record_in_flight_has_the_age_of_the_lowest_of_its_partition() {
    let start = Instant::now();
    let failed = Log::default();
    let fails_once = function(move |record, _| {
        if record % 2 == 1 || failed.entries().contains(record) {
            return Ok(());
        }
        failed.push(*record);
        Err(ProcessError::retry("not yet"))
    });
    let settings = ExecutorSettings { retry: RetryPolicy::new(2).with_backoff(SECOND, SECOND), ..Default::default() };
    let mut executor = Executor::new(settings, fails_once, vec![]).unwrap();
    let epoch = assign(&mut executor);
    let mut log = Applied::default();
    assert_eq!(executor.oldest_since(), None);
    let times: Vec<_> = (0..4).map(|step| start + SECOND / 10 * step).collect();
    for (record, time) in [(0, "a"), (1, "b"), (2, "c"), (3, "d")].into_iter().zip(&times) {
        submit_at(&mut executor, epoch, record, *time, &mut log);
        assert_eq!(executor.oldest_since(), Some(start));
    }
    executor.poll(start + SECOND, &mut log).unwrap();
    assert_eq!(executor.oldest_since(), Some(times[2]), "the first is done, and the second was long before");
    executor.poll(times[2] + SECOND, &mut log).unwrap();
    assert_eq!(executor.oldest_since(), None);
}
