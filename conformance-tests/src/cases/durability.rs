//! What survives a clean close, and what the store says of power losses: clause O6. For kills see the crash cases.

use kstate_api::{ChangelogOffsets, Offset};

use crate::{
    CaseResult, Ctx,
    check::{dump, ensure, ensure_eq, rows},
    ctx::{at, changelog, committed, foreign_changelog, offset, other_changelog, source},
    workload::State,
};

pub(crate) fn o6_reopening_shows_the_last_commit(ctx: &Ctx) -> CaseResult {
    let mut state = State::new();
    for _ in 0..6 {
        let store = ctx.open()?;
        state.ensure_is(&*store)?;
        for _ in 0..5 {
            state.commit_next(&*store)?;
        }
        store.put(b"not committed", b"1")?;
        store.close()?;
    }
    state.ensure_is(&*ctx.open()?)
}

pub(crate) fn o6_dropping_a_store_keeps_its_commits(ctx: &Ctx) -> CaseResult {
    let mut state = State::new();
    for _ in 0..3 {
        let store = ctx.open()?;
        state.ensure_is(&*store)?;
        state.commit_next(&*store)?;
        drop(store);
    }
    state.ensure_is(&*ctx.open()?)
}

pub(crate) fn o6_a_flush_makes_every_commit_durable(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    for value in [7, 8, 3] {
        store.put(b"a", b"1")?;
        store.commit(&at(value))?;
        store.flush()?;
        let durable = store.durable_offset(&changelog())?.map(Offset::get);
        ensure_eq!(durable, Some(value), "the durable offset after {value} was committed and flushed");
        ensure_eq!(store.durable_offset(&other_changelog())?, None, "the durable offset of a partition without any");
    }
    store.commit(&ChangelogOffsets::new().with(other_changelog(), offset(90)))?;
    store.flush()?;
    ensure_eq!(
        store.durable_offset(&other_changelog())?,
        Some(offset(90)),
        "the durable offset of the other partition"
    );
    ensure_eq!(store.durable_offset(&changelog())?, Some(offset(3)), "the durable offset that did not move");
    let store = ctx.reopen(store)?;
    ensure_eq!(store.durable_offset(&changelog())?, Some(offset(3)), "the durable offset after a clean close");
    store.wipe()?;
    store.flush()?;
    ensure_eq!(store.durable_offset(&changelog())?, None, "the durable offset after a wipe and a flush");
    Ok(())
}

pub(crate) fn o6_the_durable_offset_is_not_ahead(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    for value in 0..20 {
        store.put(b"a", b"1")?;
        ensure!(
            store.durable_offset(&changelog())? <= store.committed_offset(&changelog())?,
            "the durable offset {:?} is ahead of the committed one {:?}",
            store.durable_offset(&changelog())?,
            store.committed_offset(&changelog())?
        );
        store.commit(&at(value))?;
        ensure!(
            store.durable_offset(&changelog())? <= Some(offset(value)),
            "the durable offset {:?} is ahead of the committed one {value}",
            store.durable_offset(&changelog())?
        );
    }
    Ok(())
}

pub(crate) fn o6_a_synced_commit_is_durable_at_once(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    for value in [5, 6, 2] {
        store.put(b"a", b"1")?;
        store.commit(&at(value))?;
        let durable = store.durable_offset(&changelog())?.map(Offset::get);
        ensure_eq!(durable, Some(value), "the durable offset right after the commit of {value}");
    }
    Ok(())
}

pub(crate) fn o6_offsets_are_read_from_a_closed_store(ctx: &Ctx) -> CaseResult {
    let store = ctx.open_as_owner_of(&[changelog(), other_changelog(), foreign_changelog()])?;
    store.put(b"a", b"1")?;
    store.stage_position(&source(), offset(1).into())?;
    store.commit(&at(41).with(foreign_changelog(), offset(77)))?;
    store.close()?;
    drop(store);
    let asked = [changelog(), other_changelog()];
    ensure_eq!(ctx.read_offsets(&asked)?, at(41), "the offsets of the two partitions asked for");
    let store = ctx.open()?;
    ensure_eq!(committed(&store)?, Some(41), "the offset after the offsets had been read");
    ensure_eq!(dump(&store)?, rows![b"a" => b"1"], "the rows after the offsets had been read");
    store.forget_offsets()?;
    store.close()?;
    drop(store);
    ensure_eq!(ctx.read_offsets(&asked)?, ChangelogOffsets::new(), "the offsets after they were forgotten");
    Ok(())
}

pub(crate) fn o6_reading_offsets_makes_no_store(ctx: &Ctx) -> CaseResult {
    let offsets = ctx.read_offsets(&[changelog()])?;
    ensure_eq!(offsets, ChangelogOffsets::new(), "the offsets where there is no store");
    ensure!(!ctx.directory().exists(), "reading the offsets where there is no store made a directory");
    std::fs::create_dir(ctx.directory())?;
    let offsets = ctx.read_offsets(&[changelog()])?;
    ensure_eq!(offsets, ChangelogOffsets::new(), "the offsets in an empty directory");
    let left = std::fs::read_dir(ctx.directory())?.count();
    ensure_eq!(left, 0, "the number of files that reading the offsets left in an empty directory");
    ctx.open()?.commit(&at(1))?;
    Ok(())
}
