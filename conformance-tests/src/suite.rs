use std::{
    any::Any,
    env, fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use crate::{
    Capability, Case, Clause, Ctx, Declared, Harness, Operation, StateStoreHarness, StateStoreOnly, Violation, child,
    harness::AnyHarness, model,
};

/// A case that takes longer has met a deadlock or an endless loop.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// The suite, for one store under test: what [`conformance_tests!`](crate::conformance_tests) is made of, for those who
/// drive the cases otherwise.
///
/// ```
/// use kstate_conformance_tests::{BackendHarness, CASES, Capability, Declared, Outcome, Suite};
/// use kstate_store_memory::MemoryBackends;
///
/// let declared = Declared::new(&[Capability::ManagesOffsets, Capability::Snapshots, Capability::ReverseScan]);
/// let suite = Suite::new(BackendHarness::new(MemoryBackends::new()), declared);
/// for case in CASES.iter().filter(|case| case.name().starts_with("o3_")) {
///     assert_eq!(suite.run(case).unwrap(), Outcome::Passed);
/// }
/// ```
pub struct Suite {
    harness: Arc<dyn AnyHarness>,
    declared: Declared,
    respawn: Option<Respawn>,
}

impl fmt::Debug for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { harness: _, declared, respawn } = self;
        f.debug_struct("Suite").field("declared", declared).field("respawn", respawn).finish_non_exhaustive()
    }
}

/// How a case starts this program again.
#[derive(Clone, Debug)]
pub(crate) struct Respawn {
    /// The name of the `#[test]` that runs the case.
    pub(crate) test: String,
}

/// What became of a case that did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The store keeps the clause.
    Passed,
    /// The case does not apply, and why.
    Skipped(String),
}

impl Suite {
    /// A suite for the store that `harness` opens.
    ///
    /// ```
    /// # use kstate_conformance_tests::{BackendHarness, Declared, Suite};
    /// # use kstate_store_memory::MemoryBackends;
    /// let suite = Suite::new(BackendHarness::new(MemoryBackends::new()), Declared::new(&[]));
    /// ```
    pub fn new(harness: impl Harness + 'static, declared: Declared) -> Self {
        Self { harness: Arc::new(harness), declared, respawn: None }
    }

    /// The same suite, whose cases may start this program again: `test` is the path of the `#[test]` that runs them,
    /// `concat!(module_path!(), "::name_of_the_test")`.
    ///
    /// Cases that kill a process need it, and fail without.
    ///
    /// ```
    /// # use kstate_conformance_tests::{BackendHarness, Declared, Suite};
    /// # use kstate_store_memory::MemoryBackends;
    /// # let (harness, declared) = (BackendHarness::new(MemoryBackends::new()), Declared::new(&[]));
    /// let suite = Suite::new(harness, declared).respawned_by(concat!(module_path!(), "::my_store"));
    /// ```
    #[must_use]
    pub fn respawned_by(mut self, test: &str) -> Self {
        // The test's name in its binary lacks the name of the crate.
        let test = test.split_once("::").map_or(test, |(_, name)| name);
        self.respawn = Some(Respawn { test: test.to_owned() });
        self
    }

    /// Runs `case` in a directory of its own.
    ///
    /// # Errors
    /// The violation that was seen. A panic of the store is one, and so is a case that does not end within 5 minutes.
    ///
    /// ```
    /// # use kstate_conformance_tests::{BackendHarness, Declared, Outcome, Suite, case};
    /// # use kstate_store_memory::MemoryBackends;
    /// let suite = Suite::new(BackendHarness::new(MemoryBackends::new()), Declared::new(&[]));
    /// let outcome = suite.run(case("r2_a_snapshot_is_committed_data_only").unwrap()).unwrap();
    /// assert_eq!(outcome, Outcome::Skipped("store declares `snapshots: false`".into()));
    /// ```
    pub fn run(&self, case: &'static Case) -> Result<Outcome, Violation> {
        if let Some(reason) = case.skipped(self.declared) {
            return Ok(Outcome::Skipped(reason));
        }
        if let Some((child_case, root)) = child::role() {
            if child_case != case.name {
                return Ok(Outcome::Skipped(format!("this process was started by the case `{child_case}`")));
            }
            return (case.run)(&self.ctx(case, root, true)).map(|()| Outcome::Passed);
        }
        let directory = tempfile::Builder::new().prefix("kstate-conformance-").tempdir().map_err(Violation::from);
        directory
            .and_then(|directory| {
                let result = in_time(case, self.ctx(case, directory.path().to_owned(), false));
                result.map(|()| Outcome::Passed)
            })
            .map_err(|violation| violation.of(case.clause))
    }

