//! Lists the cases of the suite, in the order of its table: name, clause and what it checks, with tabs between.

fn main() {
    for case in kstate_conformance_tests::CASES {
        println!("{}\t{}\t{}", case.name(), case.clause(), case.about());
    }
}
