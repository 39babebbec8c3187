//! Records that are read back from the changelog: clauses O2 and R4.

use kstate_api::{Bytes, CommitOutcome, ErrorKind, KeyValueStore, ReadOnlyKeyValueStoreExt, StateStore, WriteBatch};

use crate::{
    Capability, CaseResult, Ctx,
    calls::Act,
    check::{Rows, dump, ensure_eq, ensure_kind, rows},
    ctx::{at, changelog, committed, offset, put_at, source},
    workload::{State, scramble},
};

/// A batch of `records`, in the order of their offsets, of which the last has offset `last`.
fn batch(records: &[(&'static str, Option<&'static str>)], last: i64) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for (key, value) in records {
        match value {
            Some(value) => batch.put(*key, *value),
            None => batch.delete(*key),
        }
    }
    batch.set_offset(changelog(), offset(last));
    batch
}

pub(crate) fn o2_a_restored_batch_is_one_step(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    let mut state = State::new();
    for _ in 0..10 {
        state.restore_next(&*store)?;
        state.ensure_is(&*store)?;
        if ctx.declares(Capability::Snapshots) {
            state.ensure_rows(&dump(&store.snapshot()?)?)?;
        }
    }
    // What is restored was never staged.
    store.rollback()?;
    state.ensure_is(&*store)?;
    state.commit_next(&*store)?;
    let store = ctx.reopen_if_persistent(store)?;
    state.ensure_is(&*store)
}

pub(crate) fn o2_a_batch_forgets_offsets_before_it_takes_its_own(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.put(b"a", b"1")?;
    store.stage_position(&source(), offset(3).into())?;
    store.commit(&at(5).with(crate::ctx::other_changelog(), offset(6)))?;
    let mut batch = put_at(b"b", b"2", 2);
    batch.forget_offsets();
    store.restore(&batch)?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(committed(&*store)?, Some(2), "the offset that the batch had");
    ensure_eq!(store.committed_offset(&crate::ctx::other_changelog())?, None, "the offset that the batch forgot");
    ensure_eq!(store.position()?.next(&source()), None, "the position that the batch forgot");
    ensure_eq!(dump(&*store)?, rows![b"a" => b"1", b"b" => b"2"], "the rows");
    Ok(())
}

pub(crate) fn o2_a_restore_over_staged_writes_is_refused(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.commit(&at(1))?;
    let stage: [(&str, Act); 3] = [
        ("put", |store| store.put(b"a", b"1")),
        ("delete", |store| store.delete(b"b")),
        ("position", |store| store.stage_position(&source(), offset(1).into())),
    ];
    for (what, stage) in stage {
        stage(&*store)?;
        let restored = store.restore(&put_at(b"b", b"2", 7));
        let error = ensure_kind(restored, ErrorKind::InvalidArgument, &format!("a restore over a staged {what}"))?;
        ensure_eq!(error.commit_outcome(), Some(CommitOutcome::NotApplied), "the outcome of that restore");
        if ctx.declares(Capability::ManagesOffsets) {
            ensure_eq!(committed(&*store)?, Some(1), "the offset after that restore");
        }
        ensure_eq!(store.get(b"b")?, None, "the record of that restore");
        store.rollback()?;
    }
    store.put(b"a", b"1")?;
    ensure_kind(store.restore(&put_at(b"b", b"2", 7)), ErrorKind::InvalidArgument, "a restore over a staged put")?;
    store.commit(&at(2))?;
    ensure_eq!(dump(&*store)?, rows![b"a" => b"1"], "the rows: what was staged is still there after the refusal");
    store.restore(&put_at(b"b", b"2", 7))?;
    ensure_eq!(dump(&*store)?, rows![b"a" => b"1", b"b" => b"2"], "the rows after a restore over nothing staged");
    Ok(())
}

pub(crate) fn ho_28_a_restored_tombstone_deletes(ctx: &Ctx) -> CaseResult {
    let records = [("a", Some("1")), ("b", Some("2")), ("a", None)];
    for split in 1..=records.len() {
        let store = ctx.open()?;
        store.wipe()?;
        let (head, tail) = records.split_at(split);
        let last = i64::try_from(split).unwrap_or_default() - 1;
        store.restore(&batch(head, last))?;
        if !tail.is_empty() {
            store.restore(&batch(tail, 2))?;
        }
        let store = ctx.reopen_if_persistent(store)?;
        ensure_eq!(store.get(b"a")?, None, "the deleted key, restored {split} records and then the rest");
        ensure_eq!(dump(&*store)?, rows![b"b" => b"2"], "the rows, restored {split} records and then the rest");
        if ctx.declares(Capability::ManagesOffsets) {
            ensure_eq!(committed(&*store)?, Some(2), "the offset, restored {split} records and then the rest");
        }
        store.close()?;
    }
    Ok(())
}

