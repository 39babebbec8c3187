//! HO-43, where the conformance suite cannot look: an inverted range is empty in every backend, and each says so once.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "shared by tests, which fail by panicking")]

use super::events::warnings_during;
use kstate_api::{CursorExt, KeyRange, KeyValueStore, Order};

/// Scans inverted and good ranges of `store`, which has rows that are committed and rows that are staged.
pub fn each_inverted_range_is_warned_of_once(store: &dyn KeyValueStore) {
    let keys = [-1_i32, 0, 1].map(i32::to_be_bytes);
    store.put(&keys[0], b"committed").unwrap();
    store.put(&keys[1], b"committed").unwrap();
    store.commit(&kstate_api::ChangelogOffsets::new()).unwrap();
    store.put(&keys[2], b"staged").unwrap();

    let [minus_one, zero, one] = &keys;
    for order in [Order::Ascending, Order::Descending] {
        // Two's complement sorts -1 after 1.
        for range in [KeyRange::between(minus_one, one), KeyRange::between(b"b", b"a")] {
            let warnings = warnings_during(|| {
                let mut rows = store.scan(&range, order).unwrap();
                assert_eq!(rows.next_row().unwrap(), None);
                assert_eq!(rows.next_row().unwrap(), None, "the end stays the end");
            });
            assert_eq!(warnings.len(), 1, "{range:?}, {order:?}: {warnings:?}");
            let warning = warnings.first().unwrap();
            assert!(warning.starts_with("WARN") && warning.contains("range"), "{warnings:?}");
        }
        for range in [KeyRange::between(zero, one), KeyRange::between(zero, zero), KeyRange::between(b"x", b"y")] {
            let warnings = warnings_during(|| drop(store.scan(&range, order).unwrap()));
            assert_eq!(warnings, [""; 0], "{range:?}, {order:?}");
        }
    }
}
