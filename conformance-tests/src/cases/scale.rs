//! Many of everything: what goes wrong only at the border of a page, a buffer or a number's width.

use std::{collections::BTreeSet, ops::Bound, sync::Arc};

use bytes::Bytes;
use kstate_api::{
    ChangelogOffsets, Cursor, KeyRange, KeyValueStore, Offset, Order, ReadOnlyKeyValueStore, ReadOnlyKeyValueStoreExt,
    Snapshot, TopicPartition, WriteBatch,
};

use crate::{
    Capability, CaseResult, Ctx, Violation,
    check::{Rows, drain, dump, ensure, ensure_eq, scan_keys},
    ctx::{at, changelog, committed, offset, other_changelog, other_source, source},
    workload::scramble,
};

fn number(draw: u64, limit: u64) -> u32 {
    u32::try_from(draw % limit).unwrap_or_default()
}

pub(crate) fn o4_many_partitions_keep_their_offsets(ctx: &Ctx) -> CaseResult {
    let partitions: Vec<TopicPartition> =
        (0..300).map(|n| TopicPartition::new(format!("conformance-changelog-{}", n % 3), n / 3)).collect();
    let store = ctx.open_as_owner_of(&partitions)?;
    let mut offsets: Vec<i64> = (0..300).map(|n| 1_000_000_007 * n).collect();
    let all: ChangelogOffsets = partitions.iter().cloned().zip(offsets.iter().map(|value| offset(*value))).collect();
    for (partition, value) in partitions.iter().zip(&offsets) {
        store.stage_position(partition, offset(value + 1).into())?;
    }
    store.put(b"a", b"1")?;
    store.commit(&all)?;
    for (n, (partition, value)) in partitions.iter().zip(&mut offsets).enumerate().filter(|(n, _)| n % 7 == 3) {
        *value = i64::try_from(n).unwrap_or_default();
        store.commit(&ChangelogOffsets::new().with(partition.clone(), offset(*value)))?;
    }
    let reopened = if ctx.declares(Capability::Persistent) {
        store.close()?;
        drop(store);
        ctx.open_as_owner_of(&partitions)?
    } else {
        store
    };
    let position = reopened.position()?;
    for (n, (partition, value)) in (0..).zip(partitions.iter().zip(&offsets)) {
        ensure_eq!(reopened.committed_offset(partition)?, Some(offset(*value)), "the offset of {partition} of 300");
        let next = offset(1_000_000_007 * n + 1);
        ensure_eq!(position.next(partition), Some(next), "the position of {partition} of 300");
    }
    Ok(())
}

pub(crate) fn o6_many_commits_are_kept(ctx: &Ctx) -> CaseResult {
    const COMMITS: u16 = 600;
    let store = ctx.open()?;
    // These move once; each of the commits has to keep them.
    store.stage_position(&other_source(), offset(7).into())?;
    store.commit(&ChangelogOffsets::new().with(other_changelog(), offset(8)))?;
    // Each leaves a row of its own.
    for n in 0..COMMITS {
        store.put(&n.to_be_bytes(), b"1")?;
        store.stage_position(&source(), offset(i64::from(n) + 1).into())?;
        store.commit(&at(n.into()))?;
    }
    let ensure_all = |store: &dyn KeyValueStore, when: &str| {
        let rows = dump(store)?;
        ensure_eq!(rows.len(), usize::from(COMMITS), "the number of rows {when}, one for each commit");
        ensure!((0..COMMITS).zip(&rows).all(|(n, (key, _))| **key == n.to_be_bytes()), "the rows {when} are others");
        ensure_eq!(committed(store)?, Some(i64::from(COMMITS) - 1), "the offset {when}");
        let position = store.position()?;
        ensure_eq!(position.next(&source()), Some(offset(COMMITS.into())), "the position {when}");
        ensure_eq!(position.next(&other_source()), Some(offset(7)), "the position that only the first moved, {when}");
        let other = store.committed_offset(&other_changelog())?;
        ensure_eq!(other, Some(offset(8)), "the offset that only the first commit moved, {when}");
        Ok::<(), Violation>(())
    };
    ensure_all(&*store, "after 600 commits")?;
    let store = ctx.reopen(store)?;
    ensure_all(&*store, "after 600 commits and a reopen")?;
    // And once more, with nothing done in between.
    ensure_all(&*ctx.reopen(store)?, "after 600 commits and two reopens")
}

