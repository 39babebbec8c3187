//! Changelog offsets: clauses O1 to O4.

use kstate_api::{ChangelogOffsets, MAX_NAME_LEN, Offset, StateStore, TopicPartition};

use crate::{
    Capability, CaseResult, Ctx,
    check::{dump, ensure, ensure_eq, rows},
    ctx::{at, changelog, committed, offset, other_changelog, put_at, source},
};

/// The offsets of both partitions that a store is opened with.
fn both(store: &dyn StateStore) -> kstate_api::Result<(Option<i64>, Option<i64>)> {
    let number = |partition: TopicPartition| Ok(store.committed_offset(&partition)?.map(Offset::get));
    Ok((number(changelog())?, number(other_changelog())?))
}

pub(crate) fn o1_a_restore_resumes_after_the_committed_offset(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.restore(&put_at(b"a", b"1", 41))?;
    let next = store.committed_offset(&changelog())?.map(Offset::next);
    ensure_eq!(next, Offset::new(42), "where a restore goes on after the record at offset 41");
    store.restore(&put_at(b"a", b"2", 42))?;
    ensure_eq!(committed(&store)?, Some(42), "the committed offset after the record at offset 42");
    Ok(())
}

pub(crate) fn o2_a_commit_of_no_offsets_keeps_them(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    store.commit(&at(20))?;
    store.put(b"a", b"2")?;
    store.commit(&ChangelogOffsets::new())?;
    ensure_eq!(committed(&store)?, Some(20), "the offset after a commit of records and no offset");
    store.commit(&ChangelogOffsets::new())?;
    ensure_eq!(committed(&store)?, Some(20), "the offset after a commit of nothing at all");
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(committed(&store)?, Some(20), "the offset in the end");
    ensure_eq!(dump(&store)?, rows![b"a" => b"2"], "the rows that were committed without an offset");
    Ok(())
}

pub(crate) fn o2_a_partition_that_is_not_named_keeps_its_offset(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.commit(&at(10).with(other_changelog(), offset(70)))?;
    store.commit(&at(11))?;
    ensure_eq!(both(&store)?, (Some(11), Some(70)), "the offsets after a commit of the first alone");
    store.commit(&ChangelogOffsets::new().with(other_changelog(), offset(71)))?;
    ensure_eq!(both(&store)?, (Some(11), Some(71)), "the offsets after a commit of the second alone");
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(both(&store)?, (Some(11), Some(71)), "the offsets in the end");
    Ok(())
}

pub(crate) fn o2_offsets_are_committed_without_records(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.commit(&at(3))?;
    ensure_eq!(committed(&store)?, Some(3), "the offset of a commit without records");
    store.put(b"a", b"1")?;
    store.commit(&at(4))?;
    store.commit(&at(9))?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(committed(&store)?, Some(9), "the offset of the last commit, which had no records");
    ensure_eq!(dump(&store)?, rows![b"a" => b"1"], "the rows");
    Ok(())
}

pub(crate) fn o2_nothing_of_a_commit_is_seen_before_it(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    store.stage_position(&source(), offset(1).into())?;
    store.commit(&at(0))?;
    store.put(b"a", b"2")?;
    store.put(b"b", b"2")?;
    store.stage_position(&source(), offset(2).into())?;
    let snapshot = store.snapshot()?;
    ensure_eq!(dump(&snapshot)?, rows![b"a" => b"1"], "the rows before the second commit");
    ensure_eq!(committed(&store)?, Some(0), "the offset before the second commit");
    ensure_eq!(store.position()?.next(&source()), Some(offset(1)), "the position before the second commit");
    store.commit(&at(1))?;
    let snapshot = store.snapshot()?;
    ensure_eq!(dump(&snapshot)?, rows![b"a" => b"2", b"b" => b"2"], "the rows after the second commit");
    ensure_eq!(committed(&store)?, Some(1), "the offset after the second commit");
    ensure_eq!(store.position()?.next(&source()), Some(offset(2)), "the position after the second commit");
    Ok(())
}

pub(crate) fn o3_a_lower_offset_is_stored_as_given(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.commit(&at(9000))?;
    store.commit(&at(120))?;
    ensure_eq!(committed(&store)?, Some(120), "the committed offset after 9000 and then 120 were committed");
    store.restore(&put_at(b"a", b"1", 7))?;
    ensure_eq!(committed(&store)?, Some(7), "the committed offset after 120 was committed and then 7 restored");
    ensure_eq!(dump(&store)?, rows![b"a" => b"1"], "the rows of that restore");
    store.put(b"a", b"2")?;
    store.commit(&at(6))?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(committed(&store)?, Some(6), "the committed offset in the end");
    ensure_eq!(dump(&store)?, rows![b"a" => b"2"], "the rows that were committed with a lower offset");
    Ok(())
}

