use crate::{Capability, CaseResult, Clause, Ctx, Declared};

/// What a store has to declare for a case to apply to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// The capability.
    pub capability: Capability,
    /// Whether it has to be declared `true` or `false`.
    pub declared: bool,
}

/// One case of the suite: its name never changes, and says what it checks.
///
/// ```
/// use kstate_conformance_tests::{Clause, case};
///
/// let case = case("o3_a_lower_offset_is_stored_as_given").unwrap();
/// assert_eq!(case.clause(), Clause::O3);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub(crate) name: &'static str,
    pub(crate) clause: Clause,
    pub(crate) needs: &'static [Need],
    pub(crate) about: &'static str,
    pub(crate) run: fn(&Ctx) -> CaseResult,
}

impl Case {
    /// The name, which is that of its `#[test]` too.
    ///
    /// ```
    /// assert!(kstate_conformance_tests::CASES.iter().all(|case| !case.name().is_empty()));
    /// ```
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The clause of the contract that it checks.
    ///
    /// ```
    /// # use kstate_conformance_tests::{CASES, Clause};
    /// assert!(CASES.iter().any(|case| case.clause() == Clause::R3));
    /// ```
    #[must_use]
    pub const fn clause(&self) -> Clause {
        self.clause
    }

    /// What a store has to declare for this case to apply.
    ///
    /// ```
    /// # use kstate_conformance_tests::CASES;
    /// assert!(CASES.iter().any(|case| case.needs().is_empty()));
    /// ```
    #[must_use]
    pub const fn needs(&self) -> &'static [Need] {
        self.needs
    }

    /// What it checks, in a sentence.
    ///
    /// ```
    /// # use kstate_conformance_tests::CASES;
    /// assert!(CASES.iter().all(|case| !case.about().is_empty()));
    /// ```
    #[must_use]
    pub const fn about(&self) -> &'static str {
        self.about
    }

    /// Why it does not apply to a store that declares `declared`; `None` if it does.
    ///
    /// ```
    /// # use kstate_conformance_tests::{CASES, Declared, case};
    /// let case = case("r2_a_snapshot_is_committed_data_only").unwrap();
    /// assert_eq!(case.skipped(Declared::new(&[])).as_deref(), Some("store declares `snapshots: false`"));
    /// ```
    #[must_use]
    pub fn skipped(&self, declared: Declared) -> Option<String> {
        let unmet = self.needs.iter().find(|need| declared.has(need.capability) != need.declared)?;
        Some(format!("store declares `{}: {}`", unmet.capability, !unmet.declared))
    }
}

/// The case called `name`.
///
/// ```
/// assert!(kstate_conformance_tests::case("no_such_case").is_none());
/// ```
#[must_use]
pub fn case(name: &str) -> Option<&'static Case> {
    crate::CASES.iter().find(|case| case.name == name)
}