/// Ranges of all kinds over rows that fill many pages, committed and staged, with staged deletes.
pub(crate) fn r1_ranges_over_many_rows(ctx: &Ctx) -> CaseResult {
    const KEYS: u64 = 12_000;
    let store = ctx.open()?;
    let mut model = BTreeSet::new();
    let key = |n: u32| Bytes::copy_from_slice(&n.to_be_bytes());
    for n in (0..12_000).filter(|n| !scramble((*n).into()).is_multiple_of(3)) {
        store.put(&key(n), b"committed")?;
        model.insert(key(n));
    }
    store.commit(&at(0))?;
    for n in (0..12_000).filter(|n| scramble(u64::from(*n) + KEYS).is_multiple_of(4)) {
        if n % 3 == 0 {
            store.delete(&key(n))?;
            model.remove(&key(n));
        } else {
            store.put(&key(n), b"staged")?;
            model.insert(key(n));
        }
    }
    let bound = |draw: u64| {
        let key = key(number(scramble(draw), KEYS));
        match scramble(draw ^ 1) % 5 {
            0 => Bound::Unbounded,
            1 | 2 => Bound::Excluded(key),
            _ => Bound::Included(key),
        }
    };
    for probe in 0..100 {
        let (start, end) = (bound(4 * probe), bound(4 * probe + 2));
        let range = KeyRange::new(start.as_ref().map(AsRef::as_ref), end.as_ref().map(AsRef::as_ref));
        let mut expected: Vec<Bytes> =
            if range.is_inverted() { Vec::new() } else { model.range((start.clone(), end.clone())).cloned().collect() };
        ensure_eq!(scan_keys(&store, &range, Order::Ascending)?, expected, "the keys of {range:?}, upwards");
        if ctx.declares(Capability::ReverseScan) {
            expected.reverse();
            ensure_eq!(scan_keys(&store, &range, Order::Descending)?, expected, "the keys of {range:?}, downwards");
        }
    }
    Ok(())
}

pub(crate) fn r2_a_snapshot_is_kept_through_many_commits(ctx: &Ctx) -> CaseResult {
    const COMMITS: u32 = 300;
    let (store, expected) = long_store(ctx, false)?;
    let snapshot = store.snapshot()?;
    let mut cursor = snapshot.all()?;
    cursor.advance()?;
    for n in 0..COMMITS {
        for key in (n..LONG).step_by(97) {
            if key % 3 == 0 { store.delete(&key.to_be_bytes())? } else { store.put(&key.to_be_bytes(), b"later")? }
        }
        store.commit(&at(i64::from(n) + 1))?;
    }
    ensure_eq!(dump(&snapshot)?, expected, "the rows of a snapshot after {COMMITS} commits");
    ensure_eq!(snapshot.get(&0_u32.to_be_bytes())?, Some("committed".into()), "a value in that snapshot");
    if ctx.declares(Capability::ManagesOffsets) {
        let seen = snapshot.committed_offset(&changelog())?;
        ensure_eq!(seen, Some(Offset::ZERO), "the offset of that snapshot");
    }
    let rest: Rows = expected.into_iter().skip(1).collect();
    ensure_eq!(drain(&mut *cursor)?, rest, "the rest of that snapshot's cursor");
    Ok(())
}

pub(crate) fn r3_many_views_are_open_at_once(ctx: &Ctx) -> CaseResult {
    const VIEWS: usize = 300;
    let store = ctx.open()?;
    let mut cursors: Vec<(Rows, Box<dyn Cursor>)> = Vec::new();
    let mut snapshots: Vec<(Rows, Arc<dyn Snapshot>)> = Vec::new();
    for n in 0..VIEWS {
        store.put(b"a", n.to_string().as_bytes())?;
        store.put(&(n % 10).to_be_bytes(), b"1")?;
        if n % 10 == 0 {
            store.commit(&at(0))?;
        }
        cursors.push((dump(&store)?, store.all()?));
        if ctx.declares(Capability::Snapshots) {
            let snapshot = store.snapshot()?;
            snapshots.push((dump(&snapshot)?, snapshot));
        }
    }
    for (expected, mut cursor) in cursors {
        ensure_eq!(drain(&mut *cursor)?, expected, "the rows of one of {VIEWS} open cursors");
    }
    for (expected, snapshot) in snapshots {
        ensure_eq!(dump(&snapshot)?, expected, "the rows of one of {VIEWS} snapshots");
    }
    Ok(())
}

/// How many rows a long scan has: more than a cursor reads ahead.
const LONG: u32 = 4000;

