//! Counting in a process that is killed, on the embedded cluster.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::fs;

use common::{STORES, assert_counts, assert_restarts, assert_taken_over, count, distinct_words, run, text, word_count};

#[test]
fn counts_are_exact_however_often_the_process_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("text");
    let text = text(300_000, 30_000);
    fs::write(&path, &text).unwrap();
    let expected = count(&[text.as_bytes()]);
    for store in STORES {
        let mut command = word_count(&["--kill", "3", "--store", store, "--format", "json", "--top", "0"]);
        let ended = run(command.arg("--input").arg(&path), b"");
        assert_counts(&ended.json(), &expected);
        assert_restarts(&ended, 3, 2);
    }
}

/// The input can be read only once, and its length is not known.
#[test]
fn standard_input_can_be_counted_with_kills_too() {
    let text = text(1_500_000, 20_000);
    let arguments =
        ["--kill", "4", "--partitions", "3", "--input", "-", "--format", "json", "--top", "0", "--store", "redb"];
    let ended = run(&mut word_count(&arguments), text.as_bytes());
    assert_counts(&ended.json(), &count(&[text.as_bytes()]));
    assert_restarts(&ended, 4, 3);
}

/// With so many checkpoints, kills meet all parts of them.
#[test]
fn kills_between_frequent_checkpoints_are_survived() {
    let text = text(100_000, 50_000);
    let expected = count(&[text.as_bytes()]);
    for store in STORES {
        let arguments = [
            "--kill",
            "8",
            "--commit-interval-ms",
            "1",
            "--input",
            "-",
            "--format",
            "json",
            "--top",
            "0",
            "--store",
            store,
        ];
        let ended = run(&mut word_count(&arguments), text.as_bytes());
        assert_counts(&ended.json(), &expected);
        assert_restarts(&ended, 8, 2);
        // Memory forgets all at each kill; the others hold what they committed.
        if *store == "memory" {
            assert!(ended.json()["restored_records"].as_u64().unwrap() > 0, "{ended:?}");
        } else {
            assert!(ended.stderr.contains(" held the changelog up to offset "), "{}", ended.stderr);
        }
    }
}

#[test]
fn killed_threads_are_survived_too() {
    let text = text(300_000, 30_000);
    let arguments =
        ["--kill", "3", "--threads", "2", "--partitions", "3", "--input", "-", "--format", "json", "--top", "0"];
    let ended = run(&mut word_count(&arguments), text.as_bytes());
    assert_counts(&ended.json(), &count(&[text.as_bytes()]));
    assert_restarts(&ended, 3, 3);
}

/// Two processes, each of which takes over from the other when that is killed, and the first one at the end.
#[test]
fn a_standby_takes_over() {
    let text = text(300_000, 30_000);
    let expected = count(&[text.as_bytes()]);
    for kills in [0, 2] {
        let kill = kills.to_string();
        let mut arguments = vec!["--standby", "--input", "-", "--format", "json", "--top", "0"];
        if kills > 0 {
            arguments.extend(["--kill", kill.as_str()]);
        }
        let ended = run(&mut word_count(&arguments), text.as_bytes());
        assert_counts(&ended.json(), &expected);
        assert_taken_over(&ended, kills);
    }
}

#[test]
fn an_input_too_small_to_kill_in_is_killed_in_all_the_same() {
    let ended = run(&mut word_count(&["--kill", "2", "--input", "-", "--format", "json", "--top", "0"]), b"one word");
    assert_counts(&ended.json(), &count(&[b"one word"]));
    assert_restarts(&ended, 2, 2);
}

#[test]
fn the_default_input_is_killed_in_and_both_totals_are_printed() {
    let ended = run(&mut word_count(&["--kill", "1"]), b"");
    assert!(ended.status.success(), "{ended:?}");
    let last = ended.stdout.lines().last().unwrap();
    let totals = last.strip_prefix("counted on Kafka: ").and_then(|rest| rest.split_once("; plain count: ")).unwrap();
    assert_eq!(totals.1.strip_suffix(": equal, word by word"), Some(totals.0));
    assert!(ended.stdout.contains("\n1 restart, "), "{}", ended.stdout);
}

/// A store that forgets everything cannot be rebuilt from a log that forgets its beginning.
#[test]
fn a_state_too_large_for_the_embedded_log_is_refused() {
    let text = distinct_words(1_000_000);
    let arguments = ["--kill", "3", "--store", "memory", "--partitions", "1", "--input", "-"];
    let ended = run(&mut word_count(&arguments), text.as_bytes());
    assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
    let sentence = ended.stderr.lines().last().unwrap();
    assert!(sentence.starts_with("error: the embedded cluster keeps only"), "{}", ended.stderr);
    assert!(sentence.contains("--brokers"), "{}", ended.stderr);
}
