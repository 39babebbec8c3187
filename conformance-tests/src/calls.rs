use kstate_api::{ChangelogOffsets, KeyRange, KeyValueStore, Order, ReadOnlyKeyValueStoreExt, Result, WriteBatch};

use crate::{
    Capability, Ctx,
    ctx::{at, changelog, offset, put_at, source},
};

/// What a case does with a store.
pub(crate) type Act = fn(&dyn KeyValueStore) -> Result<()>;

/// One call of a store.
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) run: Act,
    /// Whether it is an atomic step, whose error tells its outcome.
    pub(crate) is_step: bool,
}

const fn call(name: &'static str, run: Act) -> Call {
    Call { name, run, is_step: false }
}

const fn step(name: &'static str, run: Act) -> Call {
    Call { name, run, is_step: true }
}

/// Every fallible call of a store but `close`, each with arguments that are right while the store is open.
pub(crate) fn every_call(ctx: &Ctx) -> Vec<Call> {
    let mut calls = Vec::new();
    if !ctx.declares(Capability::StateStoreOnly) {
        calls.extend([
            call("put_all of nothing", |store| store.put_all(&[])),
            call("put_if_absent", |store| store.put_if_absent(b"n", b"x").map(drop)),
            call("put_if_absent of what is there", |store| store.put_if_absent(b"a", b"x").map(drop)),
        ]);
    }
    calls.extend([
        call("put", |store| store.put(b"a", b"x")),
        call("put of an empty value", |store| store.put(b"n", b"")),
        call("put_all", |store| store.put_all(&[(b"a", Some(b"x")), (b"b", None)])),
        call("delete", |store| store.delete(b"a")),
        call("delete of what is not there", |store| store.delete(b"n")),
        call("get", |store| store.get(b"a").map(drop)),
        call("get of what is not there", |store| store.get(b"n").map(drop)),
        call("scan", |store| store.scan(&KeyRange::all(), Order::Ascending).map(drop)),
        call("scan of an inverted range", |store| {
            store.scan(&KeyRange::between(b"b", b"a"), Order::Ascending).map(drop)
        }),
        call("approximate_num_entries", |store| store.approximate_num_entries().map(drop)),
        step("commit", |store| store.commit(&at(99))),
        step("commit of no offset", |store| store.commit(&ChangelogOffsets::new())),
        step("restore", |store| store.restore(&put_at(b"a", b"x", 99))),
        step("restore of an empty batch", |store| store.restore(&WriteBatch::new())),
        step("wipe", |store| store.wipe()),
        step("forget_offsets", |store| store.forget_offsets()),
        call("rollback", |store| store.rollback()),
        call("flush", |store| store.flush()),
        call("committed_offset", |store| store.committed_offset(&changelog()).map(drop)),
        call("durable_offset", |store| store.durable_offset(&changelog()).map(drop)),
        call("stage_position", |store| store.stage_position(&source(), offset(99).into())),
        call("position", |store| store.position().map(drop)),
        call("committed_value", |store| store.committed_value(b"a").map(drop)),
        call("staged_changes", |store| store.staged_changes(&mut |_, _| Ok(()))),
    ]);
    if ctx.declares(Capability::ReverseScan) {
        calls.push(call("scan in descending order", |store| store.reverse_all().map(drop)));
    }
    if ctx.declares(Capability::Snapshots) {
        calls.push(call("snapshot", |store| store.snapshot().map(drop)));
    }
    calls
}
