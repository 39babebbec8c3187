//! Counting on a real Kafka broker.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::{env, fs, time::Duration};

use common::{
    Ended, STORES, assert_counts, assert_restarts, assert_taken_over, count, distinct_words, run, text, wait_until,
    word_count,
};
use kstate_kafka::rdkafka::{
    ClientConfig,
    consumer::{BaseConsumer, Consumer as _},
};

fn brokers() -> String {
    env::var("KSTATE_TEST_BROKERS").unwrap()
}

/// The topics that the run made, which it logged, are gone.
fn assert_topics_deleted(ended: &Ended) {
    let logged =
        |line: &str| line.split_once("topic=\"").and_then(|(_, rest)| Some(rest.split_once('"')?.0.to_owned()));
    let created =
        ended.stderr.lines().filter(|line| line.contains("topic created")).filter_map(logged).collect::<Vec<_>>();
    assert_eq!(created.len(), 2, "{}", ended.stderr);
    let client: BaseConsumer = ClientConfig::new().set("bootstrap.servers", brokers()).create().unwrap();
    wait_until("the topics are deleted", || {
        let metadata = client.fetch_metadata(None, Duration::from_secs(10)).unwrap();
        !metadata.topics().iter().any(|topic| created.iter().any(|created| created == topic.name()))
    });
}

fn count_on_broker(arguments: &[&str], input: &[u8]) -> Ended {
    let brokers = brokers();
    let mut command = word_count(&["--brokers", &brokers, "--input", "-", "--format", "json", "--top", "0"]);
    // Without colours, so that the log can be read.
    run(command.args(arguments).env("RUST_LOG", "kstate_kafka::topics=info").env("NO_COLOR", "1"), input)
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn counts_are_exact_on_every_store() {
    let text = text(300_000, 30_000);
    let expected = count(&[text.as_bytes()]);
    for store in STORES {
        let ended = count_on_broker(&["--store", store], text.as_bytes());
        assert_counts(&ended.json(), &expected);
        assert_topics_deleted(&ended);
    }
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn counts_are_exact_however_often_the_process_is_killed() {
    let text = text(300_000, 30_000);
    let expected = count(&[text.as_bytes()]);
    for store in STORES {
        let ended = count_on_broker(&["--kill", "3", "--store", store], text.as_bytes());
        let result = ended.json();
        assert_counts(&result, &expected);
        assert_eq!(result["restarts"], 3);
        assert_topics_deleted(&ended);
    }
}

/// Also where each kill leaves a transaction open.
#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn counts_are_exact_however_often_a_transaction_is_cut_off() {
    let text = text(300_000, 30_000);
    let expected = count(&[text.as_bytes()]);
    for store in STORES {
        let ended = count_on_broker(&["--guarantee", "exactly-once", "--kill", "5", "--store", store], text.as_bytes());
        let result = ended.json();
        assert_counts(&result, &expected);
        assert_restarts(&ended, 5, 2);
        assert_topics_deleted(&ended);
    }
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn threads_share_the_partitions() {
    let text = text(300_000, 30_000);
    let expected = count(&[text.as_bytes()]);
    for guarantee in ["at-least-once", "exactly-once"] {
        let arguments = ["--guarantee", guarantee, "--threads", "2", "--partitions", "4", "--kill", "2"];
        assert_counts(&count_on_broker(&arguments, text.as_bytes()).json(), &expected);
    }
}

/// The other process takes over what it has copies of, and the killed one comes back.
#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn a_standby_takes_over() {
    let text = text(300_000, 30_000);
    let expected = count(&[text.as_bytes()]);
    for (store, guarantee) in [("redb", "at-least-once"), ("redb", "exactly-once"), ("memory", "at-least-once")] {
        let arguments = ["--standby", "--kill", "1", "--store", store, "--guarantee", guarantee];
        let ended = count_on_broker(&arguments, text.as_bytes());
        assert_counts(&ended.json(), &expected);
        assert_taken_over(&ended, 1);
        assert_topics_deleted(&ended);
    }
}

/// What the embedded cluster refuses, a compacted topic can do.
#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn a_large_state_is_rebuilt_from_nothing() {
    let text = distinct_words(1_000_000);
    let ended = count_on_broker(&["--kill", "3", "--store", "memory", "--partitions", "1"], text.as_bytes());
    let result = ended.json();
    assert_eq!((&result["words"], &result["distinct"]), (&1_000_000.into(), &1_000_000.into()));
    assert!(result["restored_records"].as_u64().unwrap() > 300_000, "{result}");
}

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn topics_are_deleted_after_a_failure_too() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("word-count/process-1/0_0");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "where a directory should be").unwrap();
    let ended = count_on_broker(&["--state-dir", directory.path().to_str().unwrap()], b"words");
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(ended.stderr.lines().last().unwrap().starts_with("error: cannot open the state in "), "{}", ended.stderr);
    assert_topics_deleted(&ended);
}
