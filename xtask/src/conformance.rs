//! What became of the conformance suite on the bundled stores, as a Markdown table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::cargo;
use crate::child;
use crate::failure::{Failure, Result};

/// The bundled stores: what a reader calls them, and their packages. Each has the suite in its test `conformance`.
const STORES: [(&str, &str); 3] =
    [("memory", "kstate-store-memory"), ("redb", "kstate-store-redb"), ("RocksDB", "kstate-store-rocksdb")];

const TEST: &str = "conformance";

/// What became of a case on one store.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Passed,
    /// Not tried, and why.
    Skipped(String),
    Failed,
}

/// A store as it was opened, and what became of each case.
type Column = (String, BTreeMap<String, Outcome>);

/// A case of the suite: name, clause, and what it checks.
type Case = (String, String, String);

/// Runs the suite and prints the table; fails if a case did.
pub(crate) fn report() -> Result<()> {
    let cases = cases()?;
    let mut columns = Vec::new();
    for (store, program) in programs()? {
        eprintln!("    the suite on {store}");
        let mut by_module = BTreeMap::new();
        // Its failure shows in the table, and is ours in the end.
        let ran = child::watch(Command::new(program), |line| {
            if let Some((module, case, outcome)) = read(line) {
                by_module.entry(module).or_insert_with(BTreeMap::new).insert(case, outcome);
            }
        });
        if by_module.is_empty() {
            ran?;
            return Err(Failure::new(format!("the suite did not run on {store}")));
        }
        columns.extend(by_module.into_iter().map(|(module, outcomes)| (column(store, &module), outcomes)));
    }
    print!("{}", table(&cases, &columns));
    let failed =
        columns.iter().flat_map(|(_, outcomes)| outcomes.values()).filter(|outcome| **outcome == Outcome::Failed);
    match failed.count() {
        0 => Ok(()),
        failed => Err(Failure::new(format!("{failed} cases failed"))),
    }
}

/// Every case, in the order of the suite's table.
fn cases() -> Result<Vec<Case>> {
    let mut command = cargo::cargo("run");
    command.args(["--quiet", "--release", "--package", "kstate-conformance-tests", "--example", "cases"]);
    let list = child::capture(command)?;
    let case = |line: &str| {
        let mut fields = line.splitn(3, '\t').map(str::to_owned);
        Some((fields.next()?, fields.next()?, fields.next()?))
    };
    Ok(list.lines().filter_map(case).collect())
}

/// Builds the stores' test programs and returns them with the stores' names.
fn programs() -> Result<Vec<(&'static str, PathBuf)>> {
    let mut command = cargo::release("test");
    command.args(["--test", TEST, "--no-run", "--message-format", "json-render-diagnostics"]);
    let messages = child::capture(command)?;
    let programs: BTreeMap<String, PathBuf> = messages.lines().filter_map(program).collect();
    STORES
        .into_iter()
        .map(|(store, package)| {
            let program = programs.iter().find(|(id, _)| is_of(id, package));
            let missing = || Failure::new(format!("cargo built no test `{TEST}` of {package}"));
            program.map(|(_, program)| (store, program.clone())).ok_or_else(missing)
        })
        .collect()
}

/// The package and the path of a test program, if the message is about one.
fn program(message: &str) -> Option<(String, PathBuf)> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_ours = message.get("target")?.get("name")? == TEST;
    let program = message.get("executable")?.as_str()?;
    is_ours.then(|| Some((message.get("package_id")?.as_str()?.to_owned(), program.into())))?
}

/// Whether a package's id is of `package`: `path+file:///.../store-redb#kstate-store-redb@0.1.0`, or a form of it.
fn is_of(id: &str, package: &str) -> bool {
    id.split(['#', '@', ' ']).any(|part| part == package)
}

/// `store` and the module of its tests; `through_trait_objects` is read as words.
fn column(store: &str, module: &str) -> String {
    if module.eq_ignore_ascii_case(store) { store.to_owned() } else { format!("{store}, {}", module.replace('_', " ")) }
}

/// Module, case and outcome in a line of a test program: `test sync::o3_any ... ignored, store declares ...`.
fn read(line: &str) -> Option<(String, String, Outcome)> {
    let (test, outcome) = line.trim_end().strip_prefix("test ")?.split_once(" ... ")?;
    let (module, case) = test.split_once("::")?;
    let outcome = match outcome.split_once(", ").unwrap_or((outcome, "")) {
        ("ok", _) => Outcome::Passed,
        ("ignored", reason) => Outcome::Skipped(reason.to_owned()),
        ("FAILED", _) => Outcome::Failed,
        _ => return None,
    };
    Some((module.to_owned(), case.to_owned(), outcome))
}

