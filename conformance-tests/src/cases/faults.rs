//! What a store does when what it stands on fails: clauses O7 and R3.

use kstate_api::{
    ChangelogOffsets, CommitOutcome, CursorExt, ErrorKind, KeyValueStore, ReadOnlyKeyValueStoreExt, StateStore,
};

use crate::{
    Capability, CaseResult, Ctx, Faults, StepFault, Violation,
    calls::{Act, every_call},
    check::{dump, ensure, ensure_eq, ensure_kind, rows},
    ctx::{at, committed, offset, put_at, source},
};

pub(crate) fn o7_a_refused_commit_can_be_repeated(ctx: &Ctx) -> CaseResult {
    let faults = Faults::new();
    let store = ctx.open_faulty(&faults)?;
    store.put(b"a", b"1")?;
    store.stage_position(&source(), offset(10).into())?;
    store.commit(&at(1))?;
    store.put(b"a", b"2")?;
    store.delete(b"b")?;
    store.stage_position(&source(), offset(20).into())?;
    faults.fail_next_step(StepFault::Refused);
    let error = ensure_kind(store.commit(&at(2)), ErrorKind::Io, "a commit that the engine refuses")?;
    ensure_eq!(error.commit_outcome(), Some(CommitOutcome::NotApplied), "its outcome");
    ensure!(store.is_open(), "a commit that was not applied closed or poisoned the store");
    let mut changes = Vec::new();
    store.staged_changes(&mut |key, value| {
        changes.push((key.to_vec(), value.map(<[u8]>::to_vec)));
        Ok(())
    })?;
    let staged = [(b"a".to_vec(), Some(b"2".to_vec())), (b"b".to_vec(), None)];
    ensure_eq!(changes, staged, "the staged changes after a refused commit");
    ensure_eq!(committed(&*store)?, Some(1), "the offset after a refused commit");
    ensure_eq!(store.position()?.next(&source()), Some(offset(10)), "the position after a refused commit");
    ensure_eq!(dump(&*store)?, rows![b"a" => b"2"], "the owner's rows: everything is still staged");
    if ctx.declares(Capability::Snapshots) {
        ensure_eq!(dump(&store.snapshot()?)?, rows![b"a" => b"1"], "the committed rows after a refused commit");
    }
    store.commit(&at(2))?;
    ensure_eq!(committed(&*store)?, Some(2), "the offset after the commit was repeated");
    ensure_eq!(store.position()?.next(&source()), Some(offset(20)), "the position after the commit was repeated");
    let store = ctx.reopen_if_persistent(store)?;
    ensure_eq!(dump(&*store)?, rows![b"a" => b"2"], "the rows in the end");
    Ok(())
}

pub(crate) fn o7_a_refused_commit_leaves_no_offset_behind(ctx: &Ctx) -> CaseResult {
    let faults = Faults::new();
    let store = ctx.open_faulty(&faults)?;
    store.put(b"a", b"1")?;
    faults.fail_next_step(StepFault::Refused);
    ensure_kind(store.commit(&at(5)), ErrorKind::Io, "a commit that the engine refuses")?;
    store.commit(&ChangelogOffsets::new())?;
    ensure_eq!(committed(&*store)?, None, "the offset after a commit of none, the one before having failed");
    ensure_eq!(dump(&*store)?, rows![b"a" => b"1"], "the rows that stayed staged after the failure");
    store.put(b"a", b"2")?;
    faults.fail_next_step(StepFault::Refused);
    ensure_kind(store.commit(&at(6)), ErrorKind::Io, "a commit that the engine refuses")?;
    store.rollback()?;
    store.restore(&put_at(b"b", b"1", 5))?;
    ensure_eq!(committed(&*store)?, Some(5), "the offset after a restore, the commit before having failed");
    Ok(())
}

pub(crate) fn o7_a_refused_restore_or_wipe_changes_nothing(ctx: &Ctx) -> CaseResult {
    let faults = Faults::new();
    let store = ctx.open_faulty(&faults)?;
    store.put(b"a", b"1")?;
    store.commit(&at(1))?;
    let steps: [(&str, Act); 3] = [
        ("restore", |store| store.restore(&put_at(b"a", b"2", 2))),
        ("wipe", |store| store.wipe()),
        ("forget_offsets", |store| store.forget_offsets()),
    ];
    for (what, step) in steps {
        faults.fail_next_step(StepFault::Refused);
        let error = ensure_kind(step(&*store), ErrorKind::Io, &format!("a {what} that the engine refuses"))?;
        ensure_eq!(error.commit_outcome(), Some(CommitOutcome::NotApplied), "the outcome of a refused {what}");
        ensure_eq!(dump(&*store)?, rows![b"a" => b"1"], "the rows after a refused {what}");
        ensure_eq!(committed(&*store)?, Some(1), "the offset after a refused {what}");
    }
    store.put(b"b", b"1")?;
    faults.fail_next_step(StepFault::Refused);
    ensure_kind(store.wipe(), ErrorKind::Io, "a wipe that the engine refuses")?;
    store.commit(&at(2))?;
    ensure_eq!(dump(&*store)?, rows![b"a" => b"1", b"b" => b"1"], "the rows: what was staged outlived a refused wipe");
    Ok(())
}

