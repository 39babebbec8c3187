//! The project's checks behind one command: `cargo xtask test`.

mod broker_tests;
mod cargo;
mod child;
mod conformance;
mod deny;
mod failure;
mod house;
mod interrupt;
mod lints;
mod metadata;
mod purity;
mod report;
mod serve;
mod system_packages;
mod tally;
mod tests_step;

use std::env;
use std::process::ExitCode;

use crate::failure::Result;
use crate::tally::Tally;

const HELP: &str = "\
cargo xtask COMMAND

  test [ARGS...]   every check and every test, on a real Kafka broker too; ARGS go to the test programs (a filter, say)
  check            the part of it that runs no test: format, lints, documentation, dependencies
  conformance      runs the conformance suite on the bundled stores and prints what came of it as a Markdown table
  broker           starts a Kafka broker, prints its address and keeps it until Ctrl-C
  help             this

Builds go to $CARGO_TARGET_DIR, or else beside the fetched things into $KSTATE_CACHE_DIR (~/.cache/kstate).
With CI=true nothing but rustfmt and clippy is skipped for want of a program: it fails instead.
";

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let command = arguments.next();
    let rest: Vec<String> = arguments.collect();
    if let Err(failure) = interrupt::watch() {
        return report::failed(&failure);
    }
    match (command.as_deref(), rest.is_empty()) {
        (Some("test"), _) => test(&rest),
        (Some("check"), true) => conclude(check()),
        // Its output is a document: how it ended does not belong into it.
        (Some("conformance"), true) => conformance::report().map_or_else(
            |failure| {
                eprintln!("FAILED: {failure}");
                ExitCode::FAILURE
            },
            |()| ExitCode::SUCCESS,
        ),
        (Some("broker"), true) => conclude(serve::until_interrupted()),
        (Some("help" | "-h" | "--help"), true) => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        _ => {
            eprint!("{HELP}");
            ExitCode::from(2)
        }
    }
}

/// What compiles nothing but our own crates' check comes first, what needs a broker last.
fn check() -> Result<()> {
    system_packages::ensure()?;
    lints::format()?;
    lints::clippy()?;
    lints::documentation()?;
    purity::check()
}

fn test(arguments: &[String]) -> ExitCode {
    let mut tally = Tally::default();
    let outcome = check()
        .and_then(|()| deny::check())
        .and_then(|()| tests_step::documentation(arguments, &mut tally))
        .and_then(|()| tests_step::without_broker(arguments, &mut tally))
        .and_then(|()| broker_tests::run(arguments, &mut tally));
    if outcome.is_err() {
        // A check or a build that failed reports no test; the closing line must not look like a success.
        tally.note_failed_step();
    }
    let code = conclude(outcome);
    println!("{tally}");
    code
}

fn conclude(outcome: Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report::failed(&failure),
    }
}