fn row(n: u32, value: &'static str) -> (Bytes, Bytes) {
    (Bytes::copy_from_slice(&n.to_be_bytes()), Bytes::from(value))
}

/// Rows of which every other is committed, and the rest staged or, for `staged: false`, not there.
fn long_store(ctx: &Ctx, staged: bool) -> Result<(Arc<dyn KeyValueStore>, Rows), Violation> {
    let store = ctx.open()?;
    store.wipe()?;
    for n in (0..LONG).step_by(2) {
        store.put(&n.to_be_bytes(), b"committed")?;
    }
    store.commit(&at(0))?;
    if staged {
        for n in (1..LONG).step_by(2) {
            store.put(&n.to_be_bytes(), b"staged")?;
        }
    }
    let rows = (0..LONG).filter(|n| staged || n % 2 == 0);
    Ok((store, rows.map(|n| row(n, if n % 2 == 0 { "committed" } else { "staged" })).collect()))
}

/// Takes cursors of `view` a few rows far, changes the store, and fails unless the rest of them is as it was.
fn ensure_long_scans_are_stable(
    ctx: &Ctx,
    what: &str,
    of_a_snapshot: bool,
    change: impl Fn(&dyn KeyValueStore) -> kstate_api::Result<()>,
) -> CaseResult {
    let (store, expected) = long_store(ctx, !of_a_snapshot)?;
    let mut up = None;
    let mut down = None;
    let mut open = |view: &dyn ReadOnlyKeyValueStore| -> CaseResult {
        up = Some(view.scan(&KeyRange::all(), Order::Ascending)?);
        if ctx.declares(Capability::ReverseScan) {
            down = Some(view.scan(&KeyRange::all(), Order::Descending)?);
        }
        Ok(())
    };
    if of_a_snapshot {
        open(&store.snapshot()?)?;
    } else {
        open(&store)?;
    }
    let mut reversed = expected.clone();
    reversed.reverse();
    let mut cursors: Vec<_> = up.map(|cursor| (cursor, expected)).into_iter().collect();
    cursors.extend(down.map(|cursor| (cursor, reversed)));
    for (cursor, expected) in &mut cursors {
        for row in expected.drain(..3) {
            cursor.advance()?;
            ensure_eq!(cursor.row(), Some((&*row.0, &*row.1)), "one of the first rows");
        }
    }
    change(&*store)?;
    for (cursor, expected) in &mut cursors {
        ensure_eq!(drain(&mut **cursor)?, *expected, "the rest of a long scan that began before {what}");
    }
    drop(cursors);
    store.close()?;
    Ok(())
}

/// Changes rows all over a store, committed and staged.
fn change_everywhere(store: &dyn KeyValueStore) -> kstate_api::Result<()> {
    for n in 0..LONG {
        match scramble(n.into()) % 4 {
            0 => store.delete(&n.to_be_bytes())?,
            1 => store.put(&n.to_be_bytes(), b"changed")?,
            2 => store.put(&[&n.to_be_bytes()[..], b"between"].concat(), b"new")?,
            _ => {}
        }
    }
    Ok(())
}

/// The changes that a scan must not see.
fn ensure_stable_whatever_comes(ctx: &Ctx, of_a_snapshot: bool) -> CaseResult {
    ensure_long_scans_are_stable(ctx, "writes", of_a_snapshot, change_everywhere)?;
    ensure_long_scans_are_stable(ctx, "writes and a commit", of_a_snapshot, |store| {
        change_everywhere(store)?;
        store.commit(&at(1))?;
        store.flush()
    })?;
    ensure_long_scans_are_stable(ctx, "a rollback and a restore", of_a_snapshot, |store| {
        store.rollback()?;
        let mut batch = WriteBatch::new();
        (0..LONG).step_by(3).for_each(|n| batch.delete(Bytes::copy_from_slice(&n.to_be_bytes())));
        batch.set_offset(changelog(), Offset::ZERO);
        store.restore(&batch)
    })?;
    ensure_long_scans_are_stable(ctx, "a wipe and a commit", of_a_snapshot, |store| {
        store.wipe()?;
        change_everywhere(store)?;
        store.commit(&at(1))
    })
}

pub(crate) fn r3_a_long_scan_is_stable(ctx: &Ctx) -> CaseResult {
    ensure_stable_whatever_comes(ctx, false)
}

pub(crate) fn r2_a_long_scan_of_a_snapshot_is_stable(ctx: &Ctx) -> CaseResult {
    ensure_stable_whatever_comes(ctx, true)
}
