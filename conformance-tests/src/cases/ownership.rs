//! The changelog partitions that a store owns, and others: clause O5.

use kstate_api::{ChangelogOffsets, CommitOutcome, ErrorKind, Offset, TopicPartition};

use crate::{
    Capability, CaseResult, Ctx,
    check::{dump, ensure, ensure_eq, ensure_kind, rows},
    ctx::{at, changelog, committed, foreign_changelog, offset, other_changelog, put_at},
};

pub(crate) fn o5_a_commit_of_a_foreign_partition_is_refused_whole(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    store.commit(&at(10))?;
    store.put(b"a", b"2")?;
    let both_kinds = at(11).with(foreign_changelog(), offset(77));
    let error = ensure_kind(store.commit(&both_kinds), ErrorKind::InvalidArgument, "a commit of a foreign partition")?;
    ensure_eq!(error.commit_outcome(), Some(CommitOutcome::NotApplied), "the outcome of that commit");
    ensure_eq!(committed(&store)?, Some(10), "the offset of the partition that is owned");
    ensure_eq!(store.committed_offset(&foreign_changelog())?, None, "the offset of the foreign partition");
    if ctx.declares(Capability::Snapshots) {
        ensure_eq!(dump(&store.snapshot()?)?, rows![b"a" => b"1"], "the committed rows");
    }
    let store = ctx.reopen(store)?;
    if ctx.declares(Capability::Persistent) {
        ensure_eq!(committed(&store)?, Some(10), "the offset after a reopen");
        ensure_eq!(dump(&store)?, rows![b"a" => b"1"], "the rows after a reopen");
    }
    Ok(())
}

pub(crate) fn o5_a_restore_of_a_foreign_partition_is_refused_whole(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    let mut batch = put_at(b"a", b"1", 10);
    batch.set_offset(foreign_changelog(), offset(77));
    let error = ensure_kind(store.restore(&batch), ErrorKind::InvalidArgument, "a restore of a foreign partition")?;
    ensure_eq!(error.commit_outcome(), Some(CommitOutcome::NotApplied), "the outcome of that restore");
    ensure_eq!(committed(&store)?, None, "the offset of the partition that is owned");
    ensure_eq!(dump(&store)?, rows![], "the rows");
    Ok(())
}

pub(crate) fn o5_a_store_knows_its_partitions(ctx: &Ctx) -> CaseResult {
    let partitions = [other_changelog(), changelog()];
    let store = ctx.open_as_owner_of(&partitions)?;
    ensure_eq!(store.changelog_partitions(), &partitions, "the partitions that the store was opened with");
    ensure!(kstate_api::validate_name("store", store.name()).is_ok(), "`{}` is no name of a store", store.name());
    store.close()?;
    drop(store);
    let store = ctx.open_as_owner_of(&[])?;
    ensure_eq!(store.changelog_partitions(), &[], "the partitions of a store without a changelog");
    ensure_kind(store.commit(&at(1)), ErrorKind::InvalidArgument, "a commit of an offset without a changelog")?;
    store.put(b"a", b"1")?;
    store.commit(&ChangelogOffsets::new())?;
    Ok(())
}

pub(crate) fn o5_a_partition_that_kafka_could_not_have_is_refused(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    for (topic, number) in [("a/b", 0), ("", 0), ("..", 0), ("cl", -1), ("my topic", 0)] {
        let partition = TopicPartition::new(topic, number);
        let position = store.stage_position(&partition, offset(1).into());
        ensure_kind(position, ErrorKind::InvalidArgument, &format!("a position of partition {number} of `{topic}`"))?;
    }
    for (topic, number) in [("a/b", 0), ("cl", -1)] {
        let mut batch = put_at(b"a", b"1", 3);
        batch.set_position(TopicPartition::new(topic, number), offset(1));
        let what = format!("a restored position of partition {number} of `{topic}`");
        let error = ensure_kind(store.restore(&batch), ErrorKind::InvalidArgument, &what)?;
        ensure_eq!(error.commit_outcome(), Some(CommitOutcome::NotApplied), "the outcome of that restore");
        ensure_eq!(dump(&store)?, rows![], "the rows after {what}");
    }
    store.commit(&ChangelogOffsets::new())?;
    ensure!(store.position()?.is_empty(), "a refused position was committed: {:?}", store.position()?);
    store.close()?;
    drop(store);
    for (topic, number) in [("a/b", 0), ("", 0), ("..", 0), ("cl", -1), ("my topic", 0)] {
        let opened = ctx.open_as_owner_of(&[changelog(), TopicPartition::new(topic, number)]);
        ensure_kind(opened, ErrorKind::InvalidArgument, &format!("opening with partition {number} of `{topic}`"))?;
    }
    ctx.open()?;
    Ok(())
}

