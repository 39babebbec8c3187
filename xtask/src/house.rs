//! The plan of the house: which of our crates may depend on which.

/// The libraries, each with the libraries of ours it may depend on. No other arrow between them is allowed.
const ARROWS: [(&str, &[&str]); 10] = [
    (API, &[]),
    ("kstate-store-memory", &[API]),
    ("kstate-store-redb", &[API]),
    ("kstate-store-rocksdb", &[API]),
    ("kstate-state-kinds", &[API]),
    ("kstate-offset-cache", &[API]),
    ("kstate-checkpoint", &[API]),
    ("kstate-processing", &[API]),
    ("kstate-kafka", &[API, "kstate-state-kinds", "kstate-offset-cache", "kstate-checkpoint", "kstate-processing"]),
    ("kstate-conformance-tests", &[API, "kstate-state-kinds"]),
];

/// The crate that everything rests on.
pub(crate) const API: &str = "kstate-api";

/// What may not be below [`API`], beside native libraries of any kind: engines, Kafka clients, async runtimes.
pub(crate) const NOT_BELOW_API: [&str; 40] = [
    // engines
    "rocksdb",
    "rust-rocksdb",
    "speedb",
    "redb",
    "sled",
    "fjall",
    "lsm-tree",
    "heed",
    "lmdb",
    "lmdb-rkv",
    "libmdbx",
    "rusqlite",
    "persy",
    "jammdb",
    "nebari",
    "surrealkv",
    "imbl",
    "dashmap",
    // Kafka clients
    "rdkafka",
    "kafka",
    "rskafka",
    "krafka",
    "samsa",
    "kafka-protocol",
    // async runtimes
    "tokio",
    "async-std",
    "smol",
    "async-executor",
    "async-global-executor",
    "async-io",
    "futures-executor",
    "glommio",
    "monoio",
    "compio",
    "embassy-executor",
    "actix-rt",
    "pollster",
    "futures",
    "futures-util",
    "mio",
];

/// The libraries of ours that `name` may depend on; `None` for what is not a library of the plan.
pub(crate) fn allowed_below(name: &str) -> Option<&'static [&'static str]> {
    ARROWS.iter().find(|(library, _)| *library == name).map(|(_, below)| *below)
}
