//! What is declared to the suite is what the store can do: no case is skipped for a wrong word.

use kstate_api::{Durability, ErrorKind, KeyRange, MAX_KEY_LEN, Order};

use crate::{
    Capability::{
        self, DurableCommit, LongKeys, ManagesOffsets, MultiProcessLock, Persistent, ReverseScan, Snapshots,
        SyncedCommit,
    },
    CaseResult, Ctx, Faults, Told, Violation,
    cases::keys::takes,
    check::{ensure, ensure_eq},
    ctx::changelog,
    harness::Opened,
};

/// Whether a call works, if it may answer `Unsupported`.
#[track_caller]
fn works<T>(result: kstate_api::Result<T>) -> Result<bool, Violation> {
    match result {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(false),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn declaration_matches_the_store(ctx: &Ctx) -> CaseResult {
    let agrees = |capability: Capability, able: bool| {
        let declared = ctx.declares(capability);
        ensure!(able == declared, "the harness declares `{capability}: {declared}`, but the store says {able}");
        Ok(())
    };
    let Opened { store, durability: told } = ctx.open_told()?;
    agrees(Capability::StateStoreOnly, ctx.harness.is_state_store_only())?;
    agrees(Persistent, store.persistent())?;
    if let Told::This(persistent) = ctx.harness.supplier_persistent() {
        ensure_eq!(persistent, store.persistent(), "whether the supplier says that its stores are persistent");
    }
    agrees(ManagesOffsets, store.manages_offsets())?;
    if let Told::This(durability) = told {
        ensure_eq!(durability.is_some(), store.persistent(), "whether the backend says it is persistent");
        agrees(DurableCommit, durability >= Some(Durability::Process))?;
        agrees(SyncedCommit, durability >= Some(Durability::Sync))?;
    }
    ensure!(
        ctx.declares(DurableCommit) || !ctx.declares(SyncedCommit),
        "`synced_commit: true` means `durable_commit: true`: what survives a power loss survives a kill"
    );
    ensure!(
        ctx.declares(Persistent) || !ctx.declares(DurableCommit),
        "`durable_commit: true` means `persistent: true`"
    );
    agrees(Snapshots, works(store.snapshot())?)?;
    agrees(ReverseScan, works(store.scan(&KeyRange::all(), Order::Descending))?)?;
    if !ctx.harness.is_state_store_only() {
        agrees(LongKeys, takes(&*store, MAX_KEY_LEN)?)?;
    }
    match ctx.open() {
        Ok(second) => {
            agrees(MultiProcessLock, false)?;
            second.close()?;
        }
        Err(error) => {
            ensure_eq!(error.kind(), ErrorKind::Locked, "the kind of the error of a second open ({error})");
            agrees(MultiProcessLock, true)?;
        }
    }
    store.close()?;
    drop(store);
    agrees(Capability::ClosedOffsets, works(ctx.read_offsets(&[changelog()]))?)?;
    agrees(Capability::Faults, works(ctx.open_faulty(&Faults::new()))?)
}
