//! The order of a checkpoint and what a failure at each of its steps leaves (clauses P1, P2, P6).

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod support;

use kstate_api::{
    ChangelogOffsets, KeyValueStore, Position, ReadOnlyKeyValueStoreExt, Result, StateStore, TopicPartition,
};
use kstate_checkpoint::{ChangelogRecord, ChangelogWriter, checkpoint, decode_source_position};
use support::{
    broker::{Broker, Fault, Slot, changelog, offset, offset_of, position, source, task},
    memory_store, on_each_backend, scenarios,
};

#[test]
fn p1_changelog_then_source_then_store() {
    let (broker, store) = (Broker::new(Vec::new()), memory_store());
    store.put(b"a", b"1").unwrap();
    broker.checkpoint(&store, &position(10)).unwrap();

    assert_eq!(broker.0.borrow().steps, ["append", "flush", "source commit"]);
    assert_eq!(store.committed_offset(&changelog()).unwrap(), Some(offset(0)));
    assert_eq!(store.position().unwrap(), position(10));
    assert_eq!(store.snapshot().unwrap().get(b"a").unwrap().unwrap(), "1");
}

#[test]
fn p1_a_failure_before_the_source_commit_commits_nothing_and_can_be_repeated() {
    for fault in [Fault::Append, Fault::Delivery, Fault::SourceCommit] {
        let (broker, store) = (Broker::new(Vec::new()), memory_store());
        store.put(b"a", b"1").unwrap();
        broker.0.borrow_mut().fault = Some(fault);
        broker.checkpoint(&store, &position(10)).unwrap_err();

        assert_eq!(store.committed_offset(&changelog()).unwrap(), None, "{fault:?}");
        assert_eq!(store.snapshot().unwrap().get(b"a").unwrap(), None, "{fault:?}");
        assert_eq!(store.get(b"a").unwrap().unwrap(), "1", "{fault:?}: the change is still staged");
        assert_eq!(broker.0.borrow().committed, Position::new(), "{fault:?}");

        broker.checkpoint(&store, &position(10)).unwrap();
        let last = offset_of(broker.0.borrow().log.len() - 1);
        assert_eq!(store.committed_offset(&changelog()).unwrap(), Some(last), "{fault:?}");
        assert_eq!(broker.0.borrow().committed, position(10), "{fault:?}");
    }
}

#[test]
fn p2_a_key_is_one_record_however_often_it_was_written() {
    let (broker, store) = (Broker::new(Vec::new()), memory_store());
    for n in 0..1000 {
        store.put(b"a", n.to_string().as_bytes()).unwrap();
    }
    store.put(b"b", b"").unwrap();
    store.delete(b"c").unwrap();
    broker.checkpoint(&store, &position(1000)).unwrap();

    let log = broker.0.borrow().log.clone();
    let written: Vec<_> = log
        .iter()
        .map(|slot| match slot {
            Slot::Record { key, value, .. } => (key.clone().unwrap(), value.clone()),
            Slot::Gap => panic!("no gaps here"),
        })
        .collect();
    assert_eq!(
        written,
        [(b"a".to_vec(), Some(b"999".to_vec())), (b"b".to_vec(), Some(Vec::new())), (b"c".to_vec(), None)]
    );
}

#[test]
fn p2_an_empty_checkpoint_does_nothing() {
    let (broker, store) = (Broker::new(Vec::new()), memory_store());
    broker.checkpoint(&store, &Position::new()).unwrap();
    assert!(broker.0.borrow().steps.is_empty());
}

#[test]
fn p2_a_position_without_changes_is_committed_without_a_changelog_record() {
    let (broker, store) = (Broker::new(Vec::new()), memory_store());
    broker.checkpoint(&store, &position(7)).unwrap();
    assert_eq!(broker.0.borrow().steps, ["source commit"]);
    assert_eq!(store.position().unwrap(), position(7));
}

#[test]
fn p3_each_record_carries_the_position_of_its_checkpoint() {
    let (broker, store) = (Broker::new(Vec::new()), memory_store());
    store.put(b"a", b"1").unwrap();
    broker.checkpoint(&store, &position(10)).unwrap();
    let Slot::Record { header: Some(header), .. } = broker.0.borrow().log[0].clone() else { panic!("no header") };
    assert_eq!(decode_source_position(&header).unwrap().next(&source()), Some(offset(10)));
}

/// An offset that was not acknowledged is never committed.
#[test]
fn ho_15_no_offset_before_its_acknowledgement() {
    let (broker, store) = (Broker::new(Vec::new()), memory_store());
    for n in 0..5 {
        store.put(n.to_string().as_bytes(), b"").unwrap();
    }
    broker.checkpoint(&store, &position(5)).unwrap();
    assert_eq!(store.committed_offset(&changelog()).unwrap(), Some(offset(4)));

    store.put(b"a", b"1").unwrap();
    broker.0.borrow_mut().fault = Some(Fault::Delivery);
    broker.checkpoint(&store, &position(6)).unwrap_err();
    assert_eq!(store.committed_offset(&changelog()).unwrap(), Some(offset(4)), "offset 5 was never acknowledged");
}

#[test]
fn ho_48_an_oversized_value_fails_the_checkpoint_as_a_whole() {
    on_each_backend(scenarios::ho_48_an_oversized_value_fails_the_checkpoint_as_a_whole);
}

/// A transaction delivers outputs, too; they are no changelog's.
#[test]
fn p2_only_changelogs_have_changelog_offsets() {
    struct WithOutputs(Broker);

    impl ChangelogWriter for WithOutputs {
        fn check(&self, record: ChangelogRecord<'_>) -> Result<()> {
            self.0.check(record)
        }

        fn append(&mut self, partition: &TopicPartition, record: ChangelogRecord<'_>) -> Result<()> {
            self.0.append(partition, record)
        }

        fn flush(&mut self) -> Result<ChangelogOffsets> {
            Ok(self.0.flush()?.with(TopicPartition::new("output", 0), offset(99)))
        }
    }

    let (broker, store) = (Broker::new(Vec::new()), memory_store());
    store.put(b"a", b"1").unwrap();
    let mut changelogs = WithOutputs(broker.clone());
    let committed = checkpoint(&[task(&store)], &position(10), &mut changelogs, &mut broker.clone()).unwrap();
    assert_eq!(committed.changelog_offsets, ChangelogOffsets::new().with(changelog(), offset(0)));
}
