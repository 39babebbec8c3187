//! Runs the example, which checks its result itself, on a real broker.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{env, process::Command};

#[test]
#[ignore = "needs a real Kafka broker: cargo xtask test starts one"]
fn both_guarantees_give_the_exact_result() {
    let brokers = env::var("KSTATE_TEST_BROKERS").unwrap();
    for guarantee in ["at-least-once", "exactly-once"] {
        let arguments = ["--orders", "500", "--brokers", &brokers, "--guarantee", guarantee];
        let output = Command::new(env!("CARGO_BIN_EXE_enrichment")).args(arguments).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let last = str::from_utf8(&output.stdout).unwrap().lines().last().unwrap();
        assert_eq!(last, "every order, every count and the dead letter are as they should be");
    }
}
