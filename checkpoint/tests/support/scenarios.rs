//! Failure cases at the level of checkpoint and restore, over whatever store is given.

#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::{fs, path::Path, sync::Arc};

use kstate_api::{ChangelogOffsets, ErrorKind, KeyValueStore, Offset, Position, ReadOnlyKeyValueStoreExt};
use kstate_checkpoint::{RestoreOptions, WipeReason, update_standby};

use super::broker::{Broker, Slot, changelog, logged, offset, position, record, record_of, row, rows};

/// Makes an empty store named `counts` that owns [`changelog`].
pub(crate) type NewStore<'s> = &'s dyn Fn() -> Arc<dyn KeyValueStore>;

/// Restores in one batch, and one record to a step, so that every batch border is tried.
fn batch_sizes() -> [RestoreOptions; 2] {
    [RestoreOptions::new(), RestoreOptions::new().max_batch_bytes(1)]
}

fn committed(store: &Arc<dyn KeyValueStore>) -> Option<i64> {
    store.committed_offset(&changelog()).unwrap().map(Offset::get)
}

/// The group's offsets expired: the source records whose effect the store has will come again.
pub(crate) fn p4_a_store_beyond_its_source_is_wiped_and_restored(new_store: NewStore<'_>) {
    let (broker, store) = (Broker::new(Vec::new()), new_store());
    store.put(b"count", b"10").unwrap();
    broker.checkpoint(&store, &position(10)).unwrap();
    broker.0.borrow_mut().committed = Position::new();
    let restored = broker.restore(&store, &RestoreOptions::new()).unwrap();
    assert_eq!(restored.wiped, Some(WipeReason::StoreBeyondSource));
    assert_eq!(rows(&store), [], "the source begins anew, so the count does");
}

/// An empty offset map never brings an old offset back: after a reset there is none, and the restore begins at the
/// log's start and ends.
pub(crate) fn ho_22_a_reset_store_restores_from_the_log_start_once(new_store: NewStore<'_>) {
    let store = new_store();
    store.commit(&ChangelogOffsets::new().with(changelog(), offset(0))).unwrap();
    store.forget_offsets().unwrap();
    assert_eq!(committed(&store), None);
    let broker = Broker::new(vec![Slot::Gap, Slot::Gap, record("a", Some("1"))]);
    broker.0.borrow_mut().start = 2;
    let restored = broker.restore(&store, &RestoreOptions::new()).unwrap();
    // An offset that came back would be out of the log's range, which is another reason.
    assert_eq!((restored.from, restored.applied, restored.wiped), (None, 1, Some(WipeReason::NoOffset)));
    assert_eq!(committed(&store), Some(2));

    let again = broker.restore(&store, &RestoreOptions::new()).unwrap();
    assert_eq!((again.from, again.applied, again.wiped), (Some(offset(2)), 0, None), "one round, not a loop");
}

pub(crate) fn ho_28_tombstones_delete_whatever_the_batches(new_store: NewStore<'_>) {
    let log = vec![record("a", Some("1")), record("b", Some("2")), record("a", None)];
    for options in batch_sizes() {
        let store = new_store();
        Broker::new(log.clone()).restore(&store, &options).unwrap();
        assert_eq!(store.get(b"a").unwrap(), None);
        assert_eq!(rows(&store), [row("b", "2")]);
        assert_eq!(committed(&store), Some(2));
    }
}

pub(crate) fn ho_29_a_key_added_again_after_its_deletion_is_there(new_store: NewStore<'_>) {
    let log = vec![record("1", Some("Foo")), record("2", Some("Bar")), record("2", None), record("2", Some("Baz"))];
    for options in batch_sizes() {
        let store = new_store();
        Broker::new(log.clone()).restore(&store, &options).unwrap();
        assert_eq!(rows(&store), [row("1", "Foo"), row("2", "Baz")]);
    }
}

