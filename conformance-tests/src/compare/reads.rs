use bytes::Bytes;
use kstate_api::{ReadOnlyKeyValueStore, Result, StateStore};

use super::judge::{Judge, literal};

/// A key and its new value, or `None` for a delete.
type Staged = (Bytes, Option<Bytes>);

/// All that `store` has staged.
pub(super) fn staged_changes<S: StateStore + ?Sized>(store: &S) -> Result<Vec<Staged>> {
    let mut changes = Vec::new();
    store.staged_changes(&mut |key, value| {
        changes.push((Bytes::copy_from_slice(key), value.map(Bytes::copy_from_slice)));
        Ok(())
    })?;
    Ok(changes)
}

/// What one get answered: the value that it was called with, and what it said.
fn get<V: ReadOnlyKeyValueStore + ?Sized>(view: &V, key: &[u8]) -> Result<Option<Bytes>> {
    let mut value = None;
    let found = view.get_with(key, &mut |seen| value = Some(Bytes::copy_from_slice(seen)))?;
    // One that is found but not shown, or the other way round, is like no answer of a good store.
    Ok(if found { value.or_else(|| Some(Bytes::from_static(b"(found, but not shown)"))) } else { None })
}

/// Reads `key` in both, and shows it once they agree.
pub(super) fn get_with<A, B>(
    judge: &Judge,
    trusted: &A,
    candidate: &B,
    key: &[u8],
    read: &mut dyn FnMut(&[u8]),
) -> Result<bool>
where
    A: ReadOnlyKeyValueStore + ?Sized,
    B: ReadOnlyKeyValueStore + ?Sized,
{
    let call = || format!("get_with({})", literal(key));
    let value = judge.same(call, get(trusted, key), || get(candidate, key))?;
    Ok(value.map(|value| read(&value)).is_some())
}
