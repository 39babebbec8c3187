//! Calls from several threads: clauses O2 and R2. Stress tests: they find a race with some probability, not always.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use kstate_api::{
    Bytes, ChangelogOffsets, CursorExt, ErrorKind, KeyValueStore, Offset, ReadOnlyKeyValueStore,
    ReadOnlyKeyValueStoreExt, TopicPartition,
};

use crate::{
    Capability, CaseResult, Ctx, Violation,
    check::{dump, ensure, ensure_eq},
    ctx::{at, offset},
};

const COMMITS: u32 = 100;
/// How long a stress test goes on if commits are slow.
pub(crate) const LONGEST: Duration = Duration::from_secs(5);
/// How long a commit waits for the readers.
const PATIENCE: Duration = Duration::from_millis(50);

fn number(value: Option<&Bytes>) -> Result<u32, Violation> {
    let bytes = value.ok_or_else(|| Violation::new("a row vanished that is never deleted"))?;
    let bytes = bytes.as_ref().try_into().map_err(|_| Violation::new("a row has a value that nobody wrote"))?;
    Ok(u32::from_be_bytes(bytes))
}

pub(crate) fn joined(thread: thread::ScopedJoinHandle<'_, CaseResult>) -> CaseResult {
    thread.join().unwrap_or_else(|_| Err(Violation::new("a thread of the case panicked")))
}

/// Ends the other threads of a case, also if this one panics: a scope waits for them.
pub(crate) struct EndsOthers<'d>(pub(crate) &'d AtomicBool);

impl Drop for EndsOthers<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

pub(crate) fn r2_a_row_never_vanishes_during_a_commit(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    let keys: Vec<[u8; 1]> = (0..8).map(|key| [key]).collect();
    for key in &keys {
        store.put(key, &0_u32.to_be_bytes())?;
    }
    store.commit(&at(0))?;
    let done = AtomicBool::new(false);
    let rounds = [AtomicU32::new(0), AtomicU32::new(0)];
    thread::scope(|scope| {
        let getter = scope.spawn(|| {
            let mut latest = vec![0; keys.len()];
            while !done.load(Ordering::Acquire) {
                for (key, latest) in keys.iter().zip(&mut latest) {
                    let seen = number(store.get(key)?.as_ref())?;
                    ensure!(seen >= *latest, "a get shows {seen} after an earlier one showed {latest}");
                    *latest = seen;
                }
                rounds[0].fetch_add(1, Ordering::AcqRel);
            }
            Ok(())
        });
        let scanner = scope.spawn(|| {
            let mut latest = vec![0; keys.len()];
            while !done.load(Ordering::Acquire) {
                let rows = dump(&*store)?;
                ensure_eq!(rows.iter().map(|(key, _)| key.as_ref()).collect::<Vec<_>>(), keys, "the keys of a scan");
                for ((_, value), latest) in rows.iter().zip(&mut latest) {
                    let seen = number(Some(value))?;
                    ensure!(seen >= *latest, "a scan shows {seen} after an earlier one showed {latest}");
                    *latest = seen;
                }
                rounds[1].fetch_add(1, Ordering::AcqRel);
            }
            Ok(())
        });
        let ends_others = EndsOthers(&done);
        let started = Instant::now();
        let written = (1..=COMMITS).take_while(|_| started.elapsed() < LONGEST).try_for_each(|n| {
            keys.iter().try_for_each(|key| store.put(key, &n.to_be_bytes()))?;
            wait_for_a_round(&rounds);
            store.commit(&at(n.into()))
        });
        drop(ends_others);
        written?;
        joined(getter)?;
        joined(scanner)
    })
}

/// Waits until each reader has seen what there is now, unless one of them has ended.
fn wait_for_a_round(rounds: &[AtomicU32; 2]) {
    let now = rounds.each_ref().map(|round| round.load(Ordering::Acquire));
    let asked = Instant::now();
    // The round that is under way may have begun before; the next one has not.
    while rounds.iter().zip(now).any(|(round, now)| round.load(Ordering::Acquire) < now + 2) {
        if asked.elapsed() > PATIENCE {
            return;
        }
        thread::yield_now();
    }
}

