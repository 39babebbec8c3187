//! The source position, which is committed with the records: clause O2.

use kstate_api::{ChangelogOffsets, Offset, PartitionPosition, StateStore, TopicPartition};

use crate::{
    Capability, CaseResult, Ctx,
    check::{dump, ensure_eq, rows},
    ctx::{at, committed, offset, other_source, put_at, source},
};

fn next(store: &dyn StateStore, partition: &TopicPartition) -> kstate_api::Result<Option<i64>> {
    Ok(store.position()?.next(partition).map(Offset::get))
}

pub(crate) fn o2_a_position_is_committed_with_the_records(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.stage_position(&source(), offset(8).into())?;
    ensure_eq!(next(&store, &source())?, None, "the committed position while 8 is staged");
    store.commit(&ChangelogOffsets::new())?;
    ensure_eq!(next(&store, &source())?, Some(8), "the position after its commit");
    store.stage_position(&source(), offset(9).into())?;
    store.stage_position(&source(), offset(7).into())?;
    store.commit(&ChangelogOffsets::new())?;
    ensure_eq!(next(&store, &source())?, Some(7), "the position after 9 and then 7 were staged, and committed");
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(next(&store, &source())?, Some(7), "the position in the end");
    Ok(())
}

pub(crate) fn o2_a_position_keeps_the_partitions_that_are_not_staged(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.stage_position(&source(), offset(8).into())?;
    store.stage_position(&other_source(), offset(80).into())?;
    store.commit(&at(0))?;
    store.stage_position(&other_source(), offset(81).into())?;
    store.commit(&at(1))?;
    ensure_eq!(next(&store, &source())?, Some(8), "the position of the partition that did not move");
    ensure_eq!(next(&store, &other_source())?, Some(81), "the position of the partition that moved");
    store.put(b"a", b"1")?;
    store.commit(&at(2))?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(next(&store, &source())?, Some(8), "the first position after a commit without any");
    ensure_eq!(next(&store, &other_source())?, Some(81), "the second position after a commit without any");
    Ok(())
}

pub(crate) fn o2_a_restored_position_is_taken_along(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    let mut batch = put_at(b"a", b"1", 5);
    batch.set_position(source(), offset(50));
    store.restore(&batch)?;
    ensure_eq!(next(&store, &source())?, Some(50), "the position that a restored batch had");
    store.restore(&put_at(b"a", b"2", 6))?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(next(&store, &source())?, Some(50), "the position after a restored batch without one");
    Ok(())
}

pub(crate) fn o2_finished_ranges_are_stored_as_given(ctx: &Ctx) -> CaseResult {
    let position = |next: i64, ranges: &[(i64, i64)]| {
        let mut position = PartitionPosition::at(offset(next));
        for (start, end) in ranges {
            position.finish(offset(*start)..offset(*end));
        }
        position
    };
    let mut store = ctx.open()?;
    for stored in [
        position(5, &[(6, 8), (9, 10)]),
        position(5, &[(6, 12)]),
        position(1 << 40, &[((1 << 40) + 1, (1 << 40) + 2), (i64::MAX - 1, i64::MAX)]),
        position(5, &[(20, 21)]),
        position(12, &[]),
    ] {
        store.stage_position(&source(), stored.clone())?;
        store.stage_position(&other_source(), offset(3).into())?;
        store.commit(&ChangelogOffsets::new())?;
        store = ctx.reopen_if_persistent(store)?;
        ensure_eq!(store.position()?.get(&source()), Some(&stored), "the position after it was committed");
        ensure_eq!(next(&store, &other_source())?, Some(3), "the position of the partition without ranges");
        let mut batch = put_at(b"a", b"1", 0);
        batch.set_position(source(), stored.clone());
        store.wipe()?;
        store.restore(&batch)?;
        store = ctx.reopen_if_persistent(store)?;
        ensure_eq!(store.position()?.get(&source()), Some(&stored), "the position after it was restored");
    }
    Ok(())
}

pub(crate) fn ho_17_the_position_moves_with_the_offsets(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    store.stage_position(&source(), offset(8).into())?;
    store.commit(&at(20))?;
    store.put(b"a", b"2")?;
    store.stage_position(&source(), offset(9).into())?;
    store.rollback()?;
    store.commit(&ChangelogOffsets::new())?;
    store.put(b"b", b"1")?;
    store.commit(&ChangelogOffsets::new())?;
    ensure_eq!(next(&store, &source())?, Some(8), "the position after 9 was rolled back");
    store.stage_position(&source(), offset(10).into())?;
    let store = if ctx.declares(Capability::Persistent) {
        ctx.reopen(store)?
    } else {
        store.rollback()?;
        store
    };
    ensure_eq!(next(&store, &source())?, Some(8), "the position that belongs to offset 20");
    ensure_eq!(committed(&store)?, Some(20), "the offset that belongs to position 8");
    ensure_eq!(dump(&store)?, rows![b"a" => b"1", b"b" => b"1"], "the rows that belong to position 8");
    Ok(())
}

pub(crate) fn o2_any_position_is_stored_as_given(ctx: &Ctx) -> CaseResult {
    let mut store = ctx.open()?;
    for value in [0, 1, 255, 256, 65_536, 1 << 31, 1 << 32, 0x0102_0304_0506_0708, i64::MAX - 1, i64::MAX, 0] {
        store.stage_position(&source(), offset(value).into())?;
        store.commit(&ChangelogOffsets::new())?;
        ensure_eq!(next(&store, &source())?, Some(value), "the position after {value} was committed");
        store = ctx.reopen_if_persistent(store)?;
        ensure_eq!(next(&store, &source())?, Some(value), "the position in the end, {value} was committed");
        let mut batch = put_at(b"a", b"1", 0);
        batch.set_position(source(), offset(value));
        store.wipe()?;
        store.restore(&batch)?;
        ensure_eq!(next(&store, &source())?, Some(value), "the position after {value} was restored");
    }
    Ok(())
}
