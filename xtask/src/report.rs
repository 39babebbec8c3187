//! What the person at the terminal reads between the programs' own output.

use std::env;
use std::process::ExitCode;

use crate::failure::Failure;

/// Names the step that begins.
pub(crate) fn step(name: &str) {
    println!("\n==> {name}");
}

/// Says what was found or done inside a step.
pub(crate) fn note(text: &str) {
    println!("    {text}");
}

/// Says that something was left out: it must not be overlooked.
pub(crate) fn left_out(text: &str) {
    println!("!!! {text}");
}

/// The line of a run that failed.
pub(crate) fn failed(failure: &Failure) -> ExitCode {
    println!("\nFAILED: {failure}");
    ExitCode::FAILURE
}

/// Whether this run may leave nothing out.
pub(crate) fn everything_is_required() -> bool {
    env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}
