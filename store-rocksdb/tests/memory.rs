//! HO-62: memory does not grow with the number of stores.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use kstate_api::{Backend, Durability, Offset, ReadOnlyKeyValueStore, TopicPartition, WriteBatch};
use kstate_store_rocksdb::{RocksDbBackend, RocksDbMemory, RocksDbOptions};

const MIB: usize = 1 << 20;

/// Resident memory of this process, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

#[test]
#[cfg(target_os = "linux")]
fn ho_62_many_stores_share_one_memory() {
    const TOTAL: usize = 64 * MIB;
    let before = resident();
    let memory = RocksDbMemory::new(TOTAL, TOTAL / 2);
    let directory = tempfile::tempdir().unwrap();
    let options = RocksDbOptions::new().durability(Durability::Eventual).memory(memory.clone());
    let stores: Vec<_> =
        (0..60).map(|n| RocksDbBackend::open(&directory.path().join(n.to_string()), &options).unwrap()).collect();
    let mut highest = 0;
    // 10 MiB into each, round after round as a consumer does: 600 MiB together.
    for round in 0..10 {
        for store in &stores {
            let mut commit = WriteBatch::new();
            for n in 0..1024 {
                commit.put(format!("{round}-{n}"), vec![round; 1024]);
            }
            commit.set_offset(TopicPartition::new("counts-changelog", 0), Offset::new(round.into()).unwrap());
            store.apply(&commit).unwrap();
        }
        highest = highest.max(resident());
    }
    for store in &stores {
        for key in ["0-0", "5-500", "9-1023"] {
            assert!(store.get_with(key.as_bytes(), &mut |_| {}).unwrap());
        }
    }
    highest = highest.max(resident());
    let grown = highest.saturating_sub(before);
    eprintln!("resident: {} MiB more, {} MiB in the memory", grown / MIB, memory.usage() / MIB);
    // The memory, and what it does not hold: some 2 MiB for each open database.
    assert!(grown < TOTAL + 60 * 2 * MIB, "{} MiB", grown / MIB);
    drop(stores);
    assert_eq!(memory.write_buffers().get_usage(), 0);
}
