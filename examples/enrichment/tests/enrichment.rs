//! Runs the example, which checks its result itself.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::process::{Command, Output};

fn enrichment(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_enrichment")).args(arguments).output().unwrap()
}

#[test]
fn every_order_is_enriched_in_the_order_of_its_customer() {
    let output = enrichment(&["--orders", "500"]);
    assert!(output.status.success(), "{output:?}");
    let stdout = str::from_utf8(&output.stdout).unwrap();
    let lines = stdout.lines().collect::<Vec<_>>();
    assert!(lines[0].starts_with("500 orders in ") && lines[0].ends_with(" with 8 workers"), "{stdout}");
    assert_eq!(lines[1], "one worker would need 3.44s for its look-ups alone");
    assert_eq!(lines[2], "1 dead letter after 2 retries");
    // While the poison waits for its next attempt, others are done.
    let (_, holes) = lines[3].split_once("; at most ").unwrap();
    assert!(holes.split_once(' ').unwrap().0.parse::<usize>().unwrap() > 0, "{stdout}");
    assert_eq!(lines[4], "every order, every count and the dead letter are as they should be");
    assert_eq!((lines.len(), output.stderr.as_slice()), (5, &b""[..]));
}

#[test]
fn exactly_once_needs_a_real_cluster() {
    let output = enrichment(&["--guarantee", "exactly-once"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(str::from_utf8(&output.stderr).unwrap().contains("--brokers"), "{output:?}");
}
