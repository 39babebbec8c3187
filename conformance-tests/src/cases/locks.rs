//! A directory has one owner: clause D2.

use std::{
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use kstate_api::{ErrorKind, ReadOnlyKeyValueStoreExt};

use crate::{
    Capability, CaseResult, Ctx, Violation,
    check::{drain, dump, ensure, ensure_eq, ensure_kind, rows},
    child::{tell, wait_to_be_killed},
    ctx::{at, changelog, committed},
};

/// "At once", on a busy machine.
const AT_ONCE: Duration = Duration::from_secs(3);

/// Fails unless the directory has an owner already, and the store says so at once.
#[track_caller]
fn ensure_locked(ctx: &Ctx, owner: &str) -> CaseResult {
    let asked = Instant::now();
    ensure_kind(ctx.open(), ErrorKind::Locked, &format!("an open while {owner} has the directory open"))?;
    ensure!(asked.elapsed() < AT_ONCE, "`Locked` came after {:?}, not at once", asked.elapsed());
    Ok(())
}

pub(crate) fn d2_a_second_open_in_the_process_is_locked(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    store.commit(&at(1))?;
    store.put(b"b", b"1")?;
    for _ in 0..3 {
        ensure_locked(ctx, "this process")?;
    }
    // The owner is not disturbed.
    store.commit(&at(2))?;
    ensure_eq!(dump(&*store)?, rows![b"a" => b"1", b"b" => b"1"], "the owner's rows after refused opens");
    ensure_locked(ctx, "this process")?;
    let store = ctx.reopen(store)?;
    ensure_eq!(dump(&*store)?, rows![b"a" => b"1", b"b" => b"1"], "the rows after the owner closed");
    if ctx.declares(Capability::ManagesOffsets) {
        ensure_eq!(committed(&*store)?, Some(2), "the offset after the owner closed");
    }
    Ok(())
}

pub(crate) fn d2_a_close_or_a_drop_frees_the_directory(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.close()?;
    // The closed store is still there, but it owns nothing.
    let second = ctx.open()?;
    ensure_locked(ctx, "a second store of this process")?;
    store.close()?;
    ensure_locked(ctx, "a second store of this process")?;
    drop(store);
    ensure_locked(ctx, "a second store of this process")?;
    drop(second);
    let third = ctx.open()?;
    third.put(b"a", b"1")?;
    third.commit(&at(1))?;
    Ok(())
}

pub(crate) fn d2_another_path_to_the_directory_is_locked(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    store.commit(&at(1))?;
    let mut paths = vec![ctx.directory().join("..").join("store"), ctx.root().join(".").join("store")];
    #[cfg(unix)]
    {
        let link = ctx.root().join("link");
        std::os::unix::fs::symlink(ctx.directory(), &link)?;
        paths.push(link);
    }
    for path in paths {
        let what = format!("an open of the same directory as {}", path.display());
        ensure_kind(ctx.open_at(&path), ErrorKind::Locked, &what)?;
    }
    let store = ctx.reopen(store)?;
    ensure_eq!(dump(&*store)?, rows![b"a" => b"1"], "the owner's rows after refused opens");
    Ok(())
}

/// A stress test: it finds a race with some probability, not always.
pub(crate) fn d2_of_several_opens_at_once_one_succeeds(ctx: &Ctx) -> CaseResult {
    const THREADS: usize = 4;
    for round in 0..6 {
        let start = Barrier::new(THREADS);
        let opened: Vec<_> = thread::scope(|scope| {
            let open = || {
                start.wait();
                ctx.open()
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(thread::ScopedJoinHandle::join).collect()
        });
        let mut owners = Vec::new();
        for result in opened {
            match result.map_err(|_| Violation::new("an open panicked"))? {
                Ok(store) => owners.push(store),
                Err(error) => ensure_eq!(error.kind(), ErrorKind::Locked, "the kind of the error of an open ({error})"),
            }
        }
        // Who comes while the owner leaves may succeed, but nobody leaves here.
        ensure_eq!(owners.len(), 1, "how many of {THREADS} opens at the same time succeeded");
        for store in owners {
            store.put(b"a", &[round])?;
            store.commit(&at(round.into()))?;
            store.close()?;
        }
    }
    Ok(())
}

pub(crate) fn d2_another_process_is_locked_out(ctx: &Ctx) -> CaseResult {
    if ctx.is_child() {
        let refused = ensure_locked(ctx, "the parent");
        tell(&refused.map_or_else(|violation| violation.to_string(), |()| "locked".into()));
        wait_to_be_killed();
    }
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    store.commit(&at(1))?;
    let child = ctx.spawn()?;
    ensure_eq!(child.next_message()?, "locked", "what another process met that opened the directory");
    store.put(b"b", b"1")?;
    store.commit(&at(2))?;
    child.kill()?;
    ensure_locked(ctx, "this process")?;
    let store = ctx.reopen(store)?;
    ensure_eq!(dump(&*store)?, rows![b"a" => b"1", b"b" => b"1"], "the rows after another process was refused");
    Ok(())
}

/// Fails unless another process is still locked out after `disturb`, in the process that owns the directory.
fn ensure_others_stay_out(ctx: &Ctx, disturb: impl Fn() -> CaseResult) -> CaseResult {
    if ctx.is_child() {
        let refused = ensure_locked(ctx, "the parent");
        tell(&refused.map_or_else(|violation| violation.to_string(), |()| "locked".into()));
        wait_to_be_killed();
    }
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    store.commit(&at(1))?;
    disturb()?;
    let child = ctx.spawn()?;
    ensure_eq!(child.next_message()?, "locked", "what another process met after that");
    child.kill()?;
    store.put(b"b", b"1")?;
    store.commit(&at(2))?;
    let store = ctx.reopen(store)?;
    ensure_eq!(dump(&*store)?, rows![b"a" => b"1", b"b" => b"1"], "the owner's rows after that");
    Ok(())
}

pub(crate) fn d2_a_refused_open_frees_nothing(ctx: &Ctx) -> CaseResult {
    ensure_others_stay_out(ctx, || ensure_locked(ctx, "this process"))
}

pub(crate) fn d2_reading_offsets_frees_nothing(ctx: &Ctx) -> CaseResult {
    ensure_others_stay_out(ctx, || match ctx.read_offsets(&[changelog()]) {
        // Whether it is refused is the store's to choose.
        Ok(_) => Ok(()),
        Err(error) => {
            ensure_eq!(error.kind(), ErrorKind::Locked, "the kind of the error of reading the offsets ({error})");
            Ok(())
        }
    })
}

pub(crate) fn ho_37_the_directory_of_a_killed_owner_is_free(ctx: &Ctx) -> CaseResult {
    if ctx.is_child() {
        let store = ctx.open()?;
        store.put(b"a", b"1")?;
        store.commit(&at(1))?;
        store.flush()?;
        tell("open");
        wait_to_be_killed();
    }
    for _ in 0..2 {
        let child = ctx.spawn()?;
        ensure_eq!(child.next_message()?, "open", "what the child said");
        ensure_locked(ctx, "another process")?;
        child.kill()?;
        let store = ctx.open()?;
        ensure_eq!(dump(&*store)?, rows![b"a" => b"1"], "the rows that the killed owner had flushed");
        if ctx.declares(Capability::ManagesOffsets) {
            ensure_eq!(committed(&*store)?, Some(1), "the offset that the killed owner had flushed");
        }
        store.close()?;
    }
    Ok(())
}

pub(crate) fn d2_two_directories_are_two_stores(ctx: &Ctx) -> CaseResult {
    let (one, two) = (ctx.open()?, ctx.open_another()?);
    one.put(b"a", b"1")?;
    one.put(b"b", b"1")?;
    one.commit(&at(1))?;
    ensure_eq!(dump(&*two)?, rows![], "the rows of the other store");
    ensure_eq!(committed(&*two)?, None, "the offset of the other store");
    two.put(b"a", b"2")?;
    two.commit(&at(2))?;
    two.put(b"b", b"2")?;
    let (cursor, snapshot) = (two.all()?, ctx.declares(Capability::Snapshots).then(|| two.snapshot()).transpose()?);
    one.wipe()?;
    let one = ctx.reopen(one)?;
    ensure_eq!(dump(&*one)?, rows![], "the rows of the store that was wiped");
    one.close()?;
    ensure_eq!(dump(&*two)?, rows![b"a" => b"2", b"b" => b"2"], "the rows of the store beside it");
    ensure_eq!(drain(&mut { cursor })?, rows![b"a" => b"2", b"b" => b"2"], "the rows of its cursor");
    if let Some(snapshot) = snapshot {
        ensure_eq!(dump(&snapshot)?, rows![b"a" => b"2"], "the rows of its snapshot");
    }
    if ctx.declares(Capability::ManagesOffsets) {
        ensure_eq!(committed(&*two)?, Some(2), "its offset");
    }
    Ok(())
}
