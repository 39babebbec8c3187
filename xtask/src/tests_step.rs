//! The tests that need nothing but this machine.

use crate::broker_tests::needs_broker;
use crate::cargo;
use crate::child;
use crate::failure::Result;
use crate::metadata::Metadata;
use crate::report;
use crate::tally::Tally;

/// The examples in the documentation.
pub(crate) fn documentation(arguments: &[String], tally: &mut Tally) -> Result<()> {
    report::step("tests in the documentation");
    let mut command = cargo::release("test");
    command.args(["--no-fail-fast", "--doc", "--"]).args(arguments);
    child::run(command, |line| tally.read(line))
}

/// All other tests but those of the targets that need a broker: these are run, or reported, by themselves.
pub(crate) fn without_broker(arguments: &[String], tally: &mut Tally) -> Result<()> {
    report::step("tests");
    let metadata = Metadata::read()?;
    let mut command = cargo::release("test");
    command.args(["--no-fail-fast", "--lib", "--bins"]);
    for target in metadata.integration_tests().into_iter().filter(|name| !needs_broker(name)) {
        command.args(["--test", target]);
    }
    // The tests of full disks mount small ones, which may be refused to a user but not to CI's root.
    if report::everything_is_required() {
        command.env("KSTATE_REQUIRE_TMPFS", "1");
    }
    command.arg("--").args(arguments);
    child::run(command, |line| tally.read(line))
}