pub(crate) fn o3_an_offset_can_be_committed_again(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    store.commit(&at(20))?;
    store.put(b"a", b"2")?;
    store.stage_position(&source(), offset(5).into())?;
    store.commit(&at(20))?;
    ensure_eq!(dump(&store)?, rows![b"a" => b"2"], "the rows after a second commit of offset 20");
    ensure_eq!(store.uncommitted_bytes(), 0, "the uncommitted bytes after that");
    store.restore(&put_at(b"b", b"3", 20))?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(committed(&store)?, Some(20), "the offset in the end");
    ensure_eq!(store.position()?.next(&source()), Some(offset(5)), "the position in the end");
    ensure_eq!(dump(&store)?, rows![b"a" => b"2", b"b" => b"3"], "the rows in the end");
    Ok(())
}

pub(crate) fn o3_any_offset_is_stored_as_given(ctx: &Ctx) -> CaseResult {
    let mut store = ctx.open()?;
    // Every byte differs, so a turned or a cut number shows.
    for value in [0, 1, 127, 128, 255, 256, 65_535, 1 << 31, 0x0102_0304_0506_0708, i64::MAX - 1, i64::MAX, 0] {
        store.commit(&at(value))?;
        ensure_eq!(committed(&store)?, Some(value), "the committed offset after {value} was committed");
        store = ctx.reopen_if_persistent(store)?;
        ensure_eq!(committed(&store)?, Some(value), "the committed offset in the end, {value} was committed");
        store.wipe()?;
        store.restore(&put_at(b"a", b"1", value))?;
        ensure_eq!(committed(&store)?, Some(value), "the committed offset after {value} was restored");
    }
    Ok(())
}

pub(crate) fn ho_04_an_offset_that_is_too_high_can_be_repaired(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"a", b"bad")?;
    store.commit(&at(9000))?;
    store.wipe()?;
    store.restore(&put_at(b"a", b"1", 119))?;
    store.commit(&at(120))?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(committed(&store)?, Some(120), "the offset after 9000, a wipe, a restore and a commit of 120");
    ensure_eq!(dump(&store)?, rows![b"a" => b"1"], "the rows after the wipe and the restore");
    Ok(())
}

pub(crate) fn o4_nothing_is_committed_at_first(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    ensure_eq!(both(&store)?, (None, None), "the offsets of a new store");
    ensure_eq!(store.durable_offset(&changelog())?, None, "the durable offset of a new store");
    ensure!(store.position()?.is_empty(), "a new store has the position {:?}", store.position()?);
    ensure_eq!(dump(&store)?, rows![], "the rows of a new store");
    let store = ctx.reopen(store)?;
    ensure_eq!(both(&store)?, (None, None), "the offsets of a new store that was closed and opened again");
    store.put(b"a", b"1")?;
    store.commit(&ChangelogOffsets::new())?;
    ensure_eq!(both(&store)?, (None, None), "the offsets after a commit without any");
    Ok(())
}

pub(crate) fn o4_each_partition_has_its_own_offset(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.commit(&at(5))?;
    ensure_eq!(both(&store)?, (Some(5), None), "the offsets after a commit of the first partition's alone");
    ensure_eq!(store.durable_offset(&other_changelog())?, None, "the durable offset of the second partition");
    // Names that run together are different partitions all the same.
    let longest = "t".repeat(MAX_NAME_LEN);
    let as_long = format!("{}u", "t".repeat(MAX_NAME_LEN - 1));
    let names = [
        ("cl-1", 1),
        ("cl", 11),
        ("cl-1-1", 1),
        ("cl", 1),
        ("CL", 1),
        ("cl", 257),
        ("cl", 65_537),
        (&as_long, 0),
        ("a.b", 0),
        ("a_b", 0),
        (&longest, i32::MAX),
        (&longest, 0),
    ];
    let tricky = names.map(|(topic, number)| TopicPartition::new(topic, number));
    store.close()?;
    drop(store);
    let store = ctx.open_as_owner_of(&tricky)?;
    for (partition, value) in tricky.iter().zip(100..) {
        ensure_eq!(store.committed_offset(partition)?, None, "the offset of {partition} before it has one");
        store.stage_position(partition, offset(value + 1000).into())?;
        store.commit(&ChangelogOffsets::new().with(partition.clone(), offset(value)))?;
    }
    let store = if ctx.declares(Capability::Persistent) {
        store.close()?;
        drop(store);
        ctx.open_as_owner_of(&tricky)?
    } else {
        store
    };
    let position = store.position()?;
    for (partition, value) in tricky.iter().zip(100..) {
        ensure_eq!(store.committed_offset(partition)?, Some(offset(value)), "the offset of {partition}");
        ensure_eq!(position.next(partition), Some(offset(value + 1000)), "the position of {partition}");
    }
    Ok(())
}