pub(crate) fn ho_05_a_foreign_offset_is_not_found(ctx: &Ctx) -> CaseResult {
    let store = ctx.open_as_owner_of(&[changelog(), foreign_changelog()])?;
    store.put(b"a", b"1")?;
    store.commit(&at(10).with(foreign_changelog(), offset(77)))?;
    store.close()?;
    drop(store);
    let store = ctx.open_as_owner_of(&[changelog()])?;
    ensure_eq!(store.committed_offset(&foreign_changelog())?, None, "the stored offset of a foreign partition");
    ensure_eq!(store.durable_offset(&foreign_changelog())?, None, "the durable offset of a foreign partition");
    if ctx.declares(Capability::Snapshots) {
        let found = store.snapshot()?.committed_offset(&foreign_changelog())?;
        ensure_eq!(found, None, "the offset of a foreign partition in a snapshot");
    }
    ensure_eq!(committed(&store)?, Some(10), "the offset of the partition that is owned");
    Ok(())
}

pub(crate) fn o5_a_store_reopens_with_other_partitions(ctx: &Ctx) -> CaseResult {
    let (first, second, third) = (changelog(), other_changelog(), foreign_changelog());
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    store.commit(&at(5).with(second.clone(), offset(6)))?;
    store.close()?;
    drop(store);
    // Each with what is expected of it.
    let openings = [
        vec![(&second, Some(6)), (&first, Some(5))],
        vec![(&third, None), (&first, Some(5)), (&second, Some(6))],
        vec![(&second, Some(6))],
        vec![(&first, Some(5)), (&second, Some(6))],
    ];
    for opening in openings {
        let partitions: Vec<TopicPartition> = opening.iter().map(|(partition, _)| (*partition).clone()).collect();
        let store = ctx.open_as_owner_of(&partitions)?;
        ensure_eq!(store.changelog_partitions(), &partitions, "the partitions that the store was opened with");
        for (partition, expected) in opening {
            let seen = store.committed_offset(partition)?.map(Offset::get);
            ensure_eq!(seen, expected, "the offset of {partition}, opened as the owner of {partitions:?}");
        }
        ensure_eq!(dump(&store)?, rows![b"a" => b"1"], "the rows, opened as the owner of {partitions:?}");
        store.close()?;
    }
    Ok(())
}

pub(crate) fn o4_a_wipe_or_a_reset_leaves_no_foreign_offset(ctx: &Ctx) -> CaseResult {
    let all = [changelog(), foreign_changelog()];
    for (what, forget) in [("a wipe", false), ("a reset", true)] {
        let store = ctx.open_as_owner_of(&all)?;
        store.put(b"a", b"1")?;
        store.commit(&at(10).with(foreign_changelog(), offset(77)))?;
        store.close()?;
        drop(store);
        let store = ctx.open_as_owner_of(&[changelog()])?;
        if forget {
            store.forget_offsets()?;
        } else {
            store.wipe()?;
        }
        store.commit(&at(11))?;
        store.close()?;
        drop(store);
        let store = ctx.open_as_owner_of(&all)?;
        let found = store.committed_offset(&foreign_changelog())?;
        ensure_eq!(found, None, "the offset of a partition that was not owned at {what}, and is now");
        ensure_eq!(committed(&store)?, Some(11), "the offset of the partition that was owned at {what}");
        store.close()?;
    }
    Ok(())
}
