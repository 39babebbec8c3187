//! Random operations, whose answers a sorted map foretells.

use std::{
    cell::Cell,
    env,
    fmt::Write,
    time::{Duration, Instant},
};

use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

use crate::{Capability, CaseResult, Ctx, Operation, Violation, model, operation};

/// How many sequences of operations are tried, unless `PROPTEST_CASES` says otherwise: these, while there is time.
const SEQUENCES: u32 = 64;
/// How many are tried however long it takes.
const LEAST: u32 = 8;
const TIME: Duration = Duration::from_secs(15);
/// How long a sequence that fails is made shorter, in milliseconds.
const SHRINKING: u32 = 60_000;

pub(crate) fn model_random_operations_agree_with_a_map(ctx: &Ctx) -> CaseResult {
    let mut config = Config { failure_persistence: None, max_shrink_time: SHRINKING, ..Config::default() };
    let in_haste = env::var_os("PROPTEST_CASES").is_none();
    if in_haste {
        config.cases = SEQUENCES;
    }
    let started = Instant::now();
    let (tried, failed) = (Cell::new(0), Cell::new(false));
    let run = |operations: Vec<Operation>| {
        tried.set(tried.get() + 1);
        // A failure that is being made shorter may take its time.
        if in_haste && tried.get() > LEAST && !failed.get() && started.elapsed() > TIME {
            return Ok(());
        }
        let result = model::run(ctx, &operations);
        failed.set(failed.get() || result.is_err());
        result.map_err(|violation| TestCaseError::fail(violation.to_string()))
    };
    match TestRunner::new(config).run(&operation::operations(), run) {
        Ok(()) => Ok(()),
        Err(TestError::Fail(reason, operations)) => Err(pasteable(ctx, &operations, reason.message())),
        Err(TestError::Abort(reason)) => Err(Violation::new(format!("the suite itself gave up: {reason}"))),
    }
}

/// The violation that `operations` lead to, with a test to paste.
fn pasteable(ctx: &Ctx, operations: &[Operation], reason: &str) -> Violation {
    let Err(violation) = model::run(ctx, operations) else {
        return Violation::new(format!("{reason}; not so when the same operations ran again: {operations:#?}"));
    };
    let declared = Capability::ALL.map(|capability| ctx.declares(capability));
    let mut test = format!(
        "this test fails for the same reason:\n\
         #[test]\n\
         fn found_by_the_model() {{\n    \
             use std::ops::Bound;\n    \
             use kstate_api::Order;\n    \
             use kstate_conformance_tests::{{Declared, Operation, Suite}};\n    \
             let suite = Suite::new(/* the harness */, Declared::from_values({declared:?}));\n    \
             suite.replay(&[\n"
    );
    for operation in operations {
        // Writing to a string does not fail.
        let _ = writeln!(test, "        {operation:?},");
    }
    test.push_str("    ]).unwrap();\n}");
    violation.with_note(&test)
}