pub(crate) fn o7_a_store_that_cannot_tell_is_poisoned(ctx: &Ctx) -> CaseResult {
    let steps: [(&str, Act); 4] = [
        ("commit", |store| store.put(b"a", b"2").and_then(|()| store.commit(&at(2)))),
        ("restore", |store| store.restore(&put_at(b"a", b"2", 2))),
        ("wipe", |store| store.wipe()),
        ("forget_offsets", |store| store.forget_offsets()),
    ];
    for (what, step) in steps {
        for fault in [StepFault::LostBefore, StepFault::LostAfter, StepFault::Unsaid] {
            let faults = Faults::new();
            let store = ctx.open_faulty(&faults)?;
            store.put(b"a", b"1")?;
            store.commit(&at(1))?;
            faults.fail_next_step(fault);
            let error = ensure_kind(step(&*store), ErrorKind::Io, &format!("a {what} of which nobody can tell"))?;
            ensure_eq!(error.commit_outcome(), Some(CommitOutcome::Unknown), "the outcome of that {what}");
            ensure!(!store.is_open(), "the store says that it is open after a {what} of unknown outcome");
            for call in every_call(ctx) {
                let name = format!("{} after a {what} of unknown outcome", call.name);
                ensure_kind((call.run)(&*store), ErrorKind::Poisoned, &name)?;
            }
            store.close()?;
            ensure_kind(store.get(b"a"), ErrorKind::Closed, "a get after a poisoned store was closed")?;
            ensure_kind(store.commit(&at(3)), ErrorKind::Closed, "a commit after a poisoned store was closed")?;
            // The close has freed the directory, and not only the drop.
            ctx.open()?.close()?;
        }
    }
    Ok(())
}

pub(crate) fn o7_reopening_after_an_unknown_outcome_shows_a_whole_commit(ctx: &Ctx) -> CaseResult {
    let rounds = [
        (StepFault::LostBefore, true),
        (StepFault::LostAfter, true),
        (StepFault::LostBefore, false),
        (StepFault::LostAfter, false),
    ];
    for (fault, by_close) in rounds {
        let faults = Faults::new();
        let store = ctx.open_faulty(&faults)?;
        store.wipe()?;
        store.put(b"a", b"1")?;
        store.stage_position(&source(), offset(10).into())?;
        store.commit(&at(1))?;
        store.put(b"a", b"2")?;
        store.stage_position(&source(), offset(20).into())?;
        faults.fail_next_step(fault);
        ensure_kind(store.commit(&at(2)), ErrorKind::Io, "a commit of which nobody can tell")?;
        ensure_kind(store.commit(&at(3)), ErrorKind::Poisoned, "a commit after that")?;
        if by_close {
            store.close()?;
        }
        drop(store);
        let store = ctx.open()?;
        let seen = (dump(&*store)?, committed(&*store)?, store.position()?.next(&source()));
        let old = (rows![b"a" => b"1"], Some(1), Some(offset(10)));
        let new = (rows![b"a" => b"2"], Some(2), Some(offset(20)));
        ensure!(
            seen == old || seen == new,
            "after a reopen ({fault:?}) there is neither the old nor the new commit: {seen:?}"
        );
        store.close()?;
    }
    Ok(())
}

pub(crate) fn r3_a_cursor_that_failed_fails_for_good(ctx: &Ctx) -> CaseResult {
    let faults = Faults::new();
    let store = ctx.open_faulty(&faults)?;
    for key in [b"b", b"d", b"f", b"h"] {
        store.put(key, b"1")?;
    }
    store.commit(&at(0))?;
    store.put(b"c", b"2")?;
    store.put(b"z", b"2")?;
    store.delete(b"d")?;
    let expected = dump(&*store)?;
    for rows_before in 0..=4 {
        faults.fail_next_cursor_after(rows_before);
        let mut cursor = store.all()?;
        let mut seen = Vec::new();
        let error = loop {
            match cursor.next_row() {
                Ok(Some((key, value))) => seen.push((key.to_vec().into(), value.to_vec().into())),
                Ok(None) => {
                    let message = format!("a cursor that fails after {rows_before} rows looks complete after {seen:?}");
                    return Err(Violation::new(message));
                }
                Err(error) => break error,
            }
        };
        ensure_eq!(error.kind(), ErrorKind::Io, "the kind of the error ({error})");
        ensure!(expected.starts_with(&seen), "before its error the cursor showed {seen:?}");
        for _ in 0..3 {
            ensure_eq!(cursor.row(), None, "the row after an error");
            ensure!(cursor.advance().is_err(), "a cursor that failed goes on, or looks complete");
        }
        faults.fail_next_cursor_after(rows_before);
        let copies: Vec<_> = store.all()?.entries().collect();
        ensure!(
            copies.last().is_some_and(Result::is_err),
            "the iterator of a failed cursor does not end with the error"
        );
        ensure_eq!(copies.iter().filter(|copy| copy.is_err()).count(), 1, "the number of errors it gives");
    }
    ensure_eq!(dump(&*store)?, expected, "the rows of a cursor that does not fail");
    Ok(())
}

pub(crate) fn r2_a_read_that_failed_is_an_error(ctx: &Ctx) -> CaseResult {
    let faults = Faults::new();
    let store = ctx.open_faulty(&faults)?;
    store.put(b"a", b"1")?;
    store.commit(&at(0))?;
    faults.fail_next_read();
    ensure_kind(store.get(b"a"), ErrorKind::Io, "a get that the engine cannot answer")?;
    ensure_eq!(store.get(b"a")?, Some("1".into()), "the value, asked again");
    faults.fail_next_read();
    let put = store.put_if_absent(b"a", b"2");
    ensure_kind(put, ErrorKind::Io, "a put_if_absent whose get the engine cannot answer")?;
    ensure_eq!(store.uncommitted_bytes(), 0, "the uncommitted bytes after that");
    ensure_eq!(store.get(b"a")?, Some("1".into()), "the value after that");
    Ok(())
}
