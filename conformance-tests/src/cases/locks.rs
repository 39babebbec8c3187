//! A directory has one owner: clause D2.

use std::time::{Duration, Instant};

use kstate_api::{ErrorKind, ReadOnlyKeyValueStoreExt};

use crate::{
    Capability, CaseResult, Ctx,
    check::{drain, dump, ensure, ensure_eq, ensure_kind, rows},
    child::{tell, wait_to_be_killed},
    ctx::{at, committed},
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