pub(crate) fn o2_no_write_is_lost_between_commits(ctx: &Ctx) -> CaseResult {
    /// How many writes of each kind there are at least, and how many commits they have to meet, while there is time.
    const WRITES: u32 = 2000;
    const MET: u32 = 100;
    const MOST_WRITES: u32 = 20_000;
    /// The kind that deletes.
    const DELETES: u8 = 3;
    type Write = fn(&dyn KeyValueStore, &[u8]) -> kstate_api::Result<()>;
    // One kind after the other: each in a row of its own meets the commits at its own places.
    let kinds: [Write; 4] = [
        |store, key| store.put(key, b"1"),
        |store, key| store.put_all(&[(key, Some(b"1"))]),
        |store, key| store.put_if_absent(key, b"1").map(drop),
        |store, key| store.delete(key),
    ];
    let key = |kind: u8, n: u32| [&[kind][..], &n.to_be_bytes()].concat();
    let store = ctx.open()?;
    for n in 0..MOST_WRITES {
        store.put(&key(DELETES, n), b"1")?;
    }
    store.commit(&ChangelogOffsets::new())?;
    let done = AtomicBool::new(false);
    let commits = AtomicU32::new(0);
    let mut writes = [0_u32; 4];
    thread::scope(|scope| {
        let committer = scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                store.commit(&ChangelogOffsets::new())?;
                commits.fetch_add(1, Ordering::AcqRel);
            }
            Ok(())
        });
        let ends_others = EndsOthers(&done);
        let written = (0..).zip(kinds).zip(&mut writes).try_for_each(|((kind, write), writes)| {
            let (started, before) = (Instant::now(), commits.load(Ordering::Acquire));
            for n in 0..MOST_WRITES {
                let met_enough = n >= WRITES && commits.load(Ordering::Acquire) >= before + MET;
                if met_enough || started.elapsed() > LONGEST / 4 || committer.is_finished() {
                    break;
                }
                write(&*store, &key(kind, n))?;
                *writes += 1;
            }
            Ok::<(), kstate_api::Error>(())
        });
        drop(ends_others);
        written?;
        joined(committer)
    })?;
    store.commit(&at(0))?;
    let store = ctx.reopen_if_persistent(store)?;
    let rows = dump(&*store)?;
    for (kind, writes) in (0..).zip(writes) {
        let seen = rows.iter().filter(|(key, _)| key.first() == Some(&kind)).count();
        let expected = if kind == DELETES { MOST_WRITES - writes } else { writes };
        ensure_eq!(seen, expected as usize, "the rows of kind {kind} that were written while another thread committed");
    }
    Ok(())
}

/// Positions that are staged while another thread commits, each in a partition of its own, so that no later one hides
/// that it was lost.
pub(crate) fn o2_no_position_is_lost_between_commits(ctx: &Ctx) -> CaseResult {
    const POSITIONS: i32 = 300;
    let partition = |n: i32| TopicPartition::new("conformance-source", n);
    let store = ctx.open()?;
    let done = AtomicBool::new(false);
    let commits = AtomicU32::new(0);
    let mut staged = 0;
    thread::scope(|scope| {
        let committer = scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                store.commit(&ChangelogOffsets::new())?;
                commits.fetch_add(1, Ordering::AcqRel);
            }
            Ok(())
        });
        let ends_others = EndsOthers(&done);
        let started = Instant::now();
        let written = (0..POSITIONS).try_for_each(|n| {
            let met = commits.load(Ordering::Acquire);
            store.stage_position(&partition(n), offset(i64::from(n) + 1).into())?;
            staged = n + 1;
            // Three to a commit, each at another of its moments.
            while n % 3 == 0
                && commits.load(Ordering::Acquire) == met
                && started.elapsed() < LONGEST
                && !committer.is_finished()
            {
                thread::yield_now();
            }
            Ok::<(), kstate_api::Error>(())
        });
        drop(ends_others);
        written?;
        joined(committer)
    })?;
    store.commit(&at(0))?;
    let store = ctx.reopen_if_persistent(store)?;
    let position = store.position()?;
    for n in 0..staged {
        let seen = position.next(&partition(n)).map(Offset::get);
        ensure_eq!(seen, Some(i64::from(n) + 1), "position {n} that was staged while another thread committed");
    }
    Ok(())
}

