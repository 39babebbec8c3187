//! The table of planted bugs as a document, made from the sources of the table itself.

use std::{collections::BTreeMap, env, fmt::Write, fs, path::PathBuf};

use kstate_conformance_tests::CASES;

/// The bugs and what a user would see of each, in their order and by subject, from the comments in `bug.rs`.
fn described() -> Vec<(String, Vec<(String, String)>)> {
    let mut subjects: Vec<(String, Vec<(String, String)>)> = Vec::new();
    let mut about = Vec::new();
    let source = include_str!("bug.rs");
    let body = source.split_once("pub(crate) enum Bug {").unwrap().1;
    for line in body.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("/// ") {
            about.push(text);
        } else if let Some(subject) = line.strip_prefix("// ") {
            subjects.push((subject.trim_end_matches('.').to_owned(), Vec::new()));
        } else if let (Some(name), Some((_, bugs))) = (line.strip_suffix(','), subjects.last_mut()) {
            bugs.push((name.to_owned(), about.join(" ")));
            about.clear();
        } else {
            about.clear();
        }
    }
    subjects
}

/// The document for `table`: each bug, and the cases that catch it.
fn document(table: &BTreeMap<String, &[&str]>) -> String {
    let mut text = format!(
        "# Planted bugs\n\n\
         {} stores with one bug each, and the cases of the conformance suite that catch them; tests assert each line. \
         Cases that are\nnot named may catch a bug, too.\n\n\
         Made from `conformance-tests/tests/planted_bugs.rs`. After a change there:\n\
         `KSTATE_UPDATE_DOCS=1 cargo test -p kstate-conformance-tests --test planted_bugs the_document`.\n",
        table.len()
    );
    for (subject, bugs) in described() {
        let _ = write!(text, "\n## {subject}\n\n| bug | what a user would see | caught by |\n| --- | --- | --- |\n");
        for (bug, about) in bugs {
            let cases = table.get(&bug).unwrap_or_else(|| panic!("no case is named that catches {bug}"));
            let cases: Vec<_> = cases.iter().map(|case| format!("`{case}`")).collect();
            let _ = writeln!(text, "| {bug} | {about} | {} |", cases.join("<br>"));
        }
    }
    let _ = write!(text, "\n## By case\n\n| case | clause | bugs it catches |\n| --- | --- | --- |\n");
    for case in CASES {
        let bugs = table.iter().filter(|(_, cases)| cases.contains(&case.name())).map(|(bug, _)| bug.as_str());
        let _ = writeln!(text, "| `{}` | {} | {} |", case.name(), case.clause(), bugs.collect::<Vec<_>>().join(", "));
    }
    text
}

/// Fails if the document in `docs/` is not the one for `table`, unless it was asked to make it so.
pub(crate) fn ensure_current(table: &BTreeMap<String, &[&str]>) {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/planted-bugs.md"));
    let expected = document(table);
    if env::var_os("KSTATE_UPDATE_DOCS").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let differs = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
    assert!(
        found == expected,
        "docs/planted-bugs.md is out of date, at {differs:?}; its head says how to make it anew"
    );
}