/// Changes of a checkpoint whose source commit never happened are not applied, for their source records come again.
pub(crate) fn ho_30_changes_that_will_be_made_again_are_not_applied(new_store: NewStore<'_>) {
    for options in batch_sizes() {
        let broker = Broker::new(vec![record_of("a", Some("1"), 10), record_of("a", Some("2"), 13)]);
        broker.0.borrow_mut().committed = position(10);
        let store = new_store();
        let restored = broker.restore(&store, &options).unwrap();
        assert_eq!((restored.applied, restored.uncommitted), (1, 1));
        assert_eq!(rows(&store), [row("a", "1")]);
        assert_eq!(committed(&store), Some(0), "still to be healed, so a restart has to find it again");

        // The source records 10 to 12 come again: the counter moves once.
        let count: u64 = std::str::from_utf8(&store.get(b"a").unwrap().unwrap()).unwrap().parse().unwrap();
        store.put(b"a", (count + 1).to_string().as_bytes()).unwrap();
        broker.checkpoint(&store, &position(13)).unwrap();
        assert_eq!(rows(&store), [row("a", "2")]);

        // A store rebuilt from nothing agrees now.
        let rebuilt = new_store();
        broker.restore(&rebuilt, &options).unwrap();
        assert_eq!(rows(&rebuilt), [row("a", "2")]);
    }
}

pub(crate) fn ho_30_a_record_without_the_header_is_applied(new_store: NewStore<'_>) {
    let store = new_store();
    Broker::new(vec![record("a", Some("1"))]).restore(&store, &RestoreOptions::new()).unwrap();
    assert_eq!(rows(&store), [row("a", "1")]);
}

pub(crate) fn ho_47_an_empty_value_is_restored_as_a_value(new_store: NewStore<'_>) {
    let store = new_store();
    Broker::new(vec![record("k", Some(""))]).restore(&store, &RestoreOptions::new()).unwrap();
    assert_eq!(store.get(b"k").unwrap().unwrap(), "");
}

/// The refusal of an oversized record reaches the caller, and nothing moves: store, changelog offset or source.
pub(crate) fn ho_48_an_oversized_value_fails_the_checkpoint_as_a_whole(new_store: NewStore<'_>) {
    let (broker, store) = (Broker::new(Vec::new()), new_store());
    // A good record on either side of the bad one: neither may reach the log.
    store.put(b"a", b"small").unwrap();
    store.put(b"k", &vec![0; 2 << 20]).unwrap();
    store.put(b"z", b"small").unwrap();
    let error = broker.checkpoint(&store, &position(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(error.store(), Some("counts"));
    assert_eq!(store.snapshot().unwrap().get(b"a").unwrap(), None);
    assert_eq!(store.committed_offset(&changelog()).unwrap(), None);
    assert_eq!(broker.0.borrow().committed, Position::new());
    assert_eq!(broker.0.borrow().log, []);

    // The caller drops the changes; a store made from the log has what this one has.
    store.rollback().unwrap();
    store.put(b"other", b"").unwrap();
    broker.checkpoint(&store, &position(2)).unwrap();
    let rebuilt = new_store();
    broker.restore(&rebuilt, &RestoreOptions::new()).unwrap();
    assert_eq!(rows(&rebuilt), rows(&store));
    assert_eq!(rows(&rebuilt), [row("other", "")]);
}

/// A standby follows for as long as its task runs elsewhere: nothing that a restore may do for speed piles up in the
/// files of `store`, which are in `directory`.
pub(crate) fn ho_61_a_standby_that_follows_for_long_has_few_files(store: &Arc<dyn KeyValueStore>, directory: &Path) {
    const RESTORED: i64 = 1000;
    const FOLLOWED: i64 = 10_000;
    let record = |n: i64| record_of(&format!("key-{}", n % 100), Some(&n.to_string()), n + 1);
    let broker = Broker::new((0..RESTORED).map(record).collect());
    broker.0.borrow_mut().committed = position(RESTORED);
    let options = RestoreOptions::new().max_batch_bytes(1);
    broker.restore(store, &options).unwrap();

    let (copy, mut most) = (logged(store), 0);
    for n in RESTORED..RESTORED + FOLLOWED {
        broker.0.borrow_mut().log.push(record(n));
        let updated = update_standby(&copy, &position(n + 1), &mut broker.clone(), &options, &mut |_| {}).unwrap();
        assert_eq!(updated.applied, 1);
        // An engine that writes a file for each of them has to merge them, now as ever.
        if n % 50 == 0 {
            store.flush().unwrap();
            most = most.max(fs::read_dir(directory).unwrap().count());
        }
    }
    assert_eq!(rows(store).len(), 100);
    assert!((1..=100).contains(&most), "{most} files");
}
