//! Random operations, whose answers a sorted map foretells.

use std::{env, fmt::Write};

use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

use crate::{Capability, CaseResult, Ctx, Operation, Violation, model, operation};

/// How many sequences of operations are tried, unless `PROPTEST_CASES` says otherwise.
const SEQUENCES: u32 = 48;
/// How long a sequence that fails is made shorter, in milliseconds.
const SHRINKING: u32 = 60_000;

pub(crate) fn model_random_operations_agree_with_a_map(ctx: &Ctx) -> CaseResult {
    let mut config = Config { failure_persistence: None, max_shrink_time: SHRINKING, ..Config::default() };
    if env::var_os("PROPTEST_CASES").is_none() {
        config.cases = SEQUENCES;
    }
    let run = |operations: Vec<Operation>| {
        model::run(ctx, &operations).map_err(|violation| TestCaseError::fail(violation.to_string()))
    };
    match TestRunner::new(config).run(&operation::operations(), run) {
        Ok(()) => Ok(()),
        Err(TestError::Fail(reason, operations)) => Err(pasteable(ctx, &operations, reason.message())),
        Err(TestError::Abort(reason)) => Err(Violation::new(format!("the suite itself gave up: {reason}"))),
    }
}

/// The violation that `operations` lead to, with a test to paste.
fn pasteable(ctx: &Ctx, operations: &[Operation], reason: &str) -> Violation {
    let violation = match model::run(ctx, operations) {
        Err(violation) => violation,
        Ok(()) => Violation::new(format!("{reason}; it did not when the same operations were run again")),
    };
    let declared = Capability::ALL.map(|capability| ctx.declares(capability));
    let steps = operations.iter().fold(String::new(), |mut steps, operation| {
        // Writing to a string does not fail.
        let _ = writeln!(steps, "        {operation:?},");
        steps
    });
    violation.with_note(&format!(
        "this test fails for the same reason:\n\
         #[test]\n\
         fn found_by_the_model() {{\n    \
             use std::ops::Bound;\n    \
             use kstate_api::Order;\n    \
             use kstate_conformance_tests::{{Declared, Operation, Suite}};\n    \
             let suite = Suite::new(/* the harness */, Declared::from_values({declared:?}));\n    \
             suite.replay(&[\n{steps}    ]).unwrap();\n\
         }}"
    ))
}