pub(crate) fn r4_put_if_absent_has_one_winner(ctx: &Ctx) -> CaseResult {
    const KEYS: u32 = 300;
    let store = ctx.open()?;
    // Each thread tells which keys it found absent.
    let put_all = |name: u8, start: &Barrier| -> Result<Vec<u32>, Violation> {
        let mut won = Vec::new();
        start.wait();
        for key in 0..KEYS {
            match store.put_if_absent(&key.to_be_bytes(), &[name])? {
                None => won.push(key),
                Some(present) => ensure!(*present != [name], "a thread finds its own value before it put it"),
            }
        }
        Ok(won)
    };
    let start = Barrier::new(2);
    let (ours, theirs) = thread::scope(|scope| {
        let other = scope.spawn(|| put_all(1, &start));
        let ours = put_all(0, &start);
        let theirs = other.join().unwrap_or_else(|_| Err(Violation::new("a thread of the case panicked")));
        Ok::<_, Violation>((ours?, theirs?))
    })?;
    for key in 0..KEYS {
        let winners: Vec<u8> = [(0, &ours), (1, &theirs)]
            .into_iter()
            .filter_map(|(name, won)| won.contains(&key).then_some(name))
            .collect();
        ensure_eq!(winners.len(), 1, "how many of two threads put a value for an absent key");
        let value = store.get(&key.to_be_bytes())?;
        ensure_eq!(value.as_deref(), Some(&*winners), "the value of the key, and who says that it put it");
    }
    Ok(())
}

pub(crate) fn r3_a_close_ends_the_reads_of_others_with_an_error(ctx: &Ctx) -> CaseResult {
    const ROWS: usize = 500;
    for _ in 0..5 {
        let store = ctx.open()?;
        for n in 0..ROWS {
            store.put(&n.to_be_bytes(), b"1")?;
        }
        store.commit(&at(0))?;
        let snapshot = ctx.declares(Capability::Snapshots).then(|| store.snapshot()).transpose()?;
        let rounds = [AtomicU32::new(0), AtomicU32::new(0)];
        let closed = AtomicBool::new(false);
        // Reads everything again and again, until it is `Closed`.
        let read = |round: &AtomicU32, view: &dyn ReadOnlyKeyValueStore| -> CaseResult {
            loop {
                let is_closed = closed.load(Ordering::Acquire);
                let rows = view.all().and_then(|cursor| cursor.entries().collect::<Result<Vec<_>, _>>());
                match rows {
                    Ok(_) if is_closed => return Err(Violation::new("a scan shows rows that began after the close")),
                    Ok(rows) => ensure_eq!(rows.len(), ROWS, "the number of rows of a scan while the store is closed"),
                    Err(error) if error.kind() == ErrorKind::Closed => return Ok(()),
                    Err(error) => return Err(error.into()),
                }
                match view.contains_key(&0_usize.to_be_bytes()) {
                    Ok(there) => ensure!(there, "a row vanished while the store is closed"),
                    Err(error) => ensure_eq!(error.kind(), ErrorKind::Closed, "the kind of {error}"),
                }
                round.fetch_add(1, Ordering::AcqRel);
            }
        };
        thread::scope(|scope| {
            let [of_store, of_snapshot] = &rounds;
            let store = &store;
            let reader = scope.spawn(|| read(of_store, &**store));
            let other = scope.spawn(|| match &snapshot {
                Some(snapshot) => read(of_snapshot, snapshot),
                None => read(of_snapshot, &**store),
            });
            wait_for_a_round(&rounds);
            let answer = store.close();
            closed.store(true, Ordering::Release);
            answer?;
            joined(reader)?;
            joined(other)
        })?;
    }
    Ok(())
}
