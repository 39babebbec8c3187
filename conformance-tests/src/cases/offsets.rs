//! Changelog offsets: clauses O1 to O5.

use kstate_api::Offset;

use crate::{
    CaseResult, Ctx,
    check::ensure_eq,
    ctx::{at, changelog, committed, put_at},
};

pub(crate) fn o1_a_restore_resumes_after_the_committed_offset(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.restore(&put_at(b"a", b"1", 41))?;
    let next = store.committed_offset(&changelog())?.map(Offset::next);
    ensure_eq!(next, Offset::new(42), "where a restore goes on after the record at offset 41");
    store.restore(&put_at(b"a", b"2", 42))?;
    ensure_eq!(committed(&store)?, Some(42), "the committed offset after the record at offset 42");
    Ok(())
}

pub(crate) fn o3_a_lower_offset_is_stored_as_given(ctx: &Ctx) -> CaseResult {
    let store = ctx.open()?;
    store.commit(&at(9000))?;
    store.commit(&at(120))?;
    ensure_eq!(committed(&store)?, Some(120), "the committed offset after 9000 and then 120 were committed");
    Ok(())
}