pub(crate) fn ho_29_a_restored_key_that_was_deleted_and_put_again_is_there(ctx: &Ctx) -> CaseResult {
    let records = [("1", Some("Foo")), ("2", Some("Bar")), ("2", None), ("2", Some("Baz"))];
    let store = ctx.open()?;
    store.restore(&batch(&records, 3))?;
    ensure_eq!(dump(&*store)?, rows![b"1" => b"Foo", b"2" => b"Baz"], "the rows of four records restored in one batch");
    // Now over what is there.
    let records = [("2", None), ("1", None), ("1", Some("Qux")), ("2", Some("Quux")), ("3", Some("x")), ("3", None)];
    store.restore(&batch(&records, 9))?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(dump(&*store)?, rows![b"1" => b"Qux", b"2" => b"Quux"], "the rows after six more in one batch");
    Ok(())
}

pub(crate) fn r4_a_restored_batch_equals_its_records_one_at_a_time(ctx: &Ctx) -> CaseResult {
    const KEYS: [&str; 5] = ["", "a", "aa", "b", "c"];
    const VALUES: [Option<&str>; 5] = [None, Some(""), Some("x"), Some("y"), None];
    let draw = |n: u64| usize::try_from(scramble(n) % 1000).unwrap_or_default();
    // Drawn apart, so that deletes meet every key.
    let records: Vec<_> = (0..400)
        .filter_map(|n| {
            let key = KEYS.iter().cycle().nth(draw(2 * n))?;
            let value = VALUES.iter().cycle().nth(draw(2 * n + 1))?;
            Some((*key, *value))
        })
        .collect();
    let mut results: Vec<Rows> = Vec::new();
    for size in [1, 2, 7, 400] {
        let store = ctx.open()?;
        store.wipe()?;
        let mut last = -1;
        for chunk in records.chunks(size) {
            last += i64::try_from(chunk.len()).unwrap_or_default();
            store.restore(&batch(chunk, last))?;
        }
        let store = ctx.reopen_if_persistent(store)?;
        results.push(dump(&*store)?);
        store.close()?;
    }
    let mut expected = std::collections::BTreeMap::new();
    for (key, value) in &records {
        match value {
            Some(value) => expected.insert(Bytes::from(*key), Bytes::from(*value)),
            None => expected.remove(key.as_bytes()),
        };
    }
    let expected: Rows = expected.into_iter().collect();
    for (rows, size) in results.into_iter().zip([1, 2, 7, 400]) {
        ensure_eq!(rows, expected, "the rows, restored in batches of {size} records");
    }
    Ok(())
}

pub(crate) fn o2_a_restored_batch_may_lack_records_or_offsets(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.restore(&put_at(b"a", b"1", 5))?;
    // Transaction markers and aborted records move the offset, and nothing else.
    let mut markers = WriteBatch::new();
    markers.set_offset(changelog(), offset(9));
    store.restore(&markers)?;
    ensure_eq!(committed(&*store)?, Some(9), "the offset after a restored batch without records");
    let mut other = WriteBatch::new();
    other.set_offset(crate::ctx::other_changelog(), offset(70));
    store.restore(&other)?;
    ensure_eq!(committed(&*store)?, Some(9), "the offset that a restored batch did not name");
    let mut records = WriteBatch::new();
    records.put("b", "2");
    store.restore(&records)?;
    ensure_eq!(committed(&*store)?, Some(9), "the offset after a restored batch without offsets");
    store.restore(&WriteBatch::new())?;
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(committed(&*store)?, Some(9), "the offset in the end");
    let seen = store.committed_offset(&crate::ctx::other_changelog())?;
    ensure_eq!(seen, Some(offset(70)), "the other partition's offset in the end");
    ensure_eq!(dump(&*store)?, rows![b"a" => b"1", b"b" => b"2"], "the rows in the end");
    Ok(())
}