    /// Runs `case` as a `#[test]` does.
    ///
    /// # Panics
    /// With the violation that was seen.
    ///
    /// ```
    /// # use kstate_conformance_tests::{BackendHarness, Declared, Suite, case};
    /// # use kstate_store_memory::MemoryBackends;
    /// let suite = Suite::new(BackendHarness::new(MemoryBackends::new()), Declared::new(&[]));
    /// suite.check(case("r1_keys_are_ordered_as_unsigned_bytes").unwrap());
    /// ```
    #[track_caller]
    #[expect(clippy::panic, reason = "this is how a test fails")]
    pub fn check(&self, case: &'static Case) {
        match self.run(case) {
            Ok(Outcome::Passed) => {}
            Ok(Outcome::Skipped(reason)) => println!("{} is skipped: {reason}", case.name),
            Err(violation) => panic!("{violation}\n  the case: {}", case.about),
        }
    }

    /// Runs `operations` on a new store, and checks each answer: what the model test does with random ones, for a
    /// sequence that it has found.
    ///
    /// # Errors
    /// The violation that was seen.
    ///
    /// ```
    /// use kstate_conformance_tests::{BackendHarness, Capability, Declared, Operation, Suite};
    /// use kstate_store_memory::MemoryBackends;
    ///
    /// let declared = Declared::new(&[Capability::ManagesOffsets, Capability::Snapshots, Capability::ReverseScan]);
    /// let suite = Suite::new(BackendHarness::new(MemoryBackends::new()), declared);
    /// suite.replay(&[Operation::Put(b"\xFF", b""), Operation::Commit(Some(3), None), Operation::Reopen]).unwrap();
    /// ```
    pub fn replay(&self, operations: &[Operation]) -> Result<(), Violation> {
        let directory = tempfile::tempdir()?;
        model::run(&self.ctx(&REPLAY, directory.path().to_owned(), false), operations)
            .map_err(|violation| violation.of(REPLAY.clause))
    }

    fn ctx(&self, case: &'static Case, root: PathBuf, is_child: bool) -> Ctx {
        Ctx {
            harness: Arc::clone(&self.harness),
            declared: self.declared,
            case,
            root,
            respawn: self.respawn.clone(),
            is_child,
        }
    }
}

/// The case as which operations are replayed; what to run is not in the table.
static REPLAY: Case = Case {
    name: "replay",
    clause: Clause::O2,
    needs: &[],
    about: "the operations agree with a sorted map",
    run: |_| Ok(()),
};

/// Runs the case on a thread of its own, which is left behind if it hangs.
fn in_time(case: &'static Case, ctx: Ctx) -> Result<(), Violation> {
    let (sender, receiver) = mpsc::channel();
    let run = move || {
        let result = catch_unwind(AssertUnwindSafe(|| (case.run)(&ctx)))
            .unwrap_or_else(|panic| Err(Violation::new(format!("the store panicked: {}", message(&*panic)))));
        // Nobody listens any more if it took too long.
        let _ = sender.send(result);
    };
    let thread = thread::Builder::new().name(case.name.to_owned()).spawn(run)?;
    let result = receiver
        .recv_timeout(TIME_LIMIT)
        .map_err(|_| Violation::new(format!("the case did not end within {} s", TIME_LIMIT.as_secs())))?;
    // It has nothing left to do but to drop what the case had; a panic there has been seen already.
    let _ = thread.join();
    result
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)")
}

/// Whether this process was started by a case of the suite, for those who drive the cases otherwise: such a process
/// runs its part of that case and is killed.
///
/// ```
/// assert!(!kstate_conformance_tests::is_child_process());
/// ```
#[must_use]
pub fn is_child_process() -> bool {
    env::var_os(child::CASE).is_some()
}

/// What a `#[test]` of [`conformance_tests!`](crate::conformance_tests) does.
#[doc(hidden)]
#[track_caller]
#[expect(clippy::expect_used, reason = "the macro takes the names from the table")]
pub fn __run_test(
    harness: impl Harness + 'static,
    declared: [bool; Capability::ALL.len()],
    module_path: &str,
    name: &'static str,
) {
    let case = crate::case(name).expect("the case is in the table");
    Suite::new(harness, Declared::from_values(declared)).respawned_by(&format!("{module_path}::{name}")).check(case);
}

/// What a `#[test]` of [`conformance_tests!`](crate::conformance_tests) does for a store that is a `StateStore` only.
#[doc(hidden)]
#[track_caller]
#[expect(clippy::expect_used, reason = "the macro takes the names from the table")]
pub fn __run_state_store_test(
    harness: impl StateStoreHarness,
    declared: [bool; Capability::ALL.len()],
    module_path: &str,
    name: &'static str,
) {
    let case = crate::case(name).expect("the case is in the table");
    let declared = Declared::from_values(declared).and(Capability::StateStoreOnly);
    let suite = Suite::new(StateStoreOnly::new(harness), declared);
    suite.respawned_by(&format!("{module_path}::{name}")).check(case);
}