pub(crate) fn o4_a_wipe_leaves_no_offset(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    store.stage_position(&source(), offset(5).into())?;
    store.commit(&at(5).with(other_changelog(), offset(6)))?;
    store.flush()?;
    store.wipe()?;
    ensure_eq!(both(&store)?, (None, None), "the offsets after a wipe");
    ensure_eq!(store.durable_offset(&changelog())?, None, "the durable offset right after a wipe");
    ensure!(store.position()?.is_empty(), "after a wipe there is the position {:?}", store.position()?);
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(both(&store)?, (None, None), "the offsets after a wipe, in the end");
    ensure_eq!(store.durable_offset(&changelog())?, None, "the durable offset after a wipe");
    ensure!(store.position()?.is_empty(), "after a wipe there is the position {:?}, in the end", store.position()?);
    Ok(())
}

pub(crate) fn o4_a_volatile_store_reopens_empty(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    store.stage_position(&source(), offset(5).into())?;
    store.commit(&at(5))?;
    store.flush()?;
    ensure_eq!(store.durable_offset(&changelog())?, None, "what a store that is not persistent calls durable");
    let store = ctx.reopen(store)?;
    ensure_eq!(both(&store)?, (None, None), "the offsets of a store that is not persistent after a reopen");
    ensure!(store.position()?.is_empty(), "a position survived the reopen of a store that is not persistent");
    ensure_eq!(dump(&store)?, rows![], "the rows of a store that is not persistent after a reopen");
    Ok(())
}

pub(crate) fn o4_a_store_that_does_not_manage_offsets_has_none(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    store.commit(&at(5))?;
    ensure_eq!(both(&store)?, (None, None), "the offsets of a store that does not manage offsets");
    ensure_eq!(store.durable_offset(&changelog())?, None, "the durable offset of a store that manages none");
    Ok(())
}

pub(crate) fn o4_forgetting_offsets_keeps_the_records(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    store.commit(&at(5))?;
    store.put(b"b", b"2")?;
    store.stage_position(&source(), offset(9).into())?;
    store.forget_offsets()?;
    ensure_eq!(both(&store)?, (None, None), "the offsets after they were forgotten");
    ensure_eq!(dump(&store)?, rows![b"a" => b"1", b"b" => b"2"], "the rows, committed and staged");
    store.commit(&ChangelogOffsets::new())?;
    ensure_eq!(both(&store)?, (None, None), "the offsets after a commit without any");
    ensure_eq!(store.position()?.next(&source()), Some(offset(9)), "the position that was staged all the while");
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(dump(&store)?, rows![b"a" => b"1", b"b" => b"2"], "the rows in the end");
    Ok(())
}

pub(crate) fn ho_22_forgotten_offsets_do_not_come_back(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.stage_position(&source(), offset(3).into())?;
    store.commit(&at(900).with(other_changelog(), offset(901)))?;
    store.flush()?;
    store.forget_offsets()?;
    ensure_eq!(both(&store)?, (None, None), "the offsets after the reset");
    ensure!(store.position()?.is_empty(), "after the reset there is the position {:?}", store.position()?);
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(both(&store)?, (None, None), "the offsets after the reset, in the end");
    ensure_eq!(store.durable_offset(&changelog())?, None, "the durable offset after the reset");
    ensure!(store.position()?.is_empty(), "after the reset there is the position {:?}, in the end", store.position()?);
    store.commit(&at(5000))?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(both(&store)?, (Some(5000), None), "the offsets after the first commit since the reset");
    Ok(())
}

pub(crate) fn ho_15_an_offset_is_stored_only_when_it_is_committed(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"a", b"0")?;
    store.commit(&at(4))?;
    // The changelog record at offset 5 is sent, but nobody has acknowledged it.
    store.put(b"a", b"1")?;
    store.flush()?;
    ensure_eq!(committed(&store)?, Some(4), "the offset while record 5 is not acknowledged");
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(committed(&store)?, Some(4), "the offset in the end");
    if ctx.declares(Capability::Persistent) {
        ensure_eq!(dump(&store)?, rows![b"a" => b"0"], "the rows of offset 4");
    }
    Ok(())
}