fn table(cases: &[Case], columns: &[Column]) -> String {
    let reasons: BTreeSet<&str> = columns
        .iter()
        .flat_map(|(_, outcomes)| outcomes.values())
        .filter_map(|outcome| if let Outcome::Skipped(reason) = outcome { Some(reason.as_str()) } else { None })
        .collect();
    let letter =
        |reason: &str| ('a'..).zip(&reasons).find(|(_, known)| **known == reason).map_or('?', |(letter, _)| letter);
    let cell = |outcome: Option<&Outcome>| match outcome {
        Some(Outcome::Passed) => "✓".to_owned(),
        Some(Outcome::Skipped(reason)) => format!("– {}", letter(reason)),
        Some(Outcome::Failed) => "**failed**".to_owned(),
        None => "?".to_owned(),
    };
    let row = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = format!(
        "# The conformance suite on the bundled stores\n\n\
         Made by `cargo xtask conformance > docs/conformance.md`. {} cases; ✓ is passed. Skipped is what does not apply:\n\n",
        cases.len()
    );
    for reason in &reasons {
        text.extend(["- – ", &letter(reason).to_string(), ": ", reason, "\n"]);
    }
    let passed = |outcomes: &BTreeMap<String, Outcome>| {
        let passed = outcomes.values().filter(|outcome| **outcome == Outcome::Passed).count();
        format!("{passed} passed")
    };
    text.push('\n');
    let head = ["case", "clause"].map(str::to_owned).into_iter().chain(columns.iter().map(|(name, _)| name.clone()));
    text.push_str(&row(&head.collect::<Vec<_>>()));
    text.push_str(&row(&vec!["---".to_owned(); columns.len() + 2]));
    let totals =
        ["all".to_owned(), String::new()].into_iter().chain(columns.iter().map(|(_, outcomes)| passed(outcomes)));
    text.push_str(&row(&totals.collect::<Vec<_>>()));
    for (name, clause, about) in cases {
        let cells = columns.iter().map(|(_, outcomes)| cell(outcomes.get(name)));
        let head = [format!("`{name}`<br>{about}"), clause.clone()];
        text.push_str(&row(&head.into_iter().chain(cells).collect::<Vec<_>>()));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Outcome, column, is_of, program, read, table};

    #[test]
    fn reads_what_libtest_prints() {
        let passed = ("sync".into(), "o3_any".into(), Outcome::Passed);
        assert_eq!(read("test sync::o3_any ... ok\n"), Some(passed));
        let reason = "store declares `snapshots: false`";
        let skipped = ("sync".into(), "r2_a".into(), Outcome::Skipped(reason.into()));
        assert_eq!(read(&format!("test sync::r2_a ... ignored, {reason}")), Some(skipped));
        assert_eq!(read("test sync::r2_a ... FAILED"), Some(("sync".into(), "r2_a".into(), Outcome::Failed)));
        assert_eq!(read("test result: ok. 3 passed; 0 failed"), None);
        assert_eq!(read("running 3 tests"), None);
    }

    #[test]
    fn finds_test_programs_in_cargos_messages() {
        let id = "path+file:///work/store-redb#kstate-store-redb@0.1.0";
        let message =
            format!(r#"{{"package_id":"{id}","target":{{"name":"conformance"}},"executable":"/t/conformance-1"}}"#);
        assert_eq!(program(&message), Some((id.to_owned(), "/t/conformance-1".into())));
        assert!(is_of(id, "kstate-store-redb") && !is_of(id, "kstate-store"));
        assert_eq!(program(r#"{"target":{"name":"conformance"},"executable":null}"#), None);
    }

    #[test]
    fn the_table_shows_each_case_and_each_reason() {
        let case = |name: &str| (name.to_owned(), "O3".to_owned(), "what it checks".to_owned());
        let skipped = Outcome::Skipped("store declares `faults: false`".into());
        let outcomes = [("o3_a".to_owned(), Outcome::Passed), ("o7_b".to_owned(), skipped)];
        let text = table(&[case("o3_a"), case("o7_b"), case("o7_c")], &[("redb, sync".into(), outcomes.into())]);
        assert!(text.contains("- – a: store declares `faults: false`\n"), "{text}");
        assert!(text.contains("| all |  | 1 passed |\n"), "{text}");
        assert!(text.contains("| `o3_a`<br>what it checks | O3 | ✓ |\n"), "{text}");
        assert!(text.contains("| `o7_b`<br>what it checks | O3 | – a |\n"), "{text}");
        assert!(text.contains("| `o7_c`<br>what it checks | O3 | ? |\n"), "{text}");
        let failed = BTreeMap::from([("o3_a".to_owned(), Outcome::Failed)]);
        assert!(table(&[case("o3_a")], &[("x".into(), failed)]).contains("| **failed** |"));
        assert_eq!(column("redb", "through_trait_objects"), "redb, through trait objects");
        assert_eq!(column("memory", "memory"), "memory");
    }
}
