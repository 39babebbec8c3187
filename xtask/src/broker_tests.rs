//! The tests that need a real Kafka broker: every test of the integration tests named `broker` or `broker_...`.

use std::process::Command;

use kstate_test_broker::{Broker, Tools};

use crate::cargo;
use crate::child;
use crate::failure::{Failure, Result};
use crate::metadata::Metadata;
use crate::report;
use crate::tally::Tally;

/// Where the tests find the broker's address.
pub(crate) const ADDRESS: &str = "KSTATE_TEST_BROKERS";

/// Whether the tests of this integration test need a broker.
pub(crate) fn needs_broker(target: &str) -> bool {
    target == "broker" || target.starts_with("broker_")
}

pub(crate) fn run(arguments: &[String], tally: &mut Tally) -> Result<()> {
    report::step("tests against a real Kafka broker");
    let metadata = Metadata::read()?;
    let targets: Vec<&str> = metadata.integration_tests().into_iter().filter(|name| needs_broker(name)).collect();
    if targets.is_empty() {
        report::note("there are none");
        return Ok(());
    }
    match Tools::find() {
        Ok(_) => against_broker(&targets, arguments, tally),
        Err(missing) => skip(&targets, arguments, tally, &missing),
    }
}

fn against_broker(targets: &[&str], arguments: &[String], tally: &mut Tally) -> Result<()> {
    // Compiled first: the broker need not wait for that.
    let mut build = test(targets);
    build.arg("--no-run");
    child::run(build, |_| {})?;
    // Dropped, and with it stopped, whichever way this function ends.
    let broker = Broker::start().map_err(|error| Failure::because("no Kafka broker", error))?;
    report::note(&format!("the broker is ready at {}", broker.bootstrap_servers()));
    let mut command = test(targets);
    command.args(["--no-fail-fast", "--", "--include-ignored"]).args(arguments);
    command.env(ADDRESS, broker.bootstrap_servers());
    child::run(command, |line| tally.read(line))
}

fn skip(targets: &[&str], arguments: &[String], tally: &mut Tally, missing: &kstate_test_broker::Error) -> Result<()> {
    let mut list = test(targets);
    list.args(["--", "--list", "--ignored"]).args(arguments);
    let listed = child::capture(list)?;
    let names: Vec<&str> = listed.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    for name in &names {
        report::left_out(&format!("SKIPPED for want of a broker: {name}"));
    }
    tally.add_skipped(names.len());
    let summary = format!("{} tests need a real Kafka broker and were not run: {missing}", names.len());
    report::left_out(&summary);
    report::left_out("install Java 17 or newer and Maven (apt-get install default-jre-headless maven) to run them");
    if report::everything_is_required() {
        Err(Failure::new(format!("CI=true requires them: {summary}")))
    } else {
        Ok(())
    }
}

fn test(targets: &[&str]) -> Command {
    let mut command = cargo::release("test");
    for target in targets {
        command.args(["--test", target]);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::needs_broker;

    #[test]
    fn a_broker_test_is_known_by_its_name() {
        assert!(needs_broker("broker") && needs_broker("broker_restart"));
        assert!(!needs_broker("brokers") && !needs_broker("embedded_broker"));
    }
}
